"""The certificate service of a control plane: who signs, and who may have certificates of others.

In: the authority, the cluster if there is one, settings. Out: a `CertificateService`, or AuthorityError for settings
that mean no signer, since a control plane that signs by another one than it was told is worse than none.
"""

from collections.abc import Callable, Iterator

from mizzen import settings
from mizzen.api.mesh.config import MeshConfig
from mizzen.api.meta import Object
from mizzen.ca.authority import Authority
from mizzen.ca.identity import Authenticator
from mizzen.ca.service import CertificateService, Describe, Issuer, OwnIssuer
from mizzen.control import kubernetes_signer
from mizzen.control.cluster import Cluster
from mizzen.control.node_accounts import NodeAccounts
from mizzen.errors import AuthorityError


def build_certificate_service(
    authority: Authority,
    authenticator: Authenticator,
    describe: Describe,
    *,
    cluster: Cluster | None,
    mesh: Callable[[], MeshConfig],
    config: settings.Authority,
    clock: Callable[[], float],
) -> CertificateService:
    """The service, by the authority or by whom the settings name."""

    def pods() -> Iterator[Object]:
        return cluster.source.of_kind("Pod") if cluster is not None else iter(())

    return CertificateService(
        _choose_issuer(authority, cluster, mesh, config, clock),
        authenticator,
        describe,
        NodeAccounts(config.node_accounts, pods, lambda: mesh().trust_domain).check,
    )


def _choose_issuer(
    authority: Authority,
    cluster: Cluster | None,
    mesh: Callable[[], MeshConfig],
    config: settings.Authority,
    clock: Callable[[], float],
) -> Issuer:
    if not config.external:
        return OwnIssuer(authority)
    if config.external != kubernetes_signer.KIND:
        raise AuthorityError(f"EXTERNAL_CA={config.external} is not supported; {kubernetes_signer.KIND} is")
    if cluster is None:
        raise AuthorityError(f"EXTERNAL_CA={config.external} needs the API server of a cluster")
    return kubernetes_signer.KubernetesSigner(cluster.client, config, mesh, clock)
