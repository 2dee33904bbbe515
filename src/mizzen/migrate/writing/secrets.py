"""Secrets that a migration needs at other places: beside the proxies, or under other names.

A Secret that is at hand is copied; of others a finding says what to do.
"""

import base64
from collections.abc import Iterable, Mapping

from mizzen.api.kube.data import Secret
from mizzen.api.meta import Key, Object
from mizzen.migrate.findings import Notes
from mizzen.migrate.writing.documents import Document, Target
from mizzen.migrate.writing.gateways import Certificate


class Copies:
    """The copies of one migration."""

    def __init__(self, target: Target, objects: Mapping[Key, Object], notes: Notes) -> None:
        self._target, self._objects, self._notes = target, objects, notes
        self._documents: dict[tuple[str, str], Document] = {}

    @property
    def documents(self) -> Iterable[Document]:
        """Those that were made."""
        return self._documents.values()

    def beside_proxies(self, own: Certificate, ingress: Key) -> str:
        """The name of a certificate's Secret in the namespace of the proxies."""
        if own.namespace == self._target.namespace:
            return own.secret
        name = f"{own.namespace}-{own.secret}"
        if not self._copy(Key("Secret", own.namespace, own.secret), self._target.namespace, name):
            how = f"copy Secret {own.namespace}/{own.secret} to {self._target.namespace}/{name}; it is not at hand"
            self._notes.add(ingress, "spec.tls", "approximated", how)
        return name

    def authority(self, own: Certificate, namespace: str, secret: str, ingress: Key) -> None:
        """The trusted roots for clients' certificates, where they are looked for beside the server's certificate."""
        if own.client_tls is None:
            return
        source = Key("Secret", own.client_tls.namespace, own.client_tls.secret)
        if not self._copy(source, namespace, f"{secret}-cacert", only="ca.crt"):
            how = f"put ca.crt of {source.namespace}/{source.name} into Secret {namespace}/{secret}-cacert"
            self._notes.add(ingress, "auth-tls-secret", "approximated", how)

    def _copy(self, source: Key, namespace: str, name: str, only: str = "") -> bool:
        found = self._objects.get(source)
        if not isinstance(found, Secret):
            return False
        entries = {entry: found.get(entry) for entry in (*found.data, *found.string_data) if only in ("", entry)}
        data = {entry: base64.b64encode(value).decode() for entry, value in entries.items() if value is not None}
        if data:
            self._documents[namespace, name] = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": namespace},
                "type": "Opaque",
                "data": data,
            }
        return bool(data)
