"""One real Envoy that stands for the workloads of many policy sets, each at addresses of its own.

The listeners are what Mizzen compiles for the workloads' sidecars in dialect `envoy`. Changed is what a test must
change: they bind the workloads' addresses (their filter chains match on the port that is called, as behind a
redirection), their clusters lead to a program that answers everything, and access logs tell Envoy's reasons.
"""

import asyncio
import contextlib
import json
import pathlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import meshes
from claims import own_port
from static_envoy import started
from traffic_certificates import ROOT
from truth_cards import second_address
from truth_policies import PolicySet
from truth_worlds import (
    AUTO_PORTS,
    FILTER,
    HTTP_PORTS,
    LABELS,
    METADATA,
    NAMESPACE,
    PROVIDERS,
    TCP_PORTS,
    World,
    request_authentication,
)

from mizzen import protos
from mizzen.agent.binaries import find_envoy
from mizzen.compile import resource, snapshot
from mizzen.incremental import Engine

_EXTENSIONS = "type.googleapis.com/envoy.extensions."
_MANAGER = "envoy.filters.network.http_connection_manager"
_PORTS = (*HTTP_PORTS, *TCP_PORTS, *AUTO_PORTS)
_ANSWERS = {"yes": b"", "no": b"\x0a\x02\x08\x07"}
"""CheckResponses: all is well, and the status PERMISSION_DENIED."""

_SERVICES = f"""
apiVersion: v1
kind: Service
metadata: {{name: till, namespace: {NAMESPACE}}}
spec:
  clusterIP: 10.96.0.1
  selector: {{app: {LABELS["app"]}}}
  ports:
  - {{name: http, port: 80, targetPort: 8080}}
  - {{name: http-more, port: 81, targetPort: 8081}}
  - {{name: tcp, port: 90, targetPort: 9000}}
  - {{name: tcp-more, port: 91, targetPort: 9001}}
  - {{name: any, port: 70, targetPort: 7000}}
"""


def _authorizer_service(number: int, name: str) -> str:
    return meshes.service(name, "auth", f"10.96.1.{number + 1}", "{name: grpc, port: 8000}")


def engine_of(policies: PolicySet) -> Engine:
    """A mesh with the set's workload, its policies and the external authorizers."""
    services = (_authorizer_service(i, name) for i, name in enumerate(PROVIDERS))
    db = meshes.mesh_of(_SERVICES, *services, config=policies.world.mesh_config)
    for document in (request_authentication(policies.world), *policies.documents):
        meshes.golden.set_object(db, document)
    return db


def _listener(policies: PolicySet, log: dict[str, Any]) -> dict[str, Any]:
    db = engine_of(policies)
    who = meshes.proxy(NAMESPACE, ip=policies.address, labels=LABELS, dialect="envoy")
    told = snapshot.resources(db, who, resource.LISTENER, None)
    listener = next(protos.to_json(r.message()) for r in told if r.name == "virtualInbound")
    addresses = [
        {"address": {"socketAddress": {"address": address, "portValue": port}}}
        for address in (policies.address, second_address(policies.address))
        for port in _PORTS
    ]
    listener |= {
        "name": f"workload-{policies.number}",
        **addresses[0],
        "additionalAddresses": addresses[1:],
        "accessLog": [],
    }
    del listener["maxConnectionsToAcceptPerSocketEvent"]
    for chain in listener["filterChains"]:
        _prepare(chain, policies.world, log)
    return listener


def _prepare(chain: dict[str, Any], world: World, log: dict[str, Any]) -> None:
    """The chain with its secrets in it, its own access log, and in front of all filters one that leaves metadata."""
    last = chain["filters"][-1]["typedConfig"]
    last["accessLog"] = [log]
    if chain["filters"][-1]["name"] == _MANAGER:
        values = [{"metadataNamespace": name, "value": value} for name, value in METADATA.items()]
        config = {"@type": f"{_EXTENSIONS}filters.http.set_metadata.v3.Config", "metadata": values}
        last["httpFilters"].insert(0, {"name": FILTER, "typedConfig": config})
    if "transportSocket" in chain:
        context = chain["transportSocket"]["typedConfig"]["commonTlsContext"]
        for secret in context["tlsCertificateSdsSecretConfigs"]:
            del secret["sdsConfig"]
        del context["combinedValidationContext"]["validationContextSdsSecretConfig"]["sdsConfig"]


# -- surroundings -----------------------------------------------------------------------------------------------------


def _backend(name: str, port: int, status: int) -> dict[str, Any]:
    """Answers every HTTP request with that status, and on other connections says what it hears."""
    manager = {
        "@type": f"{_EXTENSIONS}filters.network.http_connection_manager.v3.HttpConnectionManager",
        "statPrefix": name,
        "httpFilters": [{"name": "router", "typedConfig": {"@type": f"{_EXTENSIONS}filters.http.router.v3.Router"}}],
        "routeConfig": {
            "virtualHosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "directResponse": {"status": status}}],
                }
            ]
        },
    }
    echo = {"@type": f"{_EXTENSIONS}filters.network.echo.v3.Echo"}
    inspector = {"@type": f"{_EXTENSIONS}filters.listener.http_inspector.v3.HttpInspector"}
    return {
        "name": name,
        "address": {"socketAddress": {"address": "127.0.0.1", "portValue": port}},
        "listenerFilters": [{"name": "inspector", "typedConfig": inspector}],
        "filterChains": [
            {
                "name": "http",
                "filterChainMatch": {"applicationProtocols": ["http/1.0", "http/1.1", "h2c"]},
                "filters": [{"name": _MANAGER, "typedConfig": manager}],
            },
            {"name": "tcp", "filters": [{"name": "echo", "typedConfig": echo}]},
        ],
    }


def _cluster(name: str, port: int, *, http2: bool = False) -> dict[str, Any]:
    endpoint = {"endpoint": {"address": {"socketAddress": {"address": "127.0.0.1", "portValue": port}}}}
    cluster: dict[str, Any] = {
        "name": name,
        "type": "STATIC",
        "connectTimeout": "30s",
        "loadAssignment": {"clusterName": name, "endpoints": [{"lbEndpoints": [endpoint]}]},
    }
    if http2:
        cluster["typedExtensionProtocolOptions"] = {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": f"{_EXTENSIONS}upstreams.http.v3.HttpProtocolOptions",
                "explicitHttpConfig": {"http2ProtocolOptions": {}},
            }
        }
    return cluster


def _access_log(path: pathlib.Path) -> dict[str, Any]:
    names = {
        "remote": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%",
        "local": "%DOWNSTREAM_LOCAL_ADDRESS%",
        "status": "%RESPONSE_CODE%",
        "details": "%RESPONSE_CODE_DETAILS%",
        "termination": "%CONNECTION_TERMINATION_DETAILS%",
        "flags": "%RESPONSE_FLAGS%",
        "http": "%DYNAMIC_METADATA(envoy.filters.http.rbac)%",
        "network": "%DYNAMIC_METADATA(envoy.filters.network.rbac)%",
        "common": "%DYNAMIC_METADATA(envoy.common)%",
    }
    config = {
        "@type": f"{_EXTENSIONS}access_loggers.file.v3.FileAccessLog",
        "path": str(path),
        "logFormat": {"jsonFormat": names},
    }
    return {"name": "envoy.access_loggers.file", "typedConfig": config}


def _secrets() -> list[dict[str, Any]]:
    chain, key = ROOT.issue("spiffe://cluster.local/ns/shop/sa/till")
    pair = {"certificateChain": {"inlineString": chain}, "privateKey": {"inlineString": key}}
    trusted = {"trustedCa": {"inlineString": ROOT.pem}}
    return [{"name": "default", "tlsCertificate": pair}, {"name": "ROOTCA", "validationContext": trusted}]


@contextlib.asynccontextmanager
async def _authorizer(answer: bytes) -> AsyncIterator[int]:
    """An external authorizer over gRPC with one answer; gives its port."""

    async def check(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        return answer

    server = grpc.aio.server()
    handlers = {"Check": grpc.unary_unary_rpc_method_handler(check)}
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("envoy.service.auth.v3.Authorization", handlers)]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


class Table:
    """The running Envoy's access log."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    def entries(self) -> list[dict[str, Any]]:
        """All that it has written so far."""
        text = self._path.read_text() if self._path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@contextlib.asynccontextmanager
async def running(sets: Sequence[PolicySet], folder: pathlib.Path) -> AsyncIterator[Table]:
    """The Envoy of these policy sets while it runs."""
    yes, no = own_port(), own_port()
    async with _authorizer(_ANSWERS["yes"]) as yes_grpc, _authorizer(_ANSWERS["no"]) as no_grpc:
        ports = {"yes-http": yes, "no-http": no, "yes-grpc": yes_grpc, "no-grpc": no_grpc}
        log = folder / "access.log"
        entry = _access_log(log)
        inbound = (*(f"inbound|{port}||" for port in _PORTS), "InboundPassthroughCluster", "BlackHoleCluster")
        bootstrap = {
            "node": {"id": "truth", "cluster": "test"},
            "admin": {"address": {"pipe": {"path": str(folder / "admin.sock")}}},
            "staticResources": {
                "listeners": [_backend("yes", yes, 200), _backend("no", no, 403)]
                + [_listener(one, entry) for one in sets],
                "clusters": [
                    *(_cluster(name, yes) for name in inbound),
                    *(
                        _cluster(f"outbound|8000||{name}.auth.svc.cluster.local", port, http2=name.endswith("grpc"))
                        for name, port in ports.items()
                    ),
                ],
                "secrets": _secrets(),
            },
        }
        async with _process(bootstrap, folder):
            yield Table(log)


@contextlib.asynccontextmanager
async def _process(bootstrap: dict[str, Any], folder: pathlib.Path) -> AsyncIterator[None]:
    config, log = folder / "envoy.json", folder / "envoy.log"
    config.write_text(json.dumps(bootstrap))
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            str(find_envoy("", "")), "-c", str(config), "--concurrency", "1", "--disable-hot-restart",
            "--file-flush-interval-msec", "50", stdout=output, stderr=output,
        )  # fmt: skip
    try:
        await started(process, log)
        yield
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
