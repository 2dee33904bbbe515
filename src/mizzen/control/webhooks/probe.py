"""Whether the API server reaches our validation: a Gateway that must be refused, created for trial only.

In: a Client. Out: a verdict. Entries that validate are installed failing open, so that objects can be written before a
control plane serves; only once one has been seen to refuse may they fail closed. Nothing is ever stored: the request is
a dry run, and its Gateway carries the annotation that admission always refuses.
"""

from typing import Any

from mizzen.api.kinds import kind_named
from mizzen.control.webhooks.documents import REVISION
from mizzen.errors import SourceError
from mizzen.sources.kube.client import Client, Refused

_DENIED = "denied the request"
_GATEWAY = kind_named("Gateway")


async def find_trouble(client: Client, namespace: str, revision: str) -> str | None:
    """Why validation cannot be relied on yet; None once it has refused."""
    for version in _GATEWAY.versions:
        try:
            await _try(client, version, namespace, revision)
        except Refused as refusal:
            if refusal.status == 404:
                continue  # The server has the kind at another version, or not yet.
            return None if _DENIED in str(refusal) else str(refusal)
        except SourceError as error:
            return str(error)
        return "a Gateway that must be refused was admitted"
    return "the API server has no Gateways of networking.istio.io yet"


async def _try(client: Client, version: str, namespace: str, revision: str) -> None:
    body: dict[str, Any] = {
        "apiVersion": f"{_GATEWAY.group}/{version}",
        "kind": "Gateway",
        "metadata": {
            "name": "invalid-gateway",
            "namespace": namespace,
            "labels": {REVISION: revision},
            "annotations": {"internal.istio.io/webhook-always-reject": "true"},
        },
        "spec": {},
    }
    path = f"/apis/{_GATEWAY.group}/{version}/namespaces/{namespace}/gateways"
    await client.call("POST", path, body, query={"dryRun": "All"})
