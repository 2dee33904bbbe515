"""The soak on real processes: a short one finds nothing, and what is wrong is found."""

import pathlib

from bench import edits, meshes, serving, sidecars, soak
from bench.sidecars import Sidecars

SERVICES, PODS, NAMESPACES = 3, 1, 1


def test_a_short_soak_finds_nothing():
    summary = soak.run(minutes=0.3, proxies=12, seed=3)
    assert (summary.differences, summary.late, summary.settled) == ([], [], True)
    assert sum(summary.events.values()) > 10
    (sample,) = summary.samples
    assert sample.streams > 0, "which of them come back just then is up to chance"
    assert len(sample.seconds) > 1
    assert summary.internal_errors == 0


async def test_what_a_proxy_lacks_holds_outdated_or_should_not_hold_is_found(tmp_path: pathlib.Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    documents = list(meshes.documents(SERVICES, PODS, NAMESPACES))
    for document in documents:
        edits.write(one, document)
        edits.write(other, document)
    edits.write(one, meshes.virtual_service(0, NAMESPACES, "another"))
    edits.place(one, _service(documents, "svc-1")).unlink()
    edits.place(other, _service(documents, "svc-2")).unlink()
    nodes = list(meshes.nodes(documents))[:1]
    with serving.serve(one, tmp_path / "state") as plane:
        async with Sidecars(plane.target(), nodes) as proxies:
            assert not await proxies.until_ready(60)
            assert await proxies.until_quiet(1.0, 60)
            async with sidecars.fresh(one, tmp_path / "same", nodes) as expected:
                assert sidecars.compare(proxies, expected) == []
            async with sidecars.fresh(other, tmp_path / "different", nodes) as expected:
                found = sidecars.compare(proxies, expected)
    clusters = "Cluster outbound|80||{}.ns-0.svc.cluster.local {}"
    assert f"svc-0-0.ns-0 {clusters.format('svc-1', 'is missing')}" in found
    assert f"svc-0-0.ns-0 {clusters.format('svc-2', 'should be gone')}" in found
    assert "svc-0-0.ns-0 RouteConfiguration 80 is outdated" in found


def _service(documents: list[edits.Document], name: str) -> edits.Document:
    return next(each for each in documents if each["kind"] == "Service" and each["metadata"]["name"] == name)
