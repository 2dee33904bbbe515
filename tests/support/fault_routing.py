"""Faults of routes and clusters: nothing takes the request, or what takes it leads nowhere."""

from fault_cases import HOME, fault, of_family, routing, serving
from traffic_manifests import subsets

_NEVER = "match: [{uri: {exact: /only}}]"


def _unrouted(name: str, match: str, path: str = "/", **more: object) -> dict[str, object]:
    """A VirtualService whose one route does not take the request."""
    manifests = routing(name, f"{{match: [{{{match}}}], TO}}")
    return fault(name, manifests, url=f"http://{name}{path}", cause=f"VirtualService/{HOME}/{name}", **more)


def _leading(
    name: str, destination: str, *more: str, cause: str = "VirtualService", **options: object
) -> dict[str, object]:
    """A VirtualService that sends to this destination."""
    manifests = routing(name, f"route: [{{destination: {{{destination}}}}}]", service_options=options or None)
    return fault(name, manifests, *more, cause=f"{cause}/{HOME}/{name}")


NO_ROUTE = of_family(
    "NR",
    _unrouted("nr-exact", "uri: {exact: /only}", "/other"),
    _unrouted("nr-case", "uri: {exact: /Only}", "/only"),
    _unrouted("nr-slash", "uri: {exact: /only}", "/only/"),
    _unrouted("nr-prefix", "uri: {prefix: /v1/}", "/v1"),
    _unrouted("nr-regex", "uri: {regex: '/v[0-9]+'}", "/v1/items"),
    _unrouted("nr-header", "headers: {x-user: {exact: ann}}", headers={"x-user": "bob"}),
    _unrouted("nr-no-header", "headers: {x-user: {}}"),
    _unrouted("nr-without", "withoutHeaders: {x-debug: {}}", headers={"x-debug": "1"}),
    _unrouted("nr-method", "method: {exact: GET}", method="POST"),
    _unrouted("nr-query", "queryParams: {page: {exact: '1'}}", "/?page=2"),
    _unrouted("nr-authority", "authority: {exact: nr-other}"),
    _unrouted("nr-scheme", "scheme: {exact: https}"),
    _unrouted("nr-second-query", "queryParams: {a: {regex: '[0-9]+'}, b: {exact: '3'}}", "/?a=1&b=2"),
)

UNCONCERNED = of_family(
    "healthy",
    *(
        _unrouted(name, match) | {"cause": ""}
        for name, match in (
            ("past-port", "port: 81"),
            ("past-labels", "sourceLabels: {team: blue}"),
            ("past-namespace", "sourceNamespace: blind"),
            ("past-gateway", "gateways: [some-gateway]"),
        )
    ),
    fault(
        "past-delegate",
        serving("past-delegate")
        + """
kind: VirtualService
metadata: {name: past-delegate}
spec:
  hosts: [past-delegate]
  http: [{match: [{uri: {prefix: /}}], delegate: {name: past-delegate-lost, namespace: traffic}}]
---
""",
    ),
)
"""Routes that are not for this caller: what is left is as if no VirtualService were there."""

NO_CLUSTER = of_family(
    "NC",
    _leading("nc-subset", "host: nc-subset, subset: v9"),
    _leading("nc-subset-of-others", "host: nc-subset-of-others, subset: v9", subsets("nc-subset-of-others")),
    _leading("nc-host", "host: nc-nowhere"),
    _leading("nc-full-name", "host: nc-full-name.elsewhere.svc.cluster.local"),
    _leading("nc-short-name", "host: nc-short-name-target"),
    _leading("nc-port", "host: nc-port, port: {number: 81}"),
    fault(
        "nc-rule-elsewhere",
        routing("nc-rule-elsewhere", "route: [{destination: {host: nc-rule-elsewhere, subset: v1}}]")
        + """
kind: DestinationRule
metadata: {name: nc-rule-elsewhere, namespace: watched}
spec:
  host: nc-rule-elsewhere.traffic.svc.cluster.local
  subsets: [{name: v1, labels: {version: v1}}]
---
""",
        cause="DestinationRule/watched/nc-rule-elsewhere",
    ),
    fault(
        "nc-rule-hidden",
        serving("nc-rule-hidden", "blind", selector="app: blind")
        + """
kind: VirtualService
metadata: {name: nc-rule-hidden}
spec:
  hosts: [nc-rule-hidden.blind.svc.cluster.local]
  http: [{route: [{destination: {host: nc-rule-hidden.blind.svc.cluster.local, subset: all}}]}]
---
kind: DestinationRule
metadata: {name: nc-rule-hidden, namespace: blind}
spec:
  host: nc-rule-hidden.blind.svc.cluster.local
  exportTo: ["."]
  subsets: [{name: all, labels: {app: blind}}]
---
""",
        url="http://nc-rule-hidden.blind/",
        cause="DestinationRule/blind/nc-rule-hidden",
    ),
    fault(
        "nc-not-exported",
        routing("nc-not-exported", "route: [{destination: {host: nc-kept.blind.svc.cluster.local}}]")
        + serving("nc-kept", "blind", selector="app: blind").replace(
            "namespace: blind}", 'namespace: blind, annotations: {networking.istio.io/exportTo: "."}}'
        ),
        cause="Service/blind/nc-kept",
    ),
    fault(
        "nc-all-the-weight",
        routing(
            "nc-all-the-weight",
            "route: [{destination: {host: nc-all-the-weight, subset: v9}, weight: 100},"
            " {destination: {host: nc-all-the-weight, subset: v1}, weight: 0}]",
        ),
        subsets("nc-all-the-weight"),
        cause=f"VirtualService/{HOME}/nc-all-the-weight",
    ),
    fault(
        "nc-some-weight",
        routing(
            "nc-some-weight",
            "route: [{destination: {host: nc-some-weight, subset: v9}, weight: 100},"
            " {destination: {host: nc-some-weight, subset: v8}, weight: 100}]",
        ),
        cause=f"VirtualService/{HOME}/nc-some-weight",
    ),
)

_LABELS = "{name: v1, labels: {version: v1}}"
NO_HOST = of_family(
    "UH",
    fault("uh-selector", serving("uh-selector", selector="app: nobody"), cause=f"Service/{HOME}/uh-selector"),
    fault(
        "uh-label-value",
        serving("uh-label-value", selector="app: echo, version: v3"),
        cause=f"Service/{HOME}/uh-label-value",
    ),
    fault(
        "uh-other-namespace",
        serving("uh-other-namespace", selector="app: guarded"),
        cause=f"Service/{HOME}/uh-other-namespace",
    ),
    fault(
        "uh-subset-labels",
        routing("uh-subset-labels", "route: [{destination: {host: uh-subset-labels, subset: v1}}]"),
        subsets("uh-subset-labels").replace(_LABELS, "{name: v1, labels: {version: V1}}"),
        cause=f"DestinationRule/{HOME}/uh-subset-labels",
    ),
    fault(
        "uh-named-port",
        serving("uh-named-port").replace("targetPort: 8080", "targetPort: webb"),
        cause=f"Service/{HOME}/uh-named-port",
    ),
    fault(
        "uh-no-selector",
        serving("uh-no-selector").replace("  selector: {app: echo}\n", ""),
        cause=f"Service/{HOME}/uh-no-selector",
    ),
    fault(
        "uh-not-ready",
        serving("uh-not-ready").replace("  selector: {app: echo}\n", "")
        + """
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: uh-not-ready-1, labels: {kubernetes.io/service-name: uh-not-ready}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [$(near)], conditions: {ready: false}}]
---
""",
        cause=f"EndpointSlice/{HOME}/uh-not-ready-1",
    ),
    fault(
        "uh-tcp",
        serving("uh-tcp", port=9000, port_name="tcp", target=9000, selector="app: nobody"),
        url="tcp://uh-tcp:9000",
        cause=f"Service/{HOME}/uh-tcp",
    ),
    fault(
        "uh-entry",
        """
kind: ServiceEntry
metadata: {name: uh-entry}
spec:
  hosts: [uh-entry.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  location: MESH_INTERNAL
  workloadSelector: {labels: {app: gone}}
---
""",
        url="http://uh-entry.example.com/",
        cause=f"ServiceEntry/{HOME}/uh-entry",
    ),
    fault(
        "uh-mirrored",
        routing("uh-mirrored", "{TO, mirror: {host: uh-selector}}", service_options={"selector": "app: nobody"}),
        cause=f"Service/{HOME}/uh-mirrored",
    ),
)

FAULTS = (*NO_ROUTE, *UNCONCERNED, *NO_CLUSTER, *NO_HOST)
