"""A control plane with webhooks over a real API server, and pods to ask it about."""

import asyncio
import base64
import contextlib
import pathlib
from collections.abc import Callable
from typing import Any

import msgspec
from control_planes import ANY_PORT, FAST, Plane, control_plane
from eventually import eventually
from kube_accounts import installed
from kube_bed import Answer, Bed
from kube_webhooks import MUTATING, VALIDATING

from mizzen import settings
from mizzen.sources.kube.access import from_kubeconfig

ACCOUNT = {"serviceAccountName": "default"}
"""Nobody in this API server gives pods an account, and without one none may have a token."""
PATCH = "application/merge-patch+json"


class Mesh:
    """A control plane with webhooks, and the configurations by which the API server asks it."""

    def __init__(self, bed: Bed, plane: Plane) -> None:
        self.bed, self.plane = bed, plane
        self._made: list[str] = []

    def url(self, path: str = "/inject") -> str:
        return f"https://127.0.0.1:{self.plane.control_plane.ports['--httpsAddr']}{path}"

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        return await asyncio.to_thread(self.bed.call, method, path, body, **options)

    async def configure(self, document: dict[str, Any]) -> str:
        """Create a configuration; its path."""
        collection = MUTATING if document["kind"].startswith("Mutating") else VALIDATING
        await self.call("POST", collection, document)
        path = f"{collection}/{document['metadata']['name']}"
        self._made.append(path)
        return path

    async def injects(self, document: dict[str, Any]) -> str:
        """Create an injector and wait until it has our roots."""
        path = await self.configure(document)
        await self.until(lambda: self.has_roots(path))
        return path

    async def validates(self, document: dict[str, Any]) -> str:
        """Create a validator and wait until it fails closed."""
        path = await self.configure(document)
        await self.until(lambda: all(entry["failurePolicy"] == "Fail" for entry in self.entries(path)))
        return path

    def entries(self, path: str) -> list[dict[str, Any]]:
        return self.bed.call("GET", path)["webhooks"]

    def has_roots(self, path: str) -> bool:
        wanted = base64.b64encode(self.plane.control_plane.authority.bundle).decode()
        return all(entry["clientConfig"].get("caBundle") == wanted for entry in self.entries(path))

    def version(self, path: str) -> str:
        return self.bed.call("GET", path)["metadata"]["resourceVersion"]

    async def until(self, check: Callable[[], Any]) -> None:
        await eventually(lambda: asyncio.to_thread(check), 120, 0.1)

    async def label(self, namespace: str, **labels: str) -> None:
        named = {name.replace("_", "-"): value for name, value in labels.items()}
        await self.call("PATCH", f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": named}}, kind=PATCH)

    async def mark(self, namespace: str, key: str, value: str) -> None:
        await self.call("PATCH", f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {key: value}}}, kind=PATCH)

    async def create(self, document: dict[str, Any], *, dry: bool = True) -> dict[str, Any]:
        namespace = document["metadata"]["namespace"]
        return await self.call("POST", f"/api/v1/namespaces/{namespace}/pods{'?dryRun=All' if dry else ''}", document)

    async def settle(self, namespace: str, wanted: bool = True, **more: Any) -> None:
        """Wait until the API server itself has noticed configurations and labels."""

        async def has_noticed() -> bool:
            with contextlib.suppress(Answer):
                return is_injected(await self.create(a_pod(namespace, **more))) == wanted
            return False

        await eventually(has_noticed, 120, 0.1)

    async def clean(self) -> None:
        for path in self._made:
            with contextlib.suppress(Answer):
                await self.call("DELETE", path)


@contextlib.asynccontextmanager
async def meshed(
    bed: Bed,
    folder: pathlib.Path,
    revision: str = "default",
    port: Any = ANY_PORT,
    kubeconfig: pathlib.Path | None = None,
    features: settings.Features = FAST.features,
):
    """A control plane of a revision, with the installed rights or by another kubeconfig."""
    instance = msgspec.structs.replace(FAST.instance, revision=revision)
    authority = msgspec.structs.replace(FAST.authority, custom_hosts=("127.0.0.1",))
    tuned = msgspec.structs.replace(FAST, instance=instance, authority=authority, features=features)
    access = from_kubeconfig(kubeconfig or await asyncio.to_thread(installed, bed))
    async with control_plane(folder, tuned, config=(), kubernetes=access, https=port) as plane:
        mesh = Mesh(bed, plane)
        try:
            yield mesh
        finally:
            await mesh.clean()


def a_pod(namespace: str, labels: dict[str, str] | None = None, annotations: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "p-",
            "namespace": namespace,
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": {"containers": [{"name": "app", "image": "app"}], **ACCOUNT, **spec},
    }


def names(pod: dict[str, Any]) -> list[str]:
    spec = pod["spec"]
    return [container["name"] for container in (*spec.get("initContainers", ()), *spec["containers"])]


def is_injected(pod: dict[str, Any]) -> bool:
    return "istio-proxy" in names(pod)
