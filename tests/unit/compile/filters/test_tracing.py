"""The tracing block of a connection manager."""

from mizzen import protos
from mizzen.compile.filters.tracers import Collector, Datadog
from mizzen.compile.filters.tracing import Tag, Tracing, build_tracing


def built(**fields):
    return protos.to_json(build_tracing(Tracing(**fields)))


def test_tags_of_all_origins_stand_sorted_by_name():
    tags = (
        Tag(name="z", kind="literal", value="1"),
        Tag(name="istio.mesh_id", kind="environment", value="MZ_MESH", default="unknown"),
        Tag(name="a", kind="header", value="x-a", default="none"),
        Tag(name="f", kind="formatter", value="%PROTOCOL%"),
    )
    found = built(tags=tags)["customTags"]
    assert [t["tag"] for t in found] == sorted(t["tag"] for t in found)
    by_name = {t["tag"]: t for t in found}
    assert by_name["z"]["literal"] == {"value": "1"}
    assert by_name["istio.mesh_id"]["environment"] == {"name": "MZ_MESH", "defaultValue": "unknown"}
    assert by_name["a"]["requestHeader"] == {"name": "x-a", "defaultValue": "none"}
    assert by_name["f"]["value"] == "%PROTOCOL%"


def test_dry_run_verdicts_are_tags_unless_switched_off():
    assert len(built()["customTags"]) == 4
    assert "customTags" not in built(dry_run_tags=False)


def test_no_sampling_is_written_and_not_left_out():
    assert built(sampling=0.0)["randomSampling"] == {}


def test_a_tracer_becomes_the_provider():
    collector = Collector(host="dog.demo", cluster="outbound|8126||dog.demo")
    assert "provider" not in built()
    found = built(
        tracer=Datadog(collector=collector, service_name="a"), spawn_upstream_span=True, max_path_tag_length=9
    )
    assert found["provider"]["name"] == "envoy.tracers.datadog"
    assert found["provider"]["typedConfig"]["collectorCluster"] == "outbound|8126||dog.demo"
    assert found["spawnUpstreamSpan"] is True
    assert found["maxPathTagLength"] == 9
