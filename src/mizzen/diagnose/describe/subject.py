"""What is described: a Service, and the pods from which it is looked at."""

from collections.abc import Mapping, Sequence

import msgspec

from mizzen.api.kube.pods import Pod
from mizzen.api.kube.services import Service
from mizzen.incremental import Engine
from mizzen.model import mesh, names


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A Service, from where its pods stand."""

    service: Service
    pods: tuple[Pod, ...]
    """The first is the one whose ports and proxy are looked at."""
    namespace: str
    """Names of this namespace are written short."""

    @property
    def labels(self) -> Sequence[Mapping[str, str]]:
        """Of the pods."""
        return [pod.metadata.labels for pod in self.pods]

    def host(self, db: Engine) -> str:
        """The Service's host."""
        metadata = self.service.metadata
        return names.service_host(metadata.name, metadata.namespace, mesh.domain(db))
