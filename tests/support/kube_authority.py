"""Control planes that keep their authority in Secrets of a real API server, and what stands in those."""

import asyncio
import contextlib
import json
import pathlib
from collections.abc import AsyncIterator

import msgspec
from control_planes import FAST, Plane, control_plane
from kube_accounts import install_rights
from kube_bed import Bed
from kube_objects import path_of

from mizzen import settings
from mizzen.sources.kube.access import from_kubeconfig

LEFT_OUT = {"kube-public", "kube-node-lease", "local-path-storage"}


def tuned(namespace: str, **authority: object) -> settings.Settings:
    return msgspec.structs.replace(
        FAST,
        instance=settings.Instance(namespace=namespace, name="istiod"),
        authority=settings.Authority(directory="/nowhere", root_check_interval=0.3, root_overlap=10.0, **authority),
        leadership=settings.Leadership(lease=4, renew_deadline=3, retry=0.5),
    )


@contextlib.asynccontextmanager
async def replica(
    bed: Bed, folder: pathlib.Path, namespace: str, *more: dict, **authority: object
) -> AsyncIterator[Plane]:
    """A control plane of a namespace; it keeps no files."""
    kubeconfig = await asyncio.to_thread(install_rights, bed, namespace, *more)
    await asyncio.to_thread(folder.mkdir)
    async with control_plane(
        folder,
        tuned(namespace, **authority),
        config=(),
        token_keys=(),
        ca_dir="",
        kubernetes=from_kubeconfig(kubeconfig),
    ) as plane:
        yield plane


def data_of(bed: Bed, namespace: str, name: str) -> dict[str, bytes]:
    found = bed.call("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")["data"]
    return {key: msgspec.convert(value, bytes) for key, value in found.items()}


def write_secret(bed: Bed, namespace: str, name: str, data: dict[str, bytes]) -> None:
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}}
    bed.apply(path_of(document, "secrets"), {**document, "data": json.loads(msgspec.json.encode(data))})


def namespaces_of(bed: Bed) -> set[str]:
    return {one["metadata"]["name"] for one in bed.call("GET", "/api/v1/namespaces")["items"]} - LEFT_OUT
