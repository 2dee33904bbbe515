"""The webhooks of a control plane on Kubernetes, all of them together.

In: the cluster, the mesh config, the authority and the control plane's certificate. Out: a server to open on
`--httpsAddr`, and a task that keeps the webhook configurations of our revision right.
"""

import ssl

from aiohttp import web

from mizzen import observe, settings
from mizzen.api.meta import Key
from mizzen.ca.authority import Authority
from mizzen.ca.serving import ServingCertificate
from mizzen.control.cluster import Cluster
from mizzen.control.mesh import MeshSettings
from mizzen.control.webhooks import guards, probe, server, tls
from mizzen.control.webhooks.configurations import Configurations
from mizzen.control.webhooks.documents import INJECTION, Configuration
from mizzen.control.webhooks.injection import Injector
from mizzen.inject.selection import SYSTEM_NAMESPACES

_log = observe.scope("webhook")


class Webhooks:
    """What the API server may ask this control plane."""

    def __init__(
        self,
        cluster: Cluster,
        mesh: MeshSettings,
        authority: Authority,
        certificate: ServingCertificate,
        instance: settings.Instance,
    ) -> None:
        self._source, self._instance, self._certificate = cluster.source, instance, certificate
        self._injector = Injector(cluster.installation, lambda: mesh.written)
        self._configurations = Configurations(
            cluster.client,
            instance.revision,
            lambda: authority.bundle,
            lambda: probe.find_trouble(cluster.client, instance.namespace, instance.revision),
            warn=self._warn,
        )
        self._told: dict[str, set[str]] = {}
        authority.on_change(lambda _: self._configurations.wake())

    def application(self) -> web.Application:
        """What the port serves; a pod is injected once the cluster's objects are known."""
        return server.application(self._injector, self._source.listed.is_set)

    def context(self) -> ssl.SSLContext:
        """TLS of the port."""
        return tls.make_context(self._certificate)

    async def run(self) -> None:
        """Keep the configurations right; ends only when cancelled."""
        await self._source.listed.wait()
        await self._configurations.run()

    def _warn(self, found: Configuration) -> None:
        """Tell the operator of what would stop the cluster."""
        own = self._instance
        names = (*SYSTEM_NAMESPACES, own.namespace)
        objects = self._source.objects
        found_spaces = {name: objects.get(Key("Namespace", "", name)) for name in names}
        spaces = {name: space.metadata.labels for name, space in found_spaces.items() if space is not None}
        pod = objects.get(Key("Pod", own.namespace, own.name))
        labels = pod.metadata.labels if pod is not None else {"app": "istiod", "sidecar.istio.io/inject": "false"}
        sentences = [
            guards.blocked_by_injection(entry, spaces, own.namespace, labels) for _, entry in found.entries(INJECTION)
        ]
        told = self._told.setdefault(found.metadata.name, set())
        for sentence in guards.warn_once(told, sentences):
            _log.warning("%s: %s", found.metadata.name, sentence)
