"""Who signs, by the settings: nobody signs in place of whom they name."""

from typing import Any

import pytest

from mizzen import settings
from mizzen.api.mesh.config import MeshConfig
from mizzen.ca.authority import Authority, start_self_signed
from mizzen.ca.identity import FirstAuthenticator
from mizzen.ca.service import OwnIssuer
from mizzen.control.issuing import build_certificate_service
from mizzen.control.kubernetes_signer import KubernetesSigner
from mizzen.errors import AuthorityError


class Cluster:
    """As much of one as is asked for."""

    client = source = None


async def describe(*_: object) -> str:
    return ""


def build(cluster: Any = None, **config: Any) -> Any:
    found = settings.Authority(**config)
    return build_certificate_service(
        Authority(start_self_signed("cluster.local", found, 0.0), found, lambda: 0.0),
        FirstAuthenticator(()),
        describe,
        cluster=cluster,
        mesh=MeshConfig,
        config=found,
        clock=lambda: 0.0,
    )


def test_the_authority_signs_unless_another_is_named() -> None:
    assert isinstance(build()._issuer, OwnIssuer)
    named = build(Cluster(), external="ISTIOD_RA_KUBERNETES_API", kubernetes_signer="a.example/b")
    assert isinstance(named._issuer, KubernetesSigner)


@pytest.mark.parametrize(
    ("cluster", "config", "reason"),
    [
        (Cluster(), {"external": "ISTIOD_RA_ISTIO_API"}, "is not supported"),
        (Cluster(), {"external": "istiod_ra_kubernetes_api", "kubernetes_signer": "a.example/b"}, "is not supported"),
        (Cluster(), {"external": "ISTIOD_RA_KUBERNETES_API"}, "K8S_SIGNER or CERT_SIGNER_DOMAIN"),
        (None, {"external": "ISTIOD_RA_KUBERNETES_API", "kubernetes_signer": "a.example/b"}, "needs the API server"),
        (None, {"node_accounts": ("ztunnel",)}, "CA_TRUSTED_NODE_ACCOUNTS"),
    ],
)
def test_settings_that_mean_nobody_end_the_start(cluster: Any, config: dict[str, Any], reason: str) -> None:
    with pytest.raises(AuthorityError, match=reason):
        build(cluster, **config)
