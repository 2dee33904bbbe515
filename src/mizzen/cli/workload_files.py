"""What `mizzen experimental workload entry configure` does: reads a cluster, and writes the files for one machine.

In: the group, of a file or of the cluster; the mesh config, the roots of the group's namespace, the address of a
gateway, a token of the group's service account. Out: `cluster.env`, `mesh.yaml`, `root-cert.pem`, `istio-token` and
`hosts` in a folder. Whoever holds the token is the machine's identity for as long as the token lives, so it is told of.
"""

import asyncio
import pathlib
from collections.abc import Mapping
from typing import Any

import click
import msgspec
import yaml

from mizzen.api.decode import decode_object
from mizzen.api.networking.workload_group import WorkloadGroup
from mizzen.cli import clusters
from mizzen.errors import DecodeError, MizzenError
from mizzen.inject.machines import Choices, Machine
from mizzen.inject.workload import mapping
from mizzen.inject.yaml_texts import load_yaml
from mizzen.install.identity import Identity
from mizzen.sources.documents import parse_yaml
from mizzen.sources.kube.client import Client, Refused

_MODE = 0o744
_ROOTS = "istio-ca-root-cert"
_ROOTS_FILE = "root-cert.pem"
_AUDIENCE = "istio-ca"
_GROUPS = "/apis/networking.istio.io/v1"
_UNKNOWN_CLUSTER = "Kubernetes"
_GONE = 404


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The command line."""

    file: str
    name: str
    namespace: str
    output: str
    cluster_id: str
    ingress_ip: str
    ingress_service: str
    internal_ip: str
    external_ip: str
    autoregister: bool
    capture_dns: bool
    seconds: int
    revision: str
    kubeconfig: str
    context: str
    system: str

    @property
    def plane(self) -> Identity:
        """The control plane."""
        return Identity(namespace=self.system, revision=self.revision)


def configure(request: Request) -> None:
    """Write the files; nothing is written where something is missing."""
    if not request.file and not (request.name and request.namespace):
        raise MizzenError(
            "expecting a WorkloadGroup artifact file or the name and namespace of an existing WorkloadGroup"
        )
    if not request.output:
        raise MizzenError("expecting an output directory")
    if request.internal_ip and request.external_ip:
        raise MizzenError("the flags --internalIP and --externalIP are mutually exclusive")
    files = asyncio.run(_collect(request))
    _write(pathlib.Path(request.output), files)
    click.echo(f"Configuration generation into directory {request.output} was successful")


async def _collect(request: Request) -> dict[str, str]:
    async with Client(clusters.open_cluster(request.kubeconfig, request.context)) as client:
        group = _read_group(request.file, request.namespace) if request.file else await _find_group(client, request)
        namespace = mapping(group, "metadata")["namespace"]
        machine = Machine(
            group,
            await _read_mesh(client, request),
            Choices(
                cluster=request.cluster_id or await _find_cluster(client, request),
                discovery="" if request.plane.is_default else f"{request.plane.name}.{request.system}.svc:15012",
                captures_dns=request.capture_dns,
                registers=request.autoregister,
                internal_address=request.internal_ip,
                external_address=request.external_ip,
            ),
        )
        if machine.overridden_labels:
            _warn(
                "labels belong in the metadata of a WorkloadGroup; these of its template override them: "
                + ", ".join(f"{name}={value}" for name, value in sorted(machine.overridden_labels.items()))
            )
        return {
            "cluster.env": machine.environment(),
            "mesh.yaml": machine.mesh_config(),
            _ROOTS_FILE: await _read_roots(client, namespace),
            "istio-token": await _make_token(client, namespace, machine.service_account, request),
            "hosts": await _find_host(client, request),
        }


def _write(folder: pathlib.Path, files: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=_MODE)
        for name, text in files.items():
            path = folder / name
            path.touch(mode=_MODE)
            path.chmod(_MODE)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MizzenError(f"{error.filename}: {error.strerror}") from error


# -- the group ----------------------------------------------------------------------------------------------------


def _read_group(file: str, namespace: str) -> Mapping[str, Any]:
    try:
        text = pathlib.Path(file).read_text(encoding="utf-8")
        documents = [document.value for document in parse_yaml(text) if document.value]
    except OSError as error:
        raise MizzenError(f"open {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DecodeError(f"not a text: {error}", file) from error
    except DecodeError as error:
        raise DecodeError(str(error), file) from error
    if len(documents) != 1:
        raise MizzenError(f"{file}: expecting one WorkloadGroup, found {len(documents)} documents")
    return _check_group(documents[0], file, namespace)


async def _find_group(client: Client, request: Request) -> Mapping[str, Any]:
    name, namespace = request.name, request.namespace
    try:
        body = await client.get(f"{_GROUPS}/namespaces/{namespace}/workloadgroups/{name}")
    except Refused as refused:
        raise MizzenError(f"workloadgroup {name} not found in namespace {namespace}: {refused}") from refused
    return _check_group(msgspec.json.decode(body), f"WorkloadGroup {namespace}/{name}", namespace)


def _check_group(document: Any, place: str, namespace: str) -> Mapping[str, Any]:
    decoded = decode_object(document, default_namespace=namespace or "default")
    if not isinstance(decoded.object, WorkloadGroup):
        why = "; ".join(str(problem) for problem in decoded.problems) or "it is no WorkloadGroup"
        raise DecodeError(why, place)
    metadata = {**document["metadata"], "namespace": decoded.object.metadata.namespace}
    return {**document, "metadata": metadata}


# -- the cluster --------------------------------------------------------------------------------------------------


async def _read_map(client: Client, namespace: str, name: str) -> Mapping[str, Any]:
    """The data of a ConfigMap."""
    try:
        body = await client.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
    except Refused as refused:
        if refused.status != _GONE:
            raise
        raise MizzenError(f"configmap {name} was not found in namespace {namespace}: {refused}") from refused
    return mapping(msgspec.json.decode(body), "data")


async def _read_mesh(client: Client, request: Request) -> Mapping[str, Any]:
    name = f"istio{request.plane.suffix}"
    text = (await _read_map(client, request.system, name)).get("mesh") or ""
    return _parse(str(text), f"ConfigMap {request.system}/{name}, mesh")


async def _find_cluster(client: Client, request: Request) -> str:
    """The name that injection gives the cluster."""
    name = f"istio-sidecar-injector{request.plane.suffix}"
    try:
        data = await _read_map(client, request.system, name)
    except MizzenError as error:
        raise MizzenError(f"failed to automatically determine the --clusterID: {error}") from error
    values = _parse(str(data.get("values") or ""), f"ConfigMap {request.system}/{name}, values")
    return str(mapping(mapping(values, "global"), "multiCluster").get("clusterName") or _UNKNOWN_CLUSTER)


def _parse(text: str, place: str) -> Mapping[str, Any]:
    try:
        value = load_yaml(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise DecodeError(" ".join(str(error).split()), place) from error
    return value if isinstance(value, Mapping) else {}


async def _read_roots(client: Client, namespace: str) -> str:
    roots = (await _read_map(client, namespace, _ROOTS)).get(_ROOTS_FILE)
    if not roots:
        raise MizzenError(f"configmap {_ROOTS} of namespace {namespace} has no {_ROOTS_FILE}")
    return str(roots)


async def _make_token(client: Client, namespace: str, account: str, request: Request) -> str:
    spec = {"audiences": [_AUDIENCE], "expirationSeconds": request.seconds}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    try:
        body = await client.call("POST", path, {"spec": spec})
    except Refused as refused:
        where = f"service account {account} in namespace {namespace}"
        raise MizzenError(f"could not create a token under {where}: {refused}") from refused
    place = pathlib.Path(request.output) / "istio-token"
    _warn(
        f'a security token for namespace "{namespace}" and service account "{account}" '
        f'has been generated and stored at "{place}"'
    )
    return str(mapping(msgspec.json.decode(body), "status")["token"])


async def _find_host(client: Client, request: Request) -> str:
    """The line for the machine's `/etc/hosts`; empty where nobody knows the address."""
    host = f"{request.plane.name}.{request.system}.svc"
    address = request.ingress_ip or await _find_address(client, request)
    if not address:
        _warn(
            f"no address of {request.ingress_service} is known; say with --ingressIP where the machine reaches {host}"
        )
        return ""
    return f"{address} {host}\n"


async def _find_address(client: Client, request: Request) -> str:
    """The first address of the ingress service's load balancer, or of those outside that lead to it."""
    name, _, namespace = request.ingress_service.partition(".")
    try:
        body = await client.get(f"/api/v1/namespaces/{namespace or request.system}/services/{name}")
    except Refused as refused:
        if refused.status != _GONE:
            raise
        return ""
    service = msgspec.json.decode(body)
    balancer = mapping(mapping(service, "status"), "loadBalancer").get("ingress") or []
    outside = mapping(service, "spec").get("externalIPs") or []
    addresses = [str(each["ip"]) for each in balancer if each.get("ip")] + [str(each) for each in outside]
    return addresses[0] if addresses else ""


def _warn(text: str) -> None:
    click.echo(f"Warning: {text}", err=True)
