"""What a pod's rules hand to its proxy."""

import pytest

from mizzen.api.kube.pods import Container, Pod, PodSpec
from mizzen.api.meta import ObjectMeta
from mizzen.diagnose.trace.capture import Capture, read_capture


@pytest.mark.parametrize(
    ("capture", "address", "port", "past"),
    [
        (Capture(), "10.0.0.1", 80, ""),
        (Capture(), "", 80, ""),
        (Capture(mode="NONE"), "10.0.0.1", 80, "interceptionMode is NONE"),
        (Capture(), "127.0.0.1", 80, "the pod calls itself"),
        (Capture(exclude_outbound_ports="79,80"), "10.0.0.1", 80, "port 80 is in excludeOutboundPorts"),
        (
            Capture(exclude_outbound_ranges="10.0.0.0/8"),
            "10.0.0.1",
            80,
            "10.0.0.1 is in excludeOutboundIPRanges",
        ),
        (Capture(include_outbound_ranges="10.0.0.0/8"), "10.0.0.1", 80, ""),
        (
            Capture(include_outbound_ranges="10.0.0.0/8"),
            "11.0.0.1",
            80,
            "11.0.0.1 is not in includeOutboundIPRanges",
        ),
        (Capture(include_outbound_ranges="", include_outbound_ports="80"), "11.0.0.1", 80, ""),
    ],
)
def test_outbound(capture, address, port, past):
    assert capture.past_outbound(address, port) == past


@pytest.mark.parametrize(
    ("capture", "port", "past"),
    [
        (Capture(), 8080, ""),
        (Capture(), 15021, "port 15021 is in excludeInboundPorts"),
        (Capture(), 15008, "port 15008 is the tunnel's"),
        (Capture(include_inbound_ports="80"), 8080, "port 8080 is not in includeInboundPorts"),
        (Capture(include_inbound_ports="80"), 80, ""),
    ],
)
def test_inbound(capture, port, past):
    assert capture.past_inbound(port) == past


def test_the_init_containers_arguments_count_before_annotations():
    annotations = {"traffic.sidecar.istio.io/excludeOutboundPorts": "1"}
    metadata = ObjectMeta(name="a", namespace="b", annotations=annotations)
    init = Container(name="istio-init", args=("istio-iptables", "-o", "2", "-m", "TPROXY", "-d", "15090,3"))
    found = read_capture(Pod(metadata=metadata, spec=PodSpec(init_containers=(init,))))
    assert (found.exclude_outbound_ports, found.mode, found.exclude_inbound_ports) == ("2", "TPROXY", "15090,3")
    assert read_capture(Pod(metadata=metadata)).exclude_outbound_ports == "1"


OWN = ("10.0.0.1",)


@pytest.mark.parametrize(
    ("ranges", "address", "past"),
    [
        ("*", "10.0.0.1", "the pod calls itself"),
        ("10.0.0.0/8", "10.0.0.1", "the pod calls itself"),
        ("10.0.0.0/8,127.0.0.0/8", "10.0.0.1", ""),
        ("127.0.0.0/8", "127.0.0.1", "the pod calls itself"),
        ("127.0.0.0/8", "127.0.0.2", ""),
        ("127.0.0.0/8", "10.0.0.1", "10.0.0.1 is not in includeOutboundIPRanges"),
    ],
)
def test_loopback_is_captured_only_where_a_range_includes_it(ranges, address, past):
    assert Capture(include_outbound_ranges=ranges).past_outbound(address, 80, OWN) == past


@pytest.mark.parametrize(
    ("capture", "port", "past"),
    [
        (Capture(exclude_inbound_ports="8080"), 8080, ""),
        (Capture(include_inbound_ports=""), 8080, ""),
        (Capture(), 15008, "port 15008 is the tunnel's"),
        (Capture(mode="NONE"), 8080, "interceptionMode is NONE"),
    ],
)
def test_what_a_proxy_sends_to_its_own_pod_is_captured_on_excluded_ports_too(capture, port, past):
    assert capture.past_inbound(port, by_own_proxy=True) == past
