"""`mizzen describe`: the texts of istioctl, from objects and dumps."""

import json
import pathlib

import bookinfo
import cli_runs
import pytest
from http_answers import Answers, on_port

HEAD = f"""\
Pod: {bookinfo.REVIEWS_V1}
   Pod Revision: default
   Pod Ports: 9080 (reviews), 15090 (istio-proxy)
--------------------
Service: reviews
   Port: http 9080/HTTP targets pod port 9080
"""
PERMISSIVE = """\
--------------------
Effective PeerAuthentication:
   Workload mTLS mode: PERMISSIVE
"""
NO_GATEWAY = """\
--------------------
Skipping Gateway information (no ingress gateway pods)
"""
RULE = """\
DestinationRule: reviews for "reviews"
   Matching subsets: v1
      (Non-matching subsets v2,v3)
   No Traffic Policy
"""


def describe_v1(folder: pathlib.Path, *objects: str) -> str:
    return bookinfo.describe(folder, "pod", bookinfo.REVIEWS_V1, objects=(bookinfo.BASE, *objects))


def rules_of_v1(folder: pathlib.Path, *objects: str) -> str:
    """What is said of DestinationRules and VirtualServices."""
    text = describe_v1(folder, *objects)
    assert text.startswith(HEAD)
    assert text.endswith(PERMISSIVE + NO_GATEWAY)
    return text.removeprefix(HEAD).removesuffix(PERMISSIVE + NO_GATEWAY)


def to(subset: str = "", weight: int = 0, host: str = "reviews") -> str:
    parts = [f"host: {host}", *([f"subset: {subset}"] if subset else [])]
    share = f", weight: {weight}" if weight else ""
    return f"{{destination: {{{', '.join(parts)}}}{share}}}"


def test_a_pod_without_rules(tmp_path: pathlib.Path) -> None:
    assert describe_v1(tmp_path) == HEAD + PERMISSIVE + NO_GATEWAY


def test_subsets_that_match_and_that_do_not(tmp_path: pathlib.Path) -> None:
    assert rules_of_v1(tmp_path, bookinfo.SUBSETS) == RULE


def test_a_pod_of_no_subset_is_warned_of(tmp_path: pathlib.Path) -> None:
    only_v3 = bookinfo.SUBSETS.replace("  - {name: v1, labels: {version: v1}}\n", "")

    assert rules_of_v1(tmp_path, only_v3) == (
        'DestinationRule: reviews for "reviews"\n'
        "   WARNING POD DOES NOT MATCH ANY SUBSETS.  (Non matching subsets v2,v3)\n"
        "   Matching subsets: \n"
        "      (Non-matching subsets v2,v3)\n"
        "   No Traffic Policy\n"
    )


def test_policies_of_all_ports_and_of_one(tmp_path: pathlib.Path) -> None:
    rule = """
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews, namespace: default}
spec:
  host: reviews.default.svc.cluster.local
  trafficPolicy:
    tls: {mode: ISTIO_MUTUAL}
    loadBalancer: {simple: RANDOM}
    outlierDetection: {consecutive5xxErrors: 3}
    portLevelSettings:
    - {port: {number: 9080}, tls: {mode: DISABLE}, connectionPool: {tcp: {maxConnections: 9}}}
"""
    assert rules_of_v1(tmp_path, rule) == (
        'DestinationRule: reviews for "reviews.default.svc.cluster.local"\n'
        "   Traffic Policy TLS Mode: ISTIO_MUTUAL\n"
        "   Policies: load balancer/outlier detection\n"
        "   Port Level Settings:\n"
        "    9080:\n"
        "      TLS Mode: DISABLE\n"
        "      Policies: connection pool\n"
    )


@pytest.mark.parametrize(
    ("routes", "lines"),
    [
        ((f"route: [{to('v1')}]",), ["   1 HTTP route(s)"]),
        (
            (f"route: [{to('v1', 90)}, {to('v2', 10)}]",),
            [
                '   Route to host "reviews" subset "v1" with weight 90%',
                "   1 additional destination(s) that will not reach this pod",
                "      Route to non-matching subset v2 for (everything)",
            ],
        ),
        (
            (f"route: [{to('v2')}]",),
            [
                "   WARNING: No destinations match pod subsets (checked 1 HTTP routes)",
                "      Route to non-matching subset v2 for (everything)",
            ],
        ),
        (
            (
                f"{{match: [{{headers: {{end-user: {{exact: jason}}}}}}], route: [{to('v2')}]}}",
                f"route: [{to('v3')}]",
            ),
            [
                "   WARNING: No destinations match pod subsets (checked 2 HTTP routes)",
                "      Route to non-matching subset v2 for (when headers are end-user=jason)",
                "      Route to non-matching subset v3 for (everything)",
            ],
        ),
        (
            (f"{{match: [{{uri: {{prefix: /prefix}}}}], route: [{to('v1', 30)}, {to('', 70, 'elsewhere')}]}}",),
            [
                '   Route to host "reviews" subset "v1" with weight 30%',
                '   Route to host "elsewhere" with weight 70%',
                "   Match: /prefix*",
            ],
        ),
        (
            (f"route: [{to('v9')}]",),
            [
                "   WARNING: No destinations match pod subsets (checked 1 HTTP routes)",
                "      Warning: Route to UNKNOWN subset v9; check DestinationRule reviews",
            ],
        ),
    ],
)
def test_routes_to_the_pod_and_past_it(tmp_path: pathlib.Path, routes: tuple[str, ...], lines: list[str]) -> None:
    found = rules_of_v1(tmp_path, bookinfo.SUBSETS, bookinfo.virtual_service(*routes))

    assert found.removeprefix(RULE).splitlines() == ["VirtualService: reviews", *lines]


def test_a_subset_that_no_rule_defines(tmp_path: pathlib.Path) -> None:
    assert rules_of_v1(tmp_path, bookinfo.virtual_service(f"route: [{to('v1')}]")) == (
        "VirtualService: reviews\n"
        "   WARNING: No destinations match pod subsets (checked 1 HTTP routes)\n"
        "      Warning: Route to subset v1 but NO DESTINATION RULE defining subsets!\n"
    )


def test_subsets_of_rules_that_are_merged_are_all_known(tmp_path: pathlib.Path) -> None:
    more = bookinfo.SUBSETS.replace("name: reviews,", "name: more,").replace("{name: v1,", "{name: first,")
    found = rules_of_v1(tmp_path, bookinfo.SUBSETS, more, bookinfo.virtual_service(f"route: [{to('first')}]"))

    assert 'DestinationRule: more for "reviews"' in found
    assert found.endswith("VirtualService: reviews\n   1 HTTP route(s)\n")


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ("  exportTo: [elsewhere]\n", "its exportTo leaves out namespace default"),
        ("", "aaa goes before it"),
    ],
)
def test_a_virtual_service_without_effect_is_told_with_the_reason(
    tmp_path: pathlib.Path, extra: str, reason: str
) -> None:
    first = bookinfo.virtual_service(f"route: [{to()}]", name="aaa")
    second = bookinfo.virtual_service(f"route: [{to()}]", name="bbb", extra=extra)

    assert rules_of_v1(tmp_path, first, second) == (
        "VirtualService: aaa\n"
        "   1 HTTP route(s)\n"
        f"WARNING: VirtualService bbb names this host without effect: {reason}\n"
    )


def test_http_routes_of_a_port_that_is_not_http(tmp_path: pathlib.Path) -> None:
    base = bookinfo.BASE.replace("{name: http, port: 9080}", "{name: tcp-raw, port: 9080}")
    objects = (base, bookinfo.virtual_service(f"route: [{to()}]"))
    text = bookinfo.describe(tmp_path, "pod", bookinfo.REVIEWS_V1, objects=objects)

    assert "   Port: tcp-raw 9080/TCP targets pod port 9080\n" in text
    assert "without effect: port 9080 is TCP, and it has only HTTP routes\n" in text


def test_routes_of_a_port_that_is_looked_at(tmp_path: pathlib.Path) -> None:
    base = bookinfo.BASE.replace("{name: http, port: 9080}", "{port: 9080}")
    objects = (base, bookinfo.virtual_service(f"{{match: [{{uri: {{prefix: /api}}}}], route: [{to()}]}}"))
    text = bookinfo.describe(tmp_path, "pod", bookinfo.REVIEWS_V1, objects=objects)

    assert "   Port:  9080/auto-detect targets pod port 9080\nVirtualService: reviews\n   Match: /api*\n" in text


@pytest.mark.parametrize(
    ("port", "lines"),
    [
        ("{port: 9080}", ["   Port:  9080/auto-detect targets pod port 9080"]),
        (
            "{name: web, port: 80, targetPort: 9080}",
            [
                "   Port: web 80/UnsupportedProtocol targets pod port 9080",
                '      Note: the name "web" is no protocol: it is found by looking at each connection',
            ],
        ),
        (
            "{name: web, port: 80, targetPort: 9080, appProtocol: grpc}",
            ["   Port: web 80/GRPC targets pod port 9080"],
        ),
        ("{name: http, port: 80, targetPort: nowhere}", [f"   no suitable port for manifest: {bookinfo.REVIEWS_V1}"]),
    ],
)
def test_ports_and_their_protocols(tmp_path: pathlib.Path, port: str, lines: list[str]) -> None:
    base = bookinfo.BASE.replace("{name: http, port: 9080}", port)
    text = bookinfo.describe(tmp_path, "pod", bookinfo.REVIEWS_V1, objects=(base,))

    assert text.split("Service: reviews\n")[1].split("-----")[0].splitlines() == lines


def test_several_ports_have_a_heading_each(tmp_path: pathlib.Path) -> None:
    two = bookinfo.BASE.replace(
        "ports: [{name: http, port: 9080}]",
        "ports: [{name: http, port: 9080}, {name: tcp, port: 7000}, {name: dns, port: 53, protocol: UDP}]",
    )
    text = bookinfo.describe(tmp_path, "pod", bookinfo.REVIEWS_V1, objects=(two, bookinfo.SUBSETS))

    assert "/UDP" not in text
    assert '9080:\n   DestinationRule: reviews for "reviews"\n      Matching subsets: v1\n' in text
    assert '7000:\n   DestinationRule: reviews for "reviews"\n' in text


def test_mutual_tls_with_the_policies_that_apply(tmp_path: pathlib.Path) -> None:
    policies = """
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: istio-system}
spec: {mtls: {mode: PERMISSIVE}}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: default}
spec: {selector: {matchLabels: {app: reviews}}, mtls: {mode: STRICT}, portLevelMtls: {8080: {mode: DISABLE}}}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: other, namespace: default}
spec: {selector: {matchLabels: {app: ratings}}, mtls: {mode: DISABLE}}
"""
    assert describe_v1(tmp_path, policies) == (
        HEAD
        + "--------------------\n"
        + "Effective PeerAuthentication:\n"
        + "   Workload mTLS mode: STRICT\n"
        + "   Port Level mTLS mode:\n"
        + "      8080: DISABLE\n"
        + "Applied PeerAuthentication:\n"
        + "   default.istio-system, strict.default\n"
        + NO_GATEWAY
    )


def test_rules_of_authorization_policies(tmp_path: pathlib.Path) -> None:
    policy = """
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: readers, namespace: default}
spec:
  selector: {matchLabels: {app: reviews}}
  rules: [{to: [{operation: {methods: [GET]}}]}, {to: [{operation: {methods: [HEAD]}}]}]
"""
    assert rules_of_v1(tmp_path, policy) == (
        "RBAC policies: ns[default]-policy[readers]-rule[0], ns[default]-policy[readers]-rule[1]\n"
    )


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("phase: Running", "phase: Pending", "   Pod is not Running (Pending)\n"),
        (
            "{name: reviews, ready: true}",
            "{name: reviews, ready: false}",
            f"WARNING: Pod {bookinfo.REVIEWS_V1} Container reviews NOT READY\n",
        ),
        (
            "labels: {app: reviews, version: v1}",
            "labels: {app: reviews}",
            "Suggestion: add required service revision label for Istio telemetry. See https://istio.io/latest/docs/ops/"
            "deployment/application-requirements/.\n",
        ),
        (
            "{name: reviews, image: app,",
            "{name: reviews, image: app, securityContext: {runAsUser: 1337},",
            "WARNING: User ID (UID) 1337 is reserved for the sidecar proxy.\n",
        ),
        ("containerPort: 9080", "containerPort: 9080, protocol: UDP", "   Pod Ports: 9080/UDP (reviews), 15090"),
        (
            "selector: {app: reviews}",
            "selector: {app: nobody}",
            f"Warning: No Kubernetes Services select pod {bookinfo.REVIEWS_V1} (see https://istio.io/docs/setup/",
        ),
    ],
)
def test_what_is_wrong_with_the_pod_itself(tmp_path: pathlib.Path, before: str, after: str, line: str) -> None:
    base = bookinfo.BASE.replace(before, after, 1)
    assert base != bookinfo.BASE

    assert line in bookinfo.describe(tmp_path, "pod", bookinfo.REVIEWS_V1, objects=(base,))


# -- from outside -----------------------------------------------------------------------------------------------------


ROUTED = """
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: bookinfo, namespace: default}
spec:
  hosts: ["*"]
  gateways: [bookinfo]
  http:
  - match: [{uri: {exact: /reviews}}, {uri: {prefix: /static}}]
    route: [{destination: {host: reviews, port: {number: 9080}}}]
"""


def test_where_a_gateway_exposes_the_pod(tmp_path: pathlib.Path) -> None:
    text = describe_v1(tmp_path, bookinfo.GATEWAY, ROUTED)

    assert text == (
        HEAD
        + PERMISSIVE
        + "--------------------\n"
        + "Exposed on Ingress Gateway http://192.0.2.10\n"
        + "VirtualService: bookinfo\n"
        + "   Match: /reviews, /static*\n"
    )


def test_a_gateway_that_leads_elsewhere_is_not_named(tmp_path: pathlib.Path) -> None:
    elsewhere = ROUTED.replace("host: reviews, port: {number: 9080}", "host: ratings")

    assert describe_v1(tmp_path, bookinfo.GATEWAY, elsewhere) == HEAD + PERMISSIVE


def test_a_route_of_the_gateway_api_is_named_as_what_it_is(tmp_path: pathlib.Path) -> None:
    route = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: to-reviews, namespace: default}
spec:
  parentRefs: [{name: reviews, kind: Service, group: "", port: 9080}]
  rules: [{matches: [{path: {type: Exact, value: /x}}], backendRefs: [{name: reviews, port: 9080}]}]
"""
    assert rules_of_v1(tmp_path, route) == "HTTPRoute: to-reviews\n   Match: /x when port is 9080\n"


def test_shares_of_backends_and_hosts_of_one_route(tmp_path: pathlib.Path) -> None:
    text = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: istio-system}
spec:
  gatewayClassName: istio
  addresses: [{type: Hostname, value: istio-ingressgateway.istio-system.svc.cluster.local}]
  listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: two-hosts, namespace: default}
spec:
  parentRefs: [{name: edge, namespace: istio-system}]
  hostnames: [a.example.com, b.example.com]
  rules: [{backendRefs: [{name: reviews, port: 9080, weight: 3}, {name: ratings, port: 9080, weight: 1}]}]
"""
    ratings = bookinfo.service("ratings", "10.96.1.7")

    assert describe_v1(tmp_path, bookinfo.GATEWAY, ratings, text).endswith(
        "Exposed on Ingress Gateway http://192.0.2.10\n"
        "HTTPRoute: two-hosts\n"
        '   Route to host "reviews.default.svc.cluster.local" with weight 75%\n'
        '   Route to host "ratings.default.svc.cluster.local" with weight 25%\n'
        "   Match: /*\n"
    )


# -- Services ---------------------------------------------------------------------------------------------------------


def test_a_service_is_seen_from_all_its_pods(tmp_path: pathlib.Path) -> None:
    text = bookinfo.describe(tmp_path, "svc", "reviews", objects=(bookinfo.BASE, bookinfo.SUBSETS))

    assert text == (
        "Service: reviews\n"
        "   Port: http 9080/HTTP targets pod port 9080\n"
        'DestinationRule: reviews for "reviews"\n'
        "   Matching subsets: v1,v2\n"
        "      (Non-matching subsets v3)\n"
        "   No Traffic Policy\n" + NO_GATEWAY
    )


def test_a_service_without_pods(tmp_path: pathlib.Path) -> None:
    objects = (bookinfo.service("ratings", "10.96.1.9"),)

    assert bookinfo.describe(tmp_path, "service", "ratings", objects=objects) == 'Service "ratings" has no pods.\n'


def test_a_service_whose_pods_have_no_sidecars(tmp_path: pathlib.Path) -> None:
    base = bookinfo.BASE.replace("{name: istio-proxy,", "{name: other,")

    assert bookinfo.describe(tmp_path, "service", "reviews", objects=(base,)) == (
        f'Pod {bookinfo.REVIEWS_V1}: no container "istio-proxy" in pod\n'
        f'Pod {bookinfo.REVIEWS_V2}: no container "istio-proxy" in pod\n'
        'Service "reviews" has no Istio pods.  (2 pods in service).\n'
        "Use `mizzen kube-inject` or redeploy with Istio automatic sidecar injection.\n"
    )


# -- dumps ------------------------------------------------------------------------------------------------------------


def dump_of(objects: dict[str, str]) -> bytes:
    """A dump of a proxy that follows a DestinationRule and a VirtualService of these names."""

    def origin(kind: str, name: str) -> dict[str, object]:
        path = f"/apis/networking.istio.io/v1/namespaces/default/{kind}/{name}"
        return {"filter_metadata": {"istio": {"config": path}}}

    host = "reviews.default.svc.cluster.local"
    prefix = "type.googleapis.com/envoy.admin.v3."
    cluster = {"name": f"outbound|9080||{host}", "metadata": origin("destination-rule", objects["rule"])}
    route = {
        "match": {"prefix": "/"},
        "route": {"cluster": cluster["name"]},
        "metadata": origin("virtual-service", objects["virtual"]),
    }
    configuration = {"name": "9080", "virtual_hosts": [{"domains": [host], "routes": [route]}]}
    configs = [
        {"@type": f"{prefix}ClustersConfigDump", "dynamic_active_clusters": [{"cluster": cluster}]},
        {"@type": f"{prefix}RoutesConfigDump", "dynamic_route_configs": [{"route_config": configuration}]},
    ]
    return json.dumps({"configs": configs}).encode()


def test_a_proxy_that_lags_behind_shows(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "dump.json"
    file.write_bytes(dump_of({"rule": "gone", "virtual": "gone-too"}))
    arguments = ("pod", bookinfo.REVIEWS_V1, "--file", str(file))
    text = bookinfo.describe(tmp_path, *arguments, objects=(bookinfo.BASE, bookinfo.SUBSETS))

    assert "WARNING: Proxy is stale; it references to non-existent destination rule gone.default\n" in text
    assert "WARNING: Proxy is stale; it references to non-existent virtual service gone-too.default\n" in text


def test_a_control_plane_tells_what_it_sent(tmp_path: pathlib.Path) -> None:
    target = f"/debug/config_dump?proxyID={bookinfo.REVIEWS_V1}.default"
    answers = Answers({target: dump_of({"rule": "reviews", "virtual": "old"})})
    with on_port(answers) as address:
        arguments = ("pod", bookinfo.REVIEWS_V1, "--monitoring", address)
        text = bookinfo.describe(tmp_path, *arguments, objects=(bookinfo.BASE, bookinfo.SUBSETS))

    assert answers.requests == [f"GET {target}"]
    assert RULE in text
    assert "non-existent virtual service old.default" in text


# -- what cannot be described -----------------------------------------------------------------------------------------


def fails(*arguments: object) -> tuple[int, str]:
    result = cli_runs.run(*arguments)
    return result.exit_code, result.stderr


def test_what_cannot_be_described_is_said(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "objects.yaml"
    path.write_text(bookinfo.BASE)

    assert fails("describe", "pod", "-f", path) == (1, "Error: expecting pod name\n")
    assert fails("x", "des", "svc", "-f", path) == (1, "Error: expecting service name\n")
    assert fails("describe", "node", "x") == (1, 'Error: unknown resource type "node"\n')
    code, text = fails("describe", "pod", "nope", "-f", path)
    assert (code, text.startswith('Error: unable to retrieve Pod: pods "nope" not found in namespace default')) == (
        1,
        True,
    )
    assert bookinfo.REVIEWS_V1 in text
    assert fails("describe", "pod", "deploy/nope", "-f", path) == (1, 'Error: no pods match "deploy/nope"\n')


def test_a_pod_without_a_sidecar_is_warned_of_and_fails(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "objects.yaml"
    path.write_text(bookinfo.BASE.replace("{name: istio-proxy,", "{name: other,"))
    result = cli_runs.run("describe", "pod", bookinfo.REVIEWS_V1, "-f", path)

    assert result.exit_code == 1
    assert (
        f"WARNING: {bookinfo.REVIEWS_V1} is not part of mesh; no Istio sidecar\n--------------------\n" in result.stdout
    )
    assert result.stderr.startswith("Error: failed to execute command on sidecar: ")
    quiet = cli_runs.run("describe", "pod", bookinfo.REVIEWS_V1, "--ignoreUnmeshed", "-f", path)
    assert (quiet.exit_code, "WARNING" in quiet.stdout) == (0, False)


def test_the_first_pod_of_a_workload_is_meant(tmp_path: pathlib.Path) -> None:
    for reference in ("deploy/reviews", "deployment/reviews-v1.default", f"pod/{bookinfo.REVIEWS_V1}"):
        assert bookinfo.describe(tmp_path, "po", reference, objects=(bookinfo.BASE,)).startswith(HEAD)


def test_manifests_are_completed_as_a_mesh_would() -> None:
    shop = pathlib.Path(__file__).parents[2] / "samples" / "shop"
    text = cli_runs.run("describe", "pod", "deploy/cart-v1.shop", "-f", shop).stdout

    assert text.startswith("Pod: cart-v1-")
    assert '   Route to host "cart" subset "v1" with weight 90%\n' in text
    assert "RBAC policies: ns[shop]-policy[cart-callers]-rule[0]\n" in text
    assert "Applied PeerAuthentication:\n   default.shop\n" in text
