"""What goes out: through an egress gateway, and with TLS that the mesh adds."""

from traffic_certificates import OTHER, ROOT, secret
from traffic_manifests import WORLD, behaviour


def outside(name: str, ports: str) -> str:
    """A ServiceEntry for NAME.example.com, which the world's name servers know under another name."""
    return f"""
kind: ServiceEntry
metadata: {{name: {name}}}
spec:
  hosts: [{name}.example.com]
  location: MESH_EXTERNAL
  resolution: DNS
  ports: [{ports}]
  endpoints: [{{address: world.example.net}}]
---
"""


def through_egress(name: str) -> str:
    """Requests for that host go to the egress gateway, and from there to the host."""
    return f"""
kind: Gateway
metadata: {{name: {name}}}
spec:
  selector: {{gateway: egress}}
  servers: [{{hosts: [{name}.example.com], port: {{number: 80, name: http, protocol: HTTP}}}}]
---
kind: VirtualService
metadata: {{name: {name}}}
spec:
  hosts: [{name}.example.com]
  gateways: [mesh, {name}]
  http:
    - match: [{{gateways: [mesh], port: 80}}]
      route: [{{destination: {{host: egress.gateways.svc.cluster.local, port: {{number: 80}}}}}}]
    - match: [{{gateways: [{name}], port: 80}}]
      headers: {{request: {{set: {{x-route: egress}}}}}}
      route: [{{destination: {{host: {name}.example.com, port: {{number: 80}}}}}}]
---
"""


@behaviour(
    WORLD,
    outside("through", "{number: 80, name: http, protocol: HTTP, targetPort: 8080}"),
    outside("directly", "{number: 80, name: http, protocol: HTTP, targetPort: 8080}"),
    through_egress("through"),
)
def test_requests_go_out_through_the_egress_gateway(client, mesh):
    seen = client.get("http://through.example.com/").seen
    assert (seen.pod, seen.peer, seen.header("x-route")) == ("outer", mesh.pod("egress").address, "egress")
    assert client.get("http://directly.example.com/").seen.peer == client.address


@behaviour(
    WORLD,
    outside("originated", "{number: 80, name: http, protocol: HTTP, targetPort: 8443}"),
    """
kind: DestinationRule
metadata: {name: originated}
spec:
  host: originated.example.com
  trafficPolicy: {tls: {mode: SIMPLE, sni: outer.example.com, insecureSkipVerify: true}}
""",
)
def test_a_sidecar_adds_tls_to_what_leaves_the_mesh(client):
    seen = client.get("http://originated.example.com/").seen
    assert (seen.kind, seen.sni, seen.pod, seen.peer) == ("https", "outer.example.com", "outer", client.address)
    assert seen.alpn in (None, "http/1.1")


@behaviour(
    WORLD,
    outside("mutual-out", "{number: 80, name: http, protocol: HTTP, targetPort: 8443}"),
    secret("mutual-out", "egress.example.com", ca=True),
    through_egress("mutual-out"),
    """
kind: DestinationRule
metadata: {name: mutual-out}
spec:
  host: mutual-out.example.com
  trafficPolicy:
    tls: {mode: MUTUAL, credentialName: mutual-out, sni: outer.example.com, subjectAltNames: [outer.example.com]}
""",
)
def test_the_egress_gateway_shows_the_certificate_of_a_secret(client, mesh):
    seen = client.get("http://mutual-out.example.com/").seen
    assert (seen.kind, seen.peer) == ("https", mesh.pod("egress").address)
    assert (seen.sni, seen.certificate) == ("outer.example.com", "egress.example.com")


@behaviour(
    WORLD,
    outside("tls-through", "{number: 443, name: tls, protocol: TLS, targetPort: 8443}"),
    """
kind: Gateway
metadata: {name: tls-through}
spec:
  selector: {gateway: egress}
  servers:
    - hosts: [tls-through.example.com]
      port: {number: 443, name: tls, protocol: TLS}
      tls: {mode: PASSTHROUGH}
---
kind: VirtualService
metadata: {name: tls-through}
spec:
  hosts: [tls-through.example.com]
  gateways: [mesh, tls-through]
  tls:
    - match: [{gateways: [mesh], port: 443, sniHosts: [tls-through.example.com]}]
      route: [{destination: {host: egress.gateways.svc.cluster.local, port: {number: 443}}}]
    - match: [{gateways: [tls-through], port: 443, sniHosts: [tls-through.example.com]}]
      route: [{destination: {host: tls-through.example.com, port: {number: 443}}}]
""",
)
def test_the_programs_own_tls_goes_out_through_the_egress_gateway(client, mesh):
    seen = client.get("https://tls-through.example.com/", tls={"ca": ROOT.pem}).seen
    assert (seen.kind, seen.sni, seen.peer) == ("https", "tls-through.example.com", mesh.pod("egress").address)


@behaviour(
    WORLD,
    outside("untrusted", "{number: 80, name: http, protocol: HTTP, targetPort: 8443}"),
    secret("untrusted", "egress.example.com", authority=OTHER, ca=True),
    through_egress("untrusted"),
    """
kind: DestinationRule
metadata: {name: untrusted}
spec:
  host: untrusted.example.com
  trafficPolicy: {tls: {mode: SIMPLE, credentialName: untrusted, sni: outer.example.com}}
""",
)
def test_a_server_whose_certificate_is_not_trusted_is_not_spoken_to(client, outer, mesh):
    answer = client.get("http://untrusted.example.com/")
    assert answer.status == 503
    assert outer.received(answer.case) == []
    (line,) = mesh.logged("egress", "untrusted.example.com")
    assert "URX,UF" in line
    assert "CERTIFICATE_VERIFY_FAILED" in line


@behaviour(
    WORLD,
    outside("sealed", "{number: 80, name: http, protocol: HTTP, targetPort: 8080}"),
    """
kind: Gateway
metadata: {name: sealed}
spec:
  selector: {gateway: egress}
  servers:
    - hosts: [sealed.example.com]
      port: {number: 443, name: https-sealed, protocol: HTTPS}
      tls: {mode: ISTIO_MUTUAL}
---
kind: DestinationRule
metadata: {name: sealed}
spec:
  host: egress.gateways.svc.cluster.local
  subsets:
    - name: sealed
      trafficPolicy:
        portLevelSettings: [{port: {number: 443}, tls: {mode: ISTIO_MUTUAL, sni: sealed.example.com}}]
---
kind: VirtualService
metadata: {name: sealed}
spec:
  hosts: [sealed.example.com]
  gateways: [mesh, sealed]
  http:
    - match: [{gateways: [mesh], port: 80}]
      route: [{destination: {host: egress.gateways.svc.cluster.local, subset: sealed, port: {number: 443}}}]
    - match: [{gateways: [sealed], port: 443}]
      headers: {request: {set: {x-caller: "%DOWNSTREAM_PEER_URI_SAN%"}}}
      route: [{destination: {host: sealed.example.com, port: {number: 80}}}]
""",
)
def test_the_egress_gateway_knows_its_callers_by_mutual_tls(client, mesh):
    seen = client.get("http://sealed.example.com/").seen
    assert (seen.kind, seen.peer) == ("http", mesh.pod("egress").address)
    assert seen.header("x-caller") == "spiffe://cluster.local/ns/traffic/sa/client"
