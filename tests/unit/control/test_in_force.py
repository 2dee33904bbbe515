"""What is not in force is told over HTTP, in the log and as a metric, once it is so and until it is no more."""

import asyncio
import itertools
import json
import pathlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

import adsclient
import pytest
from control_planes import Plane, control_plane

from mizzen.compile.resource import CLUSTER


def service(name: str, port: int = 80) -> str:
    return (
        f"apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: default}}\n"
        f"spec:\n  clusterIP: 10.96.0.1\n  ports:\n  - {{name: http, port: {port}}}\n"
    )


def cluster(name: str, port: int = 80) -> str:
    return f"outbound|{port}||{name}.default.svc.cluster.local"


def write(folder: pathlib.Path, name: str, text: str) -> None:
    (folder / "config").mkdir(exist_ok=True)
    (folder / "config" / name).write_text(text)


async def watch_clusters(client: adsclient.Client, name: str) -> None:
    """Read until the client holds the cluster."""
    async with asyncio.timeout(60):
        while name not in client.held.get(CLUSTER, {}):
            await client.read_acked()


def peer(name: str, year: int, selector: str = "") -> str:
    return (
        "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\n"
        f"metadata: {{name: {name}, namespace: default, creationTimestamp: '{year}-01-01T00:00:00Z'}}\n"
        f"spec: {{mtls: {{mode: STRICT}}{selector}}}\n"
    )


PATCH = """
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: timeout, namespace: default}
spec: {configPatches: [{applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: -3s}}}]}
"""


async def told(plane: Plane) -> list[dict[str, Any]]:
    _, text = await plane.get("/debug/problems")
    objects: list[dict[str, Any]] = json.loads(text)["objects"]
    return objects


async def wait_for_codes(plane: Plane, *codes: str) -> list[dict[str, Any]]:
    """Wait until exactly these are told of, by code."""
    found: list[dict[str, Any]] = []

    async def are_there() -> bool:
        found[:] = await told(plane)
        return sorted(entry["code"] for entry in found) == sorted(codes)

    await eventually_told(are_there)
    return found


async def eventually_told(condition: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again; what is told is told over HTTP, so there is nothing to wait on."""
    async with asyncio.timeout(60):
        for _ in itertools.count():
            if await condition():
                return
            await asyncio.sleep(0.02)


async def test_what_has_no_effect_is_told_before_any_proxy_asks_and_until_it_is_mended(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    write(tmp_path, "a.yaml", peer("old", 2025))
    async with control_plane(tmp_path) as plane:
        before = time.monotonic()
        write(tmp_path, "b.yaml", "\n" + peer("young", 2026))
        (entry,) = await wait_for_codes(plane, "shadowed")
        print(f"told {time.monotonic() - before:.2f} s after the change")
        assert (entry["kind"], entry["namespace"], entry["name"]) == ("PeerAuthentication", "default", "young")
        assert (pathlib.Path(entry["file"]).name, entry["line"]) == ("b.yaml", 2)
        metric = 'mizzen_object_in_force{kind="PeerAuthentication",reason="shadowed"} 1'
        assert metric in (await plane.get("/metrics"))[1]
        before = time.monotonic()
        write(tmp_path, "b.yaml", peer("young", 2026, ", selector: {matchLabels: {app: a}}"))
        await wait_for_codes(plane)
        print(f"gone {time.monotonic() - before:.2f} s after the change")
        text = (await plane.get("/metrics"))[1]
        assert metric not in text
        assert 'mizzen_object_in_force{kind="PeerAuthentication",reason=""} 2' in text
    first, last = [record.getMessage() for record in caplog.records if "has no effect" in record.getMessage()]
    assert last == f"no longer: {first}".replace("b.yaml:2", "b.yaml:1")


async def test_a_patch_that_a_connected_envoy_would_refuse_is_told_while_it_is_connected(
    tmp_path: pathlib.Path,
) -> None:
    write(tmp_path, "a.yaml", service("cart"))
    write(tmp_path, "b.yaml", PATCH)
    async with control_plane(tmp_path) as plane:
        node = adsclient.node(MIZZEN_DIALECT="envoy")
        async with adsclient.Client(plane.target("--grpcAddr"), node=node) as client:
            await client.subscribe(CLUSTER)
            await client.read_acked()
            found = await wait_for_codes(plane, "questionable", "unusable-patch")
            assert {entry["name"] for entry in found} == {"timeout"}


async def test_what_a_proxy_refuses_is_told_of_the_object_behind_it(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "a.yaml", service("cart"))
    write(
        tmp_path,
        "b.yaml",
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: rule, namespace: default}\n"
        "spec: {host: cart, trafficPolicy: {connectionPool: {tcp: {maxConnections: 5}}}}\n",
    )
    write(
        tmp_path, "c.yaml", PATCH.replace("applyTo: CLUSTER,", "applyTo: CLUSTER, match: {cluster: {service: other}},")
    )
    async with control_plane(tmp_path) as plane, adsclient.Client(plane.target("--grpcAddr")) as client:
        await client.subscribe(CLUSTER)
        answer = await client.read()
        await client.nack(answer, f"{cluster('cart')}: no good")
        found = await wait_for_codes(plane, "questionable", "rejected")
        (entry,) = [entry for entry in found if entry["code"] == "rejected"]
        assert (entry["kind"], entry["name"]) == ("DestinationRule", "rule")
        assert entry["message"].endswith(
            f"CDS {cluster('cart')} is refused by Envoy: Internal:{cluster('cart')}: no good"
        )
        write(tmp_path, "a.yaml", service("cart", 81))
        await watch_clusters(client, cluster("cart", 81))
        await wait_for_codes(plane, "questionable")


async def test_a_refusal_that_may_have_several_causes_is_told_of_each(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "a.yaml", service("cart"))
    write(tmp_path, "b.yaml", PATCH.replace("-3s", "3s"))
    write(
        tmp_path,
        "c.yaml",
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: rule, namespace: default}\n"
        "spec: {host: cart, trafficPolicy: {connectionPool: {tcp: {maxConnections: 5}}}}\n",
    )
    async with control_plane(tmp_path) as plane:
        async with adsclient.Client(plane.target("--grpcAddr")) as client:
            await client.subscribe(CLUSTER)
            await client.nack(await client.read(), f"{cluster('cart')}: no good")
            found = await wait_for_codes(plane, "questionable", "rejected", "rejected")
            refused = [entry for entry in found if entry["code"] == "rejected"]
            assert {entry["name"] for entry in refused} == {"timeout", "rule"}
            assert all(entry["message"].startswith("may be why Envoy refuses CDS outbound|80||") for entry in refused)
        await wait_for_codes(plane, "questionable")


async def test_a_refusal_that_names_nothing_is_told_without_an_object(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "a.yaml", service("cart"))
    async with control_plane(tmp_path) as plane, adsclient.Client(plane.target("--grpcAddr")) as client:
        await client.subscribe(CLUSTER)
        await client.nack(await client.read(), "out of memory")
        (entry,) = await wait_for_codes(plane, "rejected")
        assert entry["message"] == "a response of CDS is refused by Envoy: Internal:out of memory"
        assert "kind" not in entry
        assert 'mizzen_object_in_force{kind="",reason="rejected"} 1' in (await plane.get("/metrics"))[1]


async def test_a_policy_broken_in_syntax_is_told_as_denying(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "a.yaml", "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p\n")
    async with control_plane(tmp_path) as plane:
        found = await wait_for_codes(plane, "unreadable", "denies-all")
        assert {entry["name"] for entry in found} == {"p"}
        assert 'kind="AuthorizationPolicy",reason="denies-all"} 1' in (await plane.get("/metrics"))[1]
