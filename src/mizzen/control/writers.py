"""What only one replica does: the elections that there are, and what their winners write.

In: the cluster, the engine, settings. Out: candidates that run beside the source. Nobody stands for an election before
it serves proxies, since a leader that knows half of the objects would write half-truths. Each election is for one
revision, but for those of virtual addresses and of the roots in all namespaces, which the cluster has once; the names
are those that istiod gives them.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from mizzen import settings
from mizzen.analysis import settings as analysis_settings
from mizzen.control.all_entries import AllEntries
from mizzen.control.authority import KeptAuthority
from mizzen.control.cluster import Cluster
from mizzen.control.election import Election, lease_name, make_identity
from mizzen.control.entry_addresses import EntryAddresses
from mizzen.control.leader_requests import LeaderRequests
from mizzen.control.managed_gateways import GatewayDeployer
from mizzen.control.mesh import MeshSettings
from mizzen.control.namespace_config_maps import REVOCATIONS, ROOTS, NamespaceConfigMaps
from mizzen.control.object_verdicts import keep_verdicts
from mizzen.control.statuses import StatusWriter, keep_gateway_statuses
from mizzen.incremental import Engine
from mizzen.sources.origins import Finding

STATUS_ELECTION = "istio-gateway-status-leader"
DEPLOYMENT_ELECTION = "istio-gateway-deployment"
ADDRESS_ELECTION = "istio-ip-autoallocate"
ANALYSIS_ELECTION = "istio-analyze-leader"
ROOTS_ELECTION = "istio-namespace-controller-election"

_EVERY = 0.1


class Writers:
    """The candidacies of one replica."""

    def __init__(
        self,
        cluster: Cluster,
        db: Engine,
        config: settings.Settings,
        *,
        mesh: MeshSettings,
        authority: KeptAuthority,
        findings: Callable[[], tuple[Finding, ...]],
        is_ready: Callable[[], bool],
    ) -> None:
        self._cluster, self._db, self._config, self._is_ready = cluster, db, config, is_ready
        self._mesh, self._authority, self._findings = mesh, authority, findings
        self._identity = make_identity(config.instance.name or socket.gethostname())
        self.elections: list[Election] = []
        """Those that it stands for."""
        if config.features.gateway_statuses:
            self._stand(STATUS_ELECTION, self._write_statuses)
        if config.features.analysis or config.features.object_statuses:
            self._stand(ANALYSIS_ELECTION, self._write_verdicts)
        if config.features.gateway_deployments:
            self._stand(DEPLOYMENT_ELECTION, self._deploy_gateways)
        if config.features.allocate_addresses:
            self._stand(ADDRESS_ELECTION, self._allocate_addresses, of_revision=False)
        self._stand(ROOTS_ELECTION, self._distribute_roots, of_revision=False)

    def _stand(self, name: str, lead: Callable[[LeaderRequests], Awaitable[None]], *, of_revision: bool = True) -> None:
        client, instance = self._cluster.client, self._config.instance
        election = Election(
            client,
            instance.namespace,
            lease_name(name, instance.revision) if of_revision else name,
            self._identity,
            timing=self._config.leadership,
        )
        self.elections.append(election)

        async def run() -> None:
            while True:
                await asyncio.sleep(_EVERY)
                if self._is_ready():
                    await election.run(lambda: lead(LeaderRequests(client, lambda: election.leads)))

        self._cluster.writers.append(run)

    async def _write_statuses(self, requests: LeaderRequests) -> None:
        keeping = keep_gateway_statuses(self._db)
        await StatusWriter(keeping, self._cluster.source, requests, self._cluster.revisions).run()

    async def _write_verdicts(self, requests: LeaderRequests) -> None:
        instance, features = self._config.instance, self._config.features
        asked = analysis_settings.Settings(istio_namespace=instance.namespace, revision=instance.revision)
        self._db.set(analysis_settings.SETTINGS, asked)
        told = self._findings if features.object_statuses else None
        every = features.analysis_interval
        keeping = keep_verdicts(self._db, analyses=features.analysis, told=told, every=every)
        await StatusWriter(keeping, self._cluster.source, requests, self._cluster.revisions).run()

    async def _deploy_gateways(self, requests: LeaderRequests) -> None:
        await GatewayDeployer(
            self._db,
            self._cluster.source,
            self._cluster.client,
            requests,
            self._cluster.revisions,
            installation=lambda: self._cluster.installation.config_for({}),
            mesh=lambda: self._mesh.written,
            makes_classes=self._config.features.gateway_classes,
        ).run()

    async def _allocate_addresses(self, requests: LeaderRequests) -> None:
        features = self._config.features
        networks = features.addresses_v4, features.addresses_v6
        entries = AllEntries(self._cluster.client, lambda: self._cluster.source.selection.selectors)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(entries.run())
            await entries.source.listed.wait()
            await EntryAddresses(entries.db, entries.source, requests, networks).run()

    async def _distribute_roots(self, requests: LeaderRequests) -> None:
        source, kept, config = self._cluster.source, self._authority, self._config.authority
        roots = NamespaceConfigMaps(
            source, requests, ROOTS, config.root_config_map, content=lambda: kept.authority.bundle
        )
        revocations = NamespaceConfigMaps(
            source, requests, REVOCATIONS, config.revocation_config_map, content=lambda: kept.revocations.pem
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(roots.run())
            if config.revocations:
                tasks.create_task(revocations.run())
