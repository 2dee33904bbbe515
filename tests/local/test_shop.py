"""The sample shop as a real mesh: traffic, identities, changes and failures while requests run."""

import collections
import errno
import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import Iterator

import pytest
from eventually import eventually_blocking
from local_mesh import LocalMesh, Outcome, Traffic, get
from traffic_shares import assert_share

from mizzen.local import observer, runtime

pytestmark = [pytest.mark.local, pytest.mark.envoy]

BROKEN = "apiVersion: v1\nkind: Service\nmetadata: {name: x\n---\napiVersion: v1\nkind: Nonsense\nmetadata: {name: y}\n"


def xfcc(part: dict) -> tuple[str, str]:
    """Who received and who called, as the receiver's sidecar wrote it."""
    text = part["served_by"]["x-forwarded-client-cert"]
    fields = dict(item.partition("=")[::2] for item in text.rpartition(",")[2].split(";"))
    return fields["By"], fields["URI"]


def versions(outcomes: list[Outcome]) -> collections.Counter[str]:
    return collections.Counter(item.body["cart"]["version"] for item in outcomes)


def sent(mesh: LocalMesh) -> dict[str, tuple[int, int]]:
    """Responses and their bytes, by type, that the present control plane has sent."""
    with urllib.request.urlopen(f"http://{mesh.state.control_plane.monitoring}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found = re.findall(r'pilot_xds_config_size_bytes_(count|sum){type="(\w+)"} (\S+)', text)
    values = {(kind, word): int(float(value)) for word, kind, value in found}
    return {kind: (values[kind, "count"], values[kind, "sum"]) for kind, _ in values}


def all_synced(mesh: LocalMesh) -> bool:
    table = mesh.run("proxy-status", "--mesh", mesh.name, check=False).stdout.splitlines()[1:]
    return len(table) == len(mesh.proxies()) and all(row.split()[2:6] == ["SYNCED"] * 4 for row in table)


@pytest.fixture
def address(shop: LocalMesh) -> str:
    return shop.gateway()


@pytest.fixture(autouse=True)
def nothing_was_refused(shop: LocalMesh) -> Iterator[None]:
    """Whatever a test does, no Envoy refuses what it is told."""
    yield
    assert observer.rejections(shop.proxies()) == {}


def test_identities_are_what_the_receivers_connections_say(address):
    body = get(address).body
    account = "spiffe://cluster.local/ns/{}/sa/{}".format
    assert xfcc(body) == (account("shop", "front"), account("istio-system", "istio-ingressgateway"))
    assert xfcc(body["cart"]) == (account("shop", "cart"), account("shop", "front"))
    assert xfcc(body["catalog"]) == (account("shop", "catalog"), account("shop", "front"))


def test_a_checkout_crosses_https_tcp_and_the_edge_of_the_mesh(address):
    outcomes = [get(address, "/checkout") for _ in range(40)]
    assert {item.status for item in outcomes} == {200}, outcomes
    greetings = {item.body["ledger"]["greeting"] for item in outcomes}
    assert greetings == {"READY ledger-0", "READY ledger-1"}
    assert {item.body["payments"]["paid"] for item in outcomes} == {True}
    assert {item.body["rates"]["served_by"]["x-forwarded-client-cert"] for item in outcomes} == {""}


def test_a_header_chooses_the_version(address):
    assert versions([get(address, headers={"x-user": "tester"}) for _ in range(20)]) == {"v2": 20}


def test_weights_split_requests(address):
    with Traffic(address, pause=0) as traffic:
        traffic.wait_for(400)
    assert traffic.failures == []
    counted = versions(traffic.outcomes)
    assert_share(counted["v2"], counted.total(), 0.1)


def test_a_caller_that_no_policy_names_is_denied(address):
    denied = get(address, "/ask-catalog?url=http://cart:8080/").body["catalog"]["answer"]
    assert (denied["status"], denied["text"]) == (403, "RBAC: access denied")
    allowed = get(address, "/ask-catalog?url=http://front/healthz").body["catalog"]["answer"]
    assert allowed["status"] == 200


@pytest.mark.parametrize("target", ["cart-v2", "catalog", "front"])
def test_plain_text_from_outside_the_mesh_is_refused_by_address_and_by_name(shop, target):
    script = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=50).status)"
    name = target.partition("-")[0]
    port = 80 if name == "front" else 8080
    for host in (f"{shop.pods(target)[0].address}:8080", f"{name}.shop.svc.cluster.local:{port}"):
        refused = shop.in_pod("rates", "python3", "-c", script, f"http://{host}/healthz")
        assert "Connection reset by peer" in refused.stderr, (host, refused)
    allowed = shop.in_pod("rates", "python3", "-c", script, "http://rates.outside.svc:8080/healthz")
    assert allowed.stdout == "200\n", allowed


def test_an_address_that_nobody_serves_is_refused_at_once(shop):
    script = "import socket; s = socket.socket(); s.settimeout(9); print(s.connect_ex(('10.96.77.77', 80)))"
    assert int(shop.in_pod("rates", "python3", "-c", script).stdout) == errno.EHOSTUNREACH


def test_names_resolve_as_in_a_cluster_with_and_without_a_sidecar(shop):
    script = (
        "import socket, sys; print(*sorted(i[4][0] for i in socket.getaddrinfo(sys.argv[1], 80, socket.AF_INET, 1)))"
    )
    ledgers = sorted(pod.address for pod in shop.pods("ledger"))
    for pod, short in (("catalog", "ledger"), ("rates", "ledger.shop")):
        eventually_blocking(
            lambda pod=pod, short=short: shop.in_pod(pod, "python3", "-c", script, short).stdout.split() == ledgers
        )
    single = shop.in_pod("rates", "python3", "-c", script, "ledger-1.ledger.shop.svc.cluster.local")
    assert single.stdout.split() == [shop.pod("ledger-1").address]
    unknown = shop.in_pod("catalog", "python3", "-c", script, "nobody.example.org")
    assert unknown.returncode != 0


def test_a_killed_control_plane_is_missed_by_nobody(shop, address):
    """Requests go on, it comes back, nothing drains, and only what differs is sent."""
    proxies = shop.proxies()
    watched = (
        r"^listener_manager\.(total_(listeners|filter_chains)_draining|lds\.update_success)$"
        r"|^listener_manager\.listener_(added|modified|removed|in_place_updated)$"
        r"|^cluster_manager\.cluster_(added|modified|removed)$"
    )
    eventually_blocking(lambda: all_synced(shop))
    before = {pod.name: observer.counters(pod, watched) for pod in proxies}
    plane = shop.state.control_plane
    with Traffic(address) as traffic:
        traffic.wait_for(50)
        os.kill(plane.pid, signal.SIGKILL)
        killed = time.monotonic()
        eventually_blocking(lambda: shop.state.control_plane.restarts > plane.restarts)
        eventually_blocking(lambda: shop.state.control_plane.ready and all_synced(shop))
        took = time.monotonic() - killed
        traffic.wait_for(100)
    assert traffic.failures == []
    assert shop.state.control_plane.pid != plane.pid
    assert {pod.name: observer.counters(pod, watched) for pod in proxies} == before
    # Whoever asks by name is answered, if only with what it has; nothing else is sent.
    assert set(sent(shop)) <= {"eds", "rds"}
    print(
        f"control plane killed: {len(traffic.outcomes)} requests, 0 failed, all SYNCED after {took:.1f} s; {sent(shop)}"
    )


def test_edited_weights_come_into_force_everywhere_and_fail_no_request(shop, address):
    def weights(pod: runtime.Pod) -> set[int]:
        """The weights that this Envoy routes by."""
        dump = json.loads(observer.ask_envoy(pod, "/config_dump?resource=dynamic_route_configs"))
        clusters = [
            cluster
            for config in dump.get("configs", [])
            for host in config.get("route_config", {}).get("virtual_hosts", [])
            for route in host["routes"]
            for cluster in route.get("route", {}).get("weighted_clusters", {}).get("clusters", [])
            if "|v2|cart.shop" in cluster["name"]
        ]
        return {cluster["weight"] for cluster in clusters}

    sidecars = [pod for pod in shop.proxies() if pod.namespace == "shop"]
    assert [weights(pod) for pod in sidecars] == [{10}] * len(sidecars)
    with Traffic(address) as traffic:
        traffic.wait_for(50)
        shop.edit("traffic.yaml", "weight: 90", "weight: 50")
        # The first edit alone gives 50/10; both are one change for whoever looks at the file twice within 50 ms.
        shop.edit("traffic.yaml", "weight: 10", "weight: 50")
        edited = time.monotonic()
        eventually_blocking(lambda: all(weights(pod) == {50} for pod in sidecars))
        took = time.monotonic() - edited
        mark = len(traffic.outcomes)
        traffic.wait_for(300)
        shop.edit(
            "traffic.yaml",
            "weight: 50\n        - destination: {host: cart, subset: v2}\n          weight: 50",
            "weight: 90\n        - destination: {host: cart, subset: v2}\n          weight: 10",
        )
        eventually_blocking(lambda: all(weights(pod) == {10} for pod in sidecars))
    assert traffic.failures == []
    after = versions(traffic.outcomes[mark : mark + 300])
    assert_share(after["v2"], 300, 0.5)
    print(f"50/50 in force at {len(sidecars)} sidecars after {took:.2f} s, {len(traffic.outcomes)} requests, 0 failed")


def test_a_changed_deployment_is_replaced_under_traffic(shop, address):
    before = {pod.name for pod in shop.pods("catalog")}
    with Traffic(address) as traffic:
        traffic.wait_for(30)
        shop.edit("catalog.yaml", "command: [python3, app.py, catalog]", "command: [python3, -u, app.py, catalog]")
        after = eventually_blocking(lambda: _only_new(shop, "catalog", before))
        traffic.wait_for(50)
    assert traffic.failures == []
    assert len(after) == len(before)
    shop.edit("catalog.yaml", "command: [python3, -u, app.py, catalog]", "command: [python3, app.py, catalog]")
    eventually_blocking(lambda: {pod.name for pod in shop.pods("catalog") if pod.ready} == before)


def _only_new(shop: LocalMesh, prefix: str, old: set[str]) -> set[str]:
    """The ready pods, once none of the old ones is left."""
    pods = shop.pods(prefix)
    names = {pod.name for pod in pods if pod.ready}
    return names if pods and len(names) == len(pods) and not names & old else set()


def test_replicas_come_and_go_with_their_endpoints(shop, address):
    with Traffic(address, headers={"x-user": "tester"}) as traffic:
        shop.edit(
            "cart.yaml",
            "metadata: {name: cart-v2, namespace: shop}\nspec:\n",
            "metadata: {name: cart-v2, namespace: shop}\nspec:\n  replicas: 2\n",
        )
        eventually_blocking(lambda: sum(pod.ready for pod in shop.pods("cart-v2")) == 2)
        names = {pod.name for pod in shop.pods("cart-v2")}
        eventually_blocking(lambda: {item.body["cart"]["served_by"]["pod"] for item in traffic.outcomes[-40:]} == names)
        shop.edit(
            "cart.yaml",
            "  replicas: 2\n  selector: {matchLabels: {app: cart, version: v2}}",
            "  selector: {matchLabels: {app: cart, version: v2}}",
        )
        eventually_blocking(lambda: len(shop.pods("cart-v2")) == 1)
        traffic.wait_for(50)
    assert traffic.failures == []


def test_a_broken_document_is_told_and_everything_else_is_served(shop, address):
    broken = shop.manifests / "broken.yaml"
    try:
        broken.write_text(BROKEN)
        eventually_blocking(lambda: "broken.yaml:" in shop.text)
        assert get(address).status == 200
    finally:
        broken.unlink()


def test_a_pod_whose_reference_leads_nowhere_waits_for_it_and_disturbs_nobody(shop, address):
    late = shop.manifests / "late.yaml"
    pod = """\
apiVersion: v1
kind: Pod
metadata: {name: late, namespace: shop, labels: {app: late}}
spec:
  containers:
    - name: late
      command: [python3, app.py, cart]
      env:
        - name: VERSION
          valueFrom: {configMapKeyRef: {name: late, key: version}}
"""
    settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: late, namespace: shop}\ndata: {version: v7}\n"
    try:
        late.write_text(pod)
        eventually_blocking(lambda: "ConfigMap shop/late does not exist" in shop.text)
        assert get(address).status == 200
        late.write_text(pod + settings)
        eventually_blocking(lambda: any(item.ready for item in shop.pods("late")))
    finally:
        late.unlink()
    eventually_blocking(lambda: not shop.pods("late"))


def test_a_killed_sidecar_comes_back(shop, address):
    pod = shop.pods("cart-v2")[0]
    proxy = next(item for item in pod.containers if item.name == "istio-proxy")
    os.kill(proxy.pid, signal.SIGKILL)

    def is_back() -> bool:
        now = next(item for item in shop.pod(pod.name).containers if item.name == "istio-proxy")
        return now.ready and now.restarts > proxy.restarts

    eventually_blocking(is_back)
    eventually_blocking(lambda: get(address, headers={"x-user": "tester"}).status == 200)
    eventually_blocking(lambda: all_synced(shop))
    eventually_blocking(lambda: f"{pod.name}.shop/istio-proxy killed by SIGKILL and is started again" in shop.text)


def test_logs_of_programs_proxies_and_the_control_plane(shop, address):
    assert get(address).status == 200
    name = shop.pods("cart-v1")[0].name
    assert "cart listens on 8080" in shop.run("logs", f"{name}.shop", "--mesh", shop.name).stdout
    proxy = shop.run("logs", name, "-c", "istio-proxy", "--mesh", shop.name).stdout
    assert "connected to the control plane" in proxy
    assert len(shop.run("logs", name, "-c", "istio-proxy", "--tail", "2", "--mesh", shop.name).stdout.splitlines()) == 2
    assert "Push" in shop.run("logs", "control-plane", "--mesh", shop.name).stdout
    missing = shop.run("logs", name, "-c", "nobody", "--mesh", shop.name, check=False)
    assert "there are: cart, istio-proxy" in missing.stderr


def test_commands_in_a_pod_run_as_its_program_and_are_captured(shop):
    name = shop.pods("front")[0].name
    identity = shop.run("exec", name, "--mesh", shop.name, "--", "id", "-u").stdout
    assert identity == "65532\n"
    script = "import urllib.request as u; print(u.urlopen('http://catalog:8080/').read().decode())"
    answer = json.loads(shop.run("exec", name, "--mesh", shop.name, "--", "python3", "-c", script).stdout)
    assert xfcc(answer)[1] == "spiffe://cluster.local/ns/shop/sa/front"
    failing = shop.run("exec", name, "--mesh", shop.name, "--", "sh", "-c", "exit 7", check=False)
    assert failing.returncode == 7
    assert shop.run("exec", name, "-c", "istio-proxy", "--mesh", shop.name, "--", "id", "-u").stdout == "1337\n"
