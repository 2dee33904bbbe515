"""Records taken apart into Istio's labels, and both sides' idea of what is in a record."""

import random

import pytest

from mizzen.agent.bootstrap import node
from mizzen.agent.status import standard_metrics
from mizzen.agent.status.standard_metrics import Expander, expand_labels

CLIENT = (
    'mz_http="source;http;200;;-;unknown",mz_source="front-v1;web;front;v1;east;front;v1",'
    'mz_destination="cart-v2;shop;cart;v2;west;",source_principal="spiffe://m/ns/web/sa/front",'
    'destination_principal="spiffe://m/ns/shop/sa/cart",destination_service="cart.shop.svc.cluster.local",'
    'mz_service="cart;shop"'
)


def labels(text: str) -> dict[str, str]:
    return dict(part.split("=") for part in expand_labels(text).replace('"', "").split(","))


def expand(*lines: str) -> list[str]:
    expander = Expander()
    expander.read([line.encode() for line in lines])
    return expander.body().decode().splitlines()


def test_every_label_of_istio_is_there_in_istios_order() -> None:
    assert expand_labels(CLIENT) == (
        'reporter="source",source_workload="front-v1",source_canonical_service="front",'
        'source_canonical_revision="v1",source_workload_namespace="web",'
        'source_principal="spiffe://m/ns/web/sa/front",source_app="front",source_version="v1",source_cluster="east",'
        'destination_workload="cart-v2",destination_workload_namespace="shop",'
        'destination_principal="spiffe://m/ns/shop/sa/cart",destination_app="cart",destination_version="v2",'
        'destination_service="cart.shop.svc.cluster.local",destination_canonical_service="cart",'
        'destination_canonical_revision="v2",destination_service_name="cart",destination_service_namespace="shop",'
        'destination_cluster="west",request_protocol="http",response_code="200",grpc_response_status="",'
        'response_flags="-",connection_security_policy="unknown"'
    )


def test_a_peer_that_is_not_known_reads_as_istio_writes_it() -> None:
    for nothing in (";", "", ";;;;;;"):
        found = labels(f'mz_destination="{nothing}"')
        assert found.pop("destination_canonical_revision") == "latest"
        assert set(found.values()) == {"unknown"}


def test_what_follows_from_the_rest_of_a_record_may_be_left_out() -> None:
    found = labels('mz_destination="w;n;canonical;;k;"')
    assert (found["destination_app"], found["destination_version"]) == ("canonical", "latest")
    told = labels('mz_destination="w;n;canonical;r;k;app;v9"')
    assert (told["destination_app"], told["destination_version"]) == ("app", "v9")


def test_a_service_without_a_namespace_is_in_that_of_the_workload() -> None:
    found = labels('mz_destination="w;shop;c;r;k;",mz_service="InboundPassthroughCluster"')
    assert found["destination_service_name"] == "InboundPassthroughCluster"
    assert found["destination_service_namespace"] == "shop"
    assert labels('mz_destination=";",mz_service=""')["destination_service_namespace"] == "unknown"


def test_the_certificate_says_the_namespace_where_there_is_one() -> None:
    server = 'mz_tcp="destination;tcp;-;mutual_tls",mz_source="{}",source_principal="{}"'
    told = labels(server.format("", "spiffe://m/ns/web/sa/front"))
    assert (told["source_workload"], told["source_workload_namespace"]) == ("unknown", "web")
    assert labels(server.format("w;lie;c;r;k;a;v", "spiffe://m/ns/web/sa/front"))["source_workload_namespace"] == "web"
    assert labels(server.format("w;n;c;r;k;a;v", ""))["source_workload_namespace"] == "n"


def test_labels_that_stand_by_themselves_stay() -> None:
    found = labels('mz_service="a;b",reporter="source",response_code="200",zone="",source_principal=""')
    assert found == {
        "reporter": "source",
        "response_code": "200",
        "zone": "",
        "source_principal": "unknown",
        "destination_service_name": "a",
        "destination_service_namespace": "b",
    }


def test_other_lines_stay_as_they_are() -> None:
    lines = ["# TYPE istio_requests_total counter", 'envoy_server_live{mz_source="a"} 1', "envoy_uptime 5"]
    assert expand(*lines) == lines


def test_bounds_of_histograms_stay_last() -> None:
    series = 'istio_request_bytes_bucket{mz_service="a;b",le="0.5"} 3'
    assert expand(series) == [
        'istio_request_bytes_bucket{destination_service_name="a",destination_service_namespace="b",le="0.5"} 3'
    ]


@pytest.mark.parametrize("value", ['a\\"b', "a} 1", "a b", "a\\\\", "a=b,c", 'a,le=\\"1\\"'])
def test_values_with_signs_of_the_format_stay_whole(value: str) -> None:
    series = f'istio_requests_total{{zone="{value}",mz_service="n;s"}} 7'
    (found,) = expand(series)
    assert found.startswith('istio_requests_total{destination_service_name="n",destination_service_namespace="s",')
    assert found.endswith(f'zone="{value}"}} 7')


def test_series_that_only_an_unreadable_record_tells_apart_are_one() -> None:
    forged = 'istio_requests_total{{mz_source="{}"}} {}'
    found = expand(forged.format("1;2;3;4;5;6;7;8", 3), forged.format("1;2;3;4;5;6;7;9", 4), forged.format("", 0.5))
    assert len(found) == 1
    assert found[0].endswith("} 7.5")
    assert 'source_workload="unknown"' in found[0]


def test_slices_may_come_in_any_size() -> None:
    lines = [f'istio_requests_total{{mz_source="w{i % 7};;;;;;",mz_service="s{i};n"}} {i}'.encode() for i in range(500)]
    whole, sliced = Expander(), Expander()
    whole.read(lines)
    rest, rng = list(lines), random.Random(1)
    while rest:
        size = rng.randint(1, 60)
        sliced.read(rest[:size])
        rest = rest[size:]
    assert sliced.body() == whole.body()


def test_the_record_that_the_environment_holds_has_the_parts_that_are_read() -> None:
    pod = node.Pod(name="p", namespace="n", domain="d", addresses=("10.0.0.1",))
    metadata = {"LABELS": {"app": "a", "version": "v"}, "WORKLOAD_NAME": "w", "CLUSTER_ID": "k"}
    variables = node.build_identity_variables(pod, metadata)
    assert len(variables["MZ_PEER"].split(";")) == len(standard_metrics.PEER)
    found = labels(f'mz_source="{variables["MZ_PEER"]}"')
    own = {"workload": "WORKLOAD", "workload_namespace": "NAMESPACE", "app": "APP", "version": "VERSION"}
    own |= {part: part.upper() for part in ("canonical_service", "canonical_revision", "cluster")}
    assert found == {f"source_{part}": variables[f"MZ_{name}"] for part, name in own.items()}


def test_labels_that_a_record_is_not_to_show_are_gone_or_another_ones() -> None:
    found = labels('mz_source="w;n;c;r;k;a;v",mz_without="source_version;source_app",source_app="x"')
    assert found["source_app"] == "x"
    assert "source_version" not in found
    assert (found["source_workload"], found["source_canonical_revision"]) == ("w", "r")


def test_series_that_only_a_label_tells_apart_that_is_not_shown_are_one() -> None:
    series = 'istio_tcp_sent_bytes_total{{mz_source="w;n;c;r;k;a;{}",mz_without="source_version"}} {}'
    found = expand(series.format("v1", 3), series.format("v2", 4))
    assert len(found) == 1
    assert found[0].endswith("} 7")
