"""Reading an xDS Node: whom the control plane talks to."""

from typing import Any

import pytest

from mizzen.errors import SessionError
from mizzen.model.proxy import Locality, parse_node

NODE: dict[str, Any] = {"id": "sidecar~10.0.0.1~app-0.web~web.svc.cluster.local", "metadata": {}}


def node(**metadata: Any) -> dict[str, Any]:
    return {**NODE, "metadata": metadata}


def test_the_id_gives_kind_address_name_and_namespace() -> None:
    read = parse_node(NODE)
    assert (read.kind, read.ip_addresses, read.name, read.namespace) == ("sidecar", ("10.0.0.1",), "app-0", "web")


@pytest.mark.parametrize(
    "node_id",
    ["", "sidecar~10.0.0.1~app-0.web", "sidecar~10.0.0.1~app-0.web~a~b", "ztunnel~10.0.0.1~z.istio-system~x"],
)
def test_other_ids_are_refused(node_id: str) -> None:
    with pytest.raises(SessionError):
        parse_node({"id": node_id})


def test_instance_ips_beat_the_id_unless_one_is_invalid() -> None:
    assert parse_node(node(INSTANCE_IPS="10.0.0.7,2001:db8::7")).ip_addresses == ("10.0.0.7", "2001:db8::7")
    assert parse_node(node(INSTANCE_IPS="10.0.0.7,nonsense")).ip_addresses == ("10.0.0.1",)
    with pytest.raises(SessionError, match="valid IP address"):
        parse_node({"id": "sidecar~nowhere~a.b~b.svc.cluster.local"})


def test_metadata_beats_the_domain_for_the_namespace() -> None:
    assert parse_node(node(NAMESPACE="pay")).namespace == "pay"


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), (True, True), ("1", True), ("false", False), ("", False)]
)
def test_booleans_come_as_text_or_plain(value: object, expected: bool) -> None:
    assert parse_node(node(DNS_CAPTURE=value)).dns_capture is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.32.0", (1, 32, 0)),
        ("release-1.20", (1, 20, 65535)),
        ("1.9.5-rc.1", (1, 9, 5)),
        ("dev", (1_000_000, 0, 65535)),
        ("", (1_000_000, 0, 65535)),
    ],
)
def test_an_unreadable_version_counts_as_the_newest(text: str, expected: tuple[int, int, int]) -> None:
    assert parse_node(node(ISTIO_VERSION=text)).istio_version == expected


def test_locality_comes_from_the_node() -> None:
    read = parse_node({**NODE, "locality": {"region": "r1", "zone": "z1", "subZone": "s1"}})
    assert read.locality == Locality("r1", "z1", "s1")
    assert str(read.locality) == "r1/z1/s1"
    assert not parse_node(NODE).locality


def test_named_ports_come_as_a_list_inside_a_string() -> None:
    text = '[{"name":"http","containerPort":8080},{"containerPort":1}]'
    assert parse_node(node(POD_PORTS=text)).pod_ports == (("http", "8080"),)
    assert parse_node(node(POD_PORTS="not json")).pod_ports == ()
    assert parse_node(node(POD_PORTS=7)).pod_ports == ()


def test_equal_nodes_are_equal_proxies_whatever_the_order_of_their_metadata() -> None:
    a = node(A="1", B={"x": 1, "y": 2})
    b = node(B={"y": 2, "x": 1}, A="1")
    assert parse_node(a) == parse_node(b)
    assert hash(parse_node(a)) == hash(parse_node(b))


def test_an_empty_proxy_config_is_not_the_same_as_none() -> None:
    assert parse_node(node(PROXY_CONFIG={})).proxy_config == "{}"
    assert parse_node(node()).proxy_config is None


def test_metadata_that_is_no_object_is_refused() -> None:
    with pytest.raises(SessionError, match="metadata"):
        parse_node({**NODE, "metadata": [1]})


@pytest.mark.parametrize(
    ("text", "expected"), [("TPROXY", "TPROXY"), ("NONE", "NONE"), ("REDIRECT", "REDIRECT"), ("other", "REDIRECT")]
)
def test_an_unknown_interception_mode_is_the_usual_one(text: str, expected: str) -> None:
    assert parse_node(node(INTERCEPTION_MODE=text)).interception == expected


def test_reserved_ports_and_networks_are_lists() -> None:
    read = parse_node(node(ENVOY_STATUS_PORT="15021", ENVOY_PROMETHEUS_PORT=15090.0, REQUESTED_NETWORK_VIEW="a,,b"))
    assert read.reserved_ports == (15021, 15090)
    assert read.requested_networks == ("a", "b")


@pytest.mark.parametrize(
    ("node_id", "version", "metadata", "expected"),
    [
        (NODE["id"], (1, 40), {}, True),
        (NODE["id"], (2, 0), {}, True),
        (NODE["id"], (1, 39), {}, False),
        (NODE["id"], None, {}, False),
        (NODE["id"], (1, 40), {"MIZZEN_DIALECT": "istio"}, False),
        (NODE["id"], (1, 40), {"MIZZEN_ON_DEMAND": "false"}, False),
        ("router~10.0.0.1~edge.web~web.svc.cluster.local", (1, 40), {}, False),
    ],
)
def test_on_demand_needs_an_envoy_that_can(
    node_id: str, version: tuple[int, int] | None, metadata: dict[str, str], expected: bool
) -> None:
    build = {"version": dict(zip(("majorNumber", "minorNumber"), version, strict=True))} if version else {}
    asked = {"MIZZEN_DIALECT": "envoy", "MIZZEN_ON_DEMAND": "true", **metadata}
    read = parse_node({"id": node_id, "metadata": asked, "userAgentBuildVersion": build})
    assert read.on_demand is expected


@pytest.mark.parametrize("build", ["1.40", {"version": "1.40"}, {"version": {"majorNumber": "1", "minorNumber": "40"}}])
def test_an_unreadable_version_of_envoy_is_not_on_demand(build: object) -> None:
    asked = {"MIZZEN_DIALECT": "envoy", "MIZZEN_ON_DEMAND": "true"}
    assert not parse_node({"id": NODE["id"], "metadata": asked, "userAgentBuildVersion": build}).on_demand
