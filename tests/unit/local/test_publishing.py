"""Which ports of the host are asked for, and in which order."""

import pytest
from local_objects import service

from mizzen.api.kube.services import ServicePort
from mizzen.api.meta import Key
from mizzen.errors import LocalError, UsageError
from mizzen.local.options import PortRequest, parse_port
from mizzen.local.publishing import Wish, require_all, select_wishes

HTTP, HTTPS = ServicePort(name="http", port=80), ServicePort(name="https", port=8443)
GATEWAY = Key("Service", "shop", "gateway")


def test_load_balancers_are_published_on_ports_that_need_no_root_or_on_free_ones():
    assert select_wishes([service("gateway", HTTP, HTTPS, type="LoadBalancer"), service("cart")], []) == (
        Wish(GATEWAY, 80, "http", (8080, 0)),
        Wish(GATEWAY, 8443, "https", (8443, 0)),
    )


def test_a_node_port_is_its_own_number():
    port = ServicePort(name="http", port=80, node_port=30080)
    assert select_wishes([service("gateway", port, type="NodePort")], []) == (Wish(GATEWAY, 80, "http", (30080, 0)),)


def test_udp_is_not_published():
    assert select_wishes([service("gateway", ServicePort(port=53, protocol="UDP"), type="LoadBalancer")], []) == ()


def test_a_request_takes_the_place_of_what_would_be_published_and_must_be_had():
    services = [service("gateway", HTTP, HTTPS, type="LoadBalancer")]
    wishes = select_wishes(services, [PortRequest(9999, "gateway", "shop", 80)])
    assert wishes[0] == Wish(GATEWAY, 80, "http", (9999,), required=True)
    assert len(wishes) == 2


def test_any_service_may_be_asked_for_by_its_first_port():
    (wish,) = select_wishes([service("cart", HTTP, HTTPS)], [PortRequest(9999, "cart", "", 0)])
    assert (wish.service.name, wish.port, wish.ports) == ("cart", 80, (9999,))


@pytest.mark.parametrize(
    "request_", [PortRequest(9, "no", "", 0), PortRequest(9, "cart", "web", 0), PortRequest(9, "cart", "", 81)]
)
def test_a_request_for_what_is_not_there_is_refused(request_):
    wishes = select_wishes([service("cart", HTTP)], [request_])
    with pytest.raises(LocalError, match=f"no Service {request_.service}"):
        require_all(wishes, [request_])


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("8080:gateway", PortRequest(8080, "gateway", "", 0)),
        ("8080:gateway.shop", PortRequest(8080, "gateway", "shop", 0)),
        ("8080:gateway.shop:443", PortRequest(8080, "gateway", "shop", 443)),
    ],
)
def test_requests_are_read_from_the_command_line(text, request_):
    assert parse_port(text) == request_


@pytest.mark.parametrize("text", ["", "8080", "8080:", "x:gateway", "0:gateway", "70000:gateway", "80:a:b", "1:a:2:3"])
def test_a_request_that_cannot_be_read_is_refused(text):
    with pytest.raises(UsageError, match="HOSTPORT"):
        parse_port(text)
