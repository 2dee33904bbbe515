"""`tls-check --all` over a mesh of mixed modes, written down before the first connection, and the connections then."""

import json
import os
import pathlib
from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest
import tls_mesh
import traffic_mesh
from local_mesh import LocalMesh, running
from tls_observed import observe
from traffic_mesh import TrafficMesh

from mizzen.local import observer


class Foretold(msgspec.Struct, frozen=True, kw_only=True):
    """One pair of the prediction file."""

    client: str
    host: str
    port: int
    protocol: str
    server: str
    verdict: str
    assumes: str
    cause: str
    """`Kind/name` of the object at fault."""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrafficMesh]:
    manifests = tmp_path_factory.mktemp("tls") / "manifests"
    manifests.mkdir()
    traffic_mesh.lay_programs(manifests)
    (manifests / "base.yaml").write_text(tls_mesh.build_base())
    with running(LocalMesh(manifests, f"tls-{os.getpid()}")) as local:
        mesh = TrafficMesh(local)
        mesh.apply("services", tls_mesh.build_services())
        assert not mesh.errors(), "\n".join(mesh.errors())
        yield mesh
        assert observer.rejections(local.proxies()) == {}


@pytest.fixture(scope="module")
def foretold(mesh: TrafficMesh, tmp_path_factory: pytest.TempPathFactory) -> tuple[Foretold, ...]:
    """The predictions, from the manifests alone: the mesh is told nothing and asked nothing but its pods' addresses."""
    path = tmp_path_factory.mktemp("foretold") / "predictions.json"
    done = mesh.local.run(
        "tls-check",
        "--all",
        "-o",
        "json",
        "-f",
        str(mesh.local.manifests),
        "-f",
        str(mesh.local.layout.config),
        check=False,
        seconds=300,
    )
    assert done.returncode == 1, done.stderr
    path.write_text(done.stdout)
    return tuple(_read(json.loads(path.read_text())))


def _read(checks: list[dict[str, object]]) -> Iterator[Foretold]:
    wanted = {(name, port): (protocol, server) for name, port, protocol, server in tls_mesh.targets()}
    clients = {f"{name}.{space}": name for name, space in tls_mesh.CLIENTS.items()}
    for check in checks:
        client = check["client"]
        assert isinstance(client, dict)
        place = (str(check["host"]), int(str(check["port"])))
        if client["pod"] in clients and place in wanted:
            protocol, server = wanted[place]
            if clients[client["pod"]] == tls_mesh.GATEWAY and protocol != "http":
                continue
            yield Foretold(
                client=clients[client["pod"]],
                host=place[0],
                port=place[1],
                protocol=protocol,
                server=server,
                verdict=str(check["verdict"]),
                assumes=str(check["assumes"]),
                cause=_named(check["cause"]),
            )


def _named(cause: object) -> str:
    return f"{cause['kind']}/{cause['name']}" if isinstance(cause, dict) else ""


def test_every_certain_verdict_comes_true(mesh: TrafficMesh, foretold: tuple[Foretold, ...]) -> None:
    assert len({(pair.host, pair.port) for pair in foretold}) >= 30
    met = [(pair, _observe(mesh, pair)) for pair in foretold]
    print(
        "\n".join(
            f"{seen:12} {pair.verdict:12} {pair.client:8} {pair.host}:{pair.port} {pair.assumes}" for pair, seen in met
        )
    )
    certain = [(pair, seen) for pair, seen in met if not pair.assumes]
    print(f"{len(met)} pairs, {len(certain)} certain: {dict(Counter(pair.verdict for pair, _ in certain))}")
    wrong = [f"{pair}: {seen}" for pair, seen in certain if seen != pair.verdict]
    assert not wrong, "\n".join(wrong)
    assert {pair.verdict for pair, _ in certain} >= {"OK", "TLS", "PLAINTEXT", "CONFLICT"}
    assert len(certain) >= 0.85 * len(met)


def _observe(mesh: TrafficMesh, pair: Foretold) -> str:
    return observe(mesh, pair.client, pair.host, pair.port, pair.protocol, pair.server)


REFUSED = ("disabled-in", "subset-in", "simple-in", "simple-open", "mutual-off", "mutual-off-tcp")
"""Services that `caller` cannot reach, by rules of its own, and whose connections end in a line of its log at once."""


def test_the_logs_of_refused_connections_lead_to_the_same_objects(
    mesh: TrafficMesh, foretold: tuple[Foretold, ...], tmp_path: pathlib.Path
) -> None:
    pairs = [p for p in foretold if p.client == "caller" and p.host.partition(".")[0] in REFUSED]
    assert len(pairs) == len(REFUSED)
    for pair in pairs:
        for _ in range(3):
            assert _observe(mesh, pair) == "CONFLICT"
    for pair in pairs:
        mesh.logged("caller", f"|{pair.host}", 3)
    log = tmp_path / "all.log"
    logs = (mesh.local.layout.log(pod.namespace, pod.name, "istio-proxy") for pod in mesh.local.proxies())
    log.write_text("".join(path.read_text(errors="replace") for path in logs))

    manifests = ("-f", str(mesh.local.manifests), "-f", str(mesh.local.layout.config))
    done = mesh.local.run("trace", "--from-log", str(log), "-o", "json", *manifests, check=False, seconds=300)
    groups = json.loads(done.stdout)["groups"]
    for pair in pairs:
        told = [group for group in groups if group["subject"]["host"] == pair.host]
        print(pair.host, [(group["cause"], group["count"], _named(group["object"])) for group in told], pair.cause)
        assert pair.cause in {_named(group["object"]) for group in told}, pair
        assert all(group["object"]["line"] for group in told)
