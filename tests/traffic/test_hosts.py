"""Who is reached under a name: Services of every kind, ServiceEntries of every resolution, and what DNS says of them."""

import pytest
from traffic_certificates import ROOT
from traffic_manifests import WORLD, behaviour, routes, service
from traffic_programs import count_pods

ECHO = "spiffe://cluster.local/ns/traffic/sa/client"


def entry(name: str, spec: str, *, host: str = "", marks: bool = True) -> str:
    """A ServiceEntry, with a route for its host that marks requests, to show that the host is known."""
    host = host or f"{name}.example.com"
    marking = f"""
kind: VirtualService
metadata: {{name: {name}}}
spec:
  hosts: ["{host}"]
  http:
    - headers: {{request: {{set: {{x-route: known}}}}}}
      route: [{{destination: {{host: "{host}"}}}}]
---
"""
    return f"""
kind: ServiceEntry
metadata: {{name: {name}}}
spec:
  hosts: ["{host}"]
  {spec}
---
{marking if marks else ""}"""


@behaviour(service("named"))
def test_a_service_has_its_names_and_no_other(client, scoped):
    full = "named.traffic.svc.cluster.local"
    addresses = {
        name: client.resolve(name) for name in ("named", "named.traffic", "named.traffic.svc", full, f"{full}.")
    }
    (address,) = addresses["named"]
    assert address.startswith("10.96.")
    assert set(map(tuple, addresses.values())) == {(address,)}
    for name in addresses:
        assert client.get(f"http://{name}/").status == 200, name
    assert client.get(f"http://{address}/").status == 200
    assert client.get("http://NAMED:80/").status == 200
    assert scoped.resolve("named") == client.resolve("nobody") == []
    assert client.ask_dns(full, "AAAA")["error"] == "NoAnswer"
    assert client.ask_dns("nobody.traffic.svc.cluster.local")["error"] == "NXDOMAIN"


@behaviour(service("from-outside"))
def test_who_has_no_sidecar_reaches_a_service_in_plain(outer, echoes):
    answers = outer.send("http://from-outside.traffic.svc.cluster.local/", count=60, reuse=False)
    assert set(count_pods(answers)) == echoes.names
    assert {answer.seen.caller for answer in answers} == {""}


@behaviour(service("itself", selector="app: echo, place: near"))
def test_a_pod_reaches_itself_by_its_service_and_by_its_address(mesh):
    near = mesh["near"]
    seen = near.get("http://itself/").seen
    assert (seen.pod, seen.caller) == ("near", "spiffe://cluster.local/ns/traffic/sa/echo")
    assert near.get(f"http://{near.address}:8080/").pod == near.get("http://127.0.0.1:8080/").pod == "near"


@behaviour(service("big"))
def test_big_requests_and_answers_go_through(client):
    body = "0123456789" * 100_000
    answer = client.get("http://big/", method="POST", body=body)
    assert (answer.status, answer.seen.body == body) == (200, True)


@behaviour()
def test_ports_that_no_service_has_are_reached_by_the_pods_address(client, mesh):
    for port in (8081, 8082):
        seen = client.get(f"http://{mesh['near'].address}:{port}/").seen
        assert (seen.pod, seen.port) == ("near", port)


@behaviour(service("unmarked"))
def test_what_sidecars_tell_each_other_by_a_header_is_seen_by_no_program(client, outer):
    """Whoever sends it, and no server outside hears of it."""
    forged = {"x-mizzen-peer": "forged;by;a;program;;;"}
    answers = [
        client.get("http://unmarked/"),
        client.get("http://unmarked/", headers=forged),
        outer.get("http://unmarked.traffic.svc/", headers=forged),
        client.get(f"http://{outer.address}:8080/"),
    ]
    assert [answer.seen.header("x-mizzen-peer") for answer in answers] == [""] * 4


@behaviour(
    """
kind: Service
metadata: {name: several-ports}
spec:
  selector: {app: echo}
  ports:
    - {name: http, port: 80, targetPort: 8080}
    - {name: tcp-greet, port: 7000, targetPort: 9000}
    - {name: grpc, port: 50051, targetPort: 9090}
"""
)
def test_each_port_of_a_service_has_its_protocol_and_target(client):
    assert client.get("http://several-ports/").seen.port == 8080
    assert client.connect("several-ports:7000")[0].lines[0].startswith("HELLO ")
    assert client.grpc("several-ports:50051")[0].code == "OK"


@behaviour(
    """
kind: Service
metadata: {name: app-protocol}
spec:
  selector: {app: echo}
  ports:
    - {name: web, appProtocol: http, port: 80, targetPort: 8080}
    - {name: raw, appProtocol: tcp, port: 7001, targetPort: 9000}
"""
)
def test_the_protocol_may_be_said_apart_from_the_name(client):
    assert client.get("http://app-protocol/").seen.caller == ECHO
    assert client.connect("app-protocol:7001")[0].lines[0].startswith("HELLO ")


HEADS = """
kind: Service
metadata: {name: heads}
spec:
  clusterIP: None
  selector: {app: echo}
  ports:
    - {name: http, port: 8080}
    - {name: tcp, port: 9000}
"""


@behaviour(HEADS)
def test_a_headless_service_has_the_addresses_of_its_pods(client, echoes):
    addresses = sorted(program.address for program in echoes.programs)
    assert client.resolve("heads") == client.resolve("heads.traffic.svc.cluster.local") == addresses
    for program in echoes.programs:
        assert client.resolve(f"{program.name}.heads") == [program.address]


@behaviour(HEADS)
def test_each_pod_of_a_headless_service_is_reached_in_mutual_tls(client, echoes):
    for program in echoes.programs:
        seen = client.get(f"http://{program.name}.heads:8080/").seen
        assert (seen.pod, seen.caller) == (program.name, ECHO)
        (line,) = client.connect(f"{program.name}.heads:9000")
        assert line.lines[0].startswith(f"HELLO {program.name} ")
    answers = client.send("http://heads:8080/", count=30)
    assert {answer.seen.caller for answer in answers} == {ECHO}
    assert set(count_pods(answers)) <= echoes.names


@behaviour(
    routes(
        "original",
        """
- headers: {request: {set: {x-route: original}}}
  route: [{destination: {host: original}}]
""",
    ),
    """
kind: Service
metadata: {name: alias}
spec: {type: ExternalName, externalName: original.traffic.svc.cluster.local, ports: [{name: http, port: 80}]}
""",
)
def test_an_external_name_of_a_service_is_its_alias(client):
    assert client.resolve("alias") == client.resolve("original") != []
    answer = client.get("http://alias/")
    assert (answer.seen.caller, answer.route) == (ECHO, "original")


@behaviour(
    WORLD,
    """
kind: Service
metadata: {name: abroad}
spec: {type: ExternalName, externalName: world.example.net, ports: [{name: http, port: 8080}]}
""",
)
def test_an_external_name_may_lead_out_of_the_mesh(client):
    answer = client.get("http://abroad:8080/")
    assert (answer.seen.pod, answer.seen.caller, answer.seen.peer) == ("outer", "", client.address)


@behaviour(
    """
kind: Service
metadata: {name: by-hand}
spec: {ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: by-hand, labels: {kubernetes.io/service-name: by-hand}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: ["$(outer)"], conditions: {ready: true}}]
"""
)
def test_a_service_without_a_selector_has_the_endpoints_written_for_it(client):
    answer = client.get("http://by-hand/")
    assert (answer.seen.pod, answer.seen.caller) == ("outer", "")


@behaviour(
    entry(
        "static",
        """
  location: MESH_EXTERNAL
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  resolution: STATIC
  endpoints: [{address: "$(outer)"}]
""",
    )
)
def test_a_static_entry_leads_to_its_endpoints(client):
    answer = client.get("http://static.example.com/")
    assert (answer.pod, answer.route, answer.seen.port) == ("outer", "known", 8080)


@behaviour(
    entry(
        "static-address",
        """
  addresses: [240.0.0.9]
  location: MESH_EXTERNAL
  ports:
    - {number: 9000, name: tcp, protocol: TCP}
    - {number: 80, name: http, protocol: HTTP}
  resolution: STATIC
  endpoints: [{address: "$(outer)", ports: {tcp: 9000, http: 8080}}]
""",
        marks=False,
    )
)
def test_an_entry_has_the_address_that_it_states(client):
    assert client.resolve("static-address.example.com") == ["240.0.0.9"]
    assert client.connect("static-address.example.com:9000")[0].lines == ("HELLO outer ",)
    assert client.get("http://static-address.example.com/").pod == "outer"


@behaviour(
    entry(
        "allocated",
        """
  location: MESH_EXTERNAL
  ports: [{number: 9000, name: tcp, protocol: TCP}]
  resolution: STATIC
  endpoints: [{address: "$(outer)"}]
""",
        marks=False,
    )
)
def test_an_entry_that_states_no_address_is_given_one(client):
    (address,) = client.resolve("allocated.example.com")
    assert address.startswith("240.240.")
    assert client.connect("allocated.example.com:9000")[0].lines == ("HELLO outer ",)


@behaviour(
    WORLD,
    entry(
        "dns",
        """
  location: MESH_EXTERNAL
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  resolution: DNS
  endpoints: [{address: world.example.net}]
""",
    ),
)
def test_a_dns_entry_leads_where_its_endpoints_resolve_to(client):
    answer = client.get("http://dns.example.com/")
    assert (answer.pod, answer.route, answer.seen.header("host")) == ("outer", "known", "dns.example.com")


@behaviour(
    WORLD,
    entry(
        "dns-own",
        """
  location: MESH_EXTERNAL
  ports: [{number: 8080, name: http, protocol: HTTP}]
  resolution: DNS
""",
        host="world.example.net",
        marks=False,
    ),
)
def test_a_dns_entry_without_endpoints_resolves_its_own_host(client):
    assert client.get("http://world.example.net:8080/").pod == "outer"


@behaviour(
    WORLD,
    entry(
        "round-robin-dns",
        """
  location: MESH_EXTERNAL
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  resolution: DNS_ROUND_ROBIN
  endpoints: [{address: world.example.net}]
""",
    ),
)
def test_an_entry_may_be_resolved_at_each_connection(client):
    answer = client.get("http://round-robin-dns.example.com/")
    assert (answer.pod, answer.route) == ("outer", "known")


@behaviour(
    entry(
        "none",
        """
  location: MESH_EXTERNAL
  ports: [{number: 8080, name: http, protocol: HTTP}]
  resolution: NONE
""",
    )
)
def test_an_entry_without_resolution_goes_where_the_client_wanted_to(client, outer, mesh):
    for name in ("outer", "solo"):
        answer = client.get("http://none.example.com:8080/", address=f"{mesh[name].address}:8080")
        assert (answer.pod, answer.route) == (name, "known")


@behaviour(
    entry(
        "wild",
        """
  location: MESH_EXTERNAL
  ports: [{number: 8080, name: http, protocol: HTTP}]
  resolution: NONE
""",
        host="*.wild.example.org",
    )
)
@pytest.mark.parametrize(("host", "route"), [("a.wild.example.org", "known"), ("wild.example.org", "")])
def test_a_wildcard_entry_takes_every_host_below_it(client, outer, host, route):
    assert client.get(f"http://{host}:8080/", address=f"{outer.address}:8080").route == route


@behaviour(
    entry(
        "wild-static",
        """
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  location: MESH_EXTERNAL
  resolution: STATIC
  endpoints: [{address: "$(outer)"}]
""",
        host="*.wild-static.example.org",
    )
)
def test_a_wildcard_entry_may_have_endpoints(client, mesh):
    answer = client.get("http://any.wild-static.example.org/", address=f"{mesh['solo'].address}:80")
    assert (answer.pod, answer.route) == ("outer", "known")


@behaviour(
    WORLD,
    entry(
        "each-name",
        """
  ports: [{number: 8081, name: http, protocol: HTTP}]
  location: MESH_EXTERNAL
  resolution: DYNAMIC_DNS
""",
        host="*.names.example.net",
    ),
)
def test_each_name_below_a_wildcard_may_be_resolved_by_itself(client):
    answer = client.get("http://one.names.example.net:8081/")
    assert (answer.pod, answer.route) == ("outer", "known")
    assert client.get("http://two.names.example.net:8081/").status == 503


@behaviour(
    entry(
        "selected",
        """
  location: MESH_INTERNAL
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  resolution: STATIC
  workloadSelector: {labels: {app: echo, version: v2}}
""",
    )
)
def test_an_entry_may_select_pods(client, mesh):
    answer = client.get("http://selected.example.com/", address=f"{mesh['outer'].address}:80")
    assert (answer.pod, answer.route, answer.seen.caller) == ("far", "known", ECHO)


@behaviour(
    entry(
        "weighted-endpoints",
        """
  location: MESH_EXTERNAL
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  resolution: STATIC
  endpoints: [{address: "$(outer)", weight: 1}, {address: "$(solo)", weight: 3}]
""",
    ),
    """
kind: DestinationRule
metadata: {name: weighted-endpoints}
spec: {host: weighted-endpoints.example.com, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}
""",
)
def test_endpoints_of_an_entry_have_weights(client):
    found = count_pods(client.send("http://weighted-endpoints.example.com/", count=40))
    assert found == {"outer": 10, "solo": 30}


def by_name_only(name: str, target: int) -> str:
    """A TLS host without any address of its own on a port that others have as well."""
    spec = f"""
  location: MESH_EXTERNAL
  ports: [{{number: 8449, name: tls, protocol: TLS, targetPort: {target}}}]
  resolution: STATIC
  endpoints: [{{address: "$(outer)"}}]
"""
    unwilling = f'{{name: {name}, labels: {{networking.istio.io/enable-autoallocate-ip: "false"}}}}'
    return entry(name, spec, marks=False).replace(f"{{name: {name}}}", unwilling)


@behaviour(by_name_only("sni-one", 8443), by_name_only("sni-two", 7998))
def test_hosts_without_addresses_are_told_apart_by_the_name_in_tls(client):
    answer = client.get("https://sni-one.example.com:8449/", tls={"ca": ROOT.pem})
    assert (answer.pod, answer.seen.sni) == ("outer", "sni-one.example.com")
    assert client.get("https://sni-two.example.com:8449/").status == 0, "nobody listens there"


@behaviour(
    """
kind: WorkloadEntry
metadata: {name: machine}
spec: {address: "$(outer)", labels: {app: machine}, ports: {http: 8080}}
---
""",
    service("on-machines", selector="app: machine"),
)
def test_a_service_selects_workload_entries(client):
    assert client.get("http://on-machines/").pod == "outer"


def exported(name: str, *namespaces: str) -> str:
    """An entry of another namespace."""
    spec = f"""
  exportTo: {list(namespaces)}
  location: MESH_EXTERNAL
  ports: [{{number: 80, name: http, protocol: HTTP, targetPort: 8080}}]
  resolution: STATIC
  endpoints: [{{address: "$(outer)"}}]
"""
    text = entry(name, spec, marks=False)
    return text.replace(f"{{name: {name}}}", f"{{name: {name}, namespace: outside}}")


@behaviour(exported("kept-home", "."), exported("shared-with-us", "traffic"))
def test_an_entry_is_known_only_where_it_is_exported_to(client, outer):
    assert client.get("http://shared-with-us.example.com/").pod == "outer"
    assert client.get("http://kept-home.example.com/").status != 200
