"""A pod that calls itself: past both redirects by its own address, through both by its Service's."""

import pytest
from traced_mesh import BASE, ask, pod, service, titles, world_of

from mizzen.diagnose.trace.verdict import Trace

PORTS = "{name: http, port: 80, targetPort: 8080}, {name: tcp, port: 9000}"
MODES = ("STRICT", "PERMISSIVE", "DISABLE")


def mesh(mode: str, *, headless: bool = False, annotations: str = "") -> tuple[str, ...]:
    store = service("store", port="{name: tcp, port: 9000}", app="server")
    server = pod("server").replace("namespace: web,", f"namespace: web, annotations: {{{annotations}}},")
    return (
        BASE + pod("client") + server + service("server", port=PORTS),
        store.replace("spec: {", "spec: {clusterIP: None, ") if headless else store,
        f"""
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {{name: default, namespace: web}}
spec: {{mtls: {{mode: {mode}}}}}
""",
    )


def own_address(*texts: str) -> str:
    return world_of(*texts).find("server.web").addresses[0]


def ends(found: Trace) -> tuple[object, ...]:
    return found.outcome, found.certain, found.destination


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", ["tcp://{}:9000", "http://{}:8080/"])
@pytest.mark.parametrize("host", ["itself", "127.0.0.1", "localhost", "store"])
def test_its_own_address_leads_straight_to_the_program(mode: str, target: str, host: str) -> None:
    texts = mesh(mode, headless=True)
    url = target.format(own_address(*texts) if host == "itself" else host)
    found = ask(world_of(*texts), url, source="server.web")
    assert ends(found) == ("delivered", True, "server.web")
    assert [step.link for step in found.steps] == ["name", "capture", "application"]
    assert titles(found, "capture") == ["not captured"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("url", ["tcp://server:9000", "http://server/"])
def test_its_services_address_leads_through_its_own_sidecar_twice(mode: str, url: str) -> None:
    found = ask(world_of(*mesh(mode)), url, source="server.web")
    assert ends(found) == ("delivered", True, "server.web")
    assert len(titles(found, "listener")) == 2
    assert ("mutual TLS agrees" in titles(found, "tls")) is (mode != "DISABLE")


def test_others_are_still_told_of_mutual_tls() -> None:
    texts = mesh("STRICT", headless=True)
    found = ask(world_of(*texts, pod("outer", namespace="bare")), "tcp://store.web:9000", source="outer.bare")
    assert (found.outcome, found.flag, found.link) == ("failed", "NR", "tls")


def test_an_excluded_outbound_port_does_not_make_loopback_inbound() -> None:
    texts = mesh("STRICT", headless=True, annotations="traffic.sidecar.istio.io/excludeOutboundPorts: '9000'")
    found = ask(world_of(*texts), "tcp://store:9000", source="server.web")
    assert ends(found) == ("delivered", True, "server.web")
    assert titles(found, "application") == ["the program at server.web:9000 answers"]


def test_an_excluded_inbound_port_is_no_exception_for_the_pods_own_sidecar() -> None:
    texts = mesh("STRICT", annotations="traffic.sidecar.istio.io/excludeInboundPorts: '9000'")
    own = ask(world_of(*texts), "tcp://server:9000", source="server.web")
    assert ends(own) == ("delivered", True, "server.web")
    assert "mutual TLS agrees" in titles(own, "tls")
    assert "goes past the sidecar" in titles(ask(world_of(*texts), "tcp://server:9000"), "capture")


def test_an_entry_that_leads_a_proxy_to_loopback_reaches_the_program_beside_it() -> None:
    entry = """
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: beside, namespace: web}
spec:
  hosts: [beside.example]
  addresses: [240.9.9.9]
  ports: [{number: 8080, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 127.0.0.1}]
"""
    found = ask(world_of(*mesh("STRICT"), entry), "http://beside.example:8080/", address="240.9.9.9")
    assert ends(found) == ("delivered", True, "client.web")
