"""What all inbound listeners of a workload share: filters, policies, certificate and retries.

In: the workload's profile, its TLS files and the policies that apply to it. Out: `InboundSettings`.
Golden cases: base, security/mesh-tls-settings, networking/mesh-http-settings.
"""

from mizzen.compile.filters import alpn
from mizzen.compile.filters.dialect import Dialect
from mizzen.compile.filters.tls import DEFAULT_CIPHERS, Files, WorkloadTls
from mizzen.compile.listeners import settings, telemetry
from mizzen.compile.listeners.inbound_building import InboundSettings
from mizzen.compile.listeners.profiles import Profile
from mizzen.compile.security import applied
from mizzen.compile.security.applied import Applied
from mizzen.incremental import Engine, query
from mizzen.model import identities, mesh
from mizzen.model.proxy import TlsFiles


@query
def inbound_settings(
    db: Engine, own: Profile, tls: WorkloadTls, policies: Applied, exact_balance: bool
) -> InboundSettings:
    """The settings of a workload's inbound listeners."""
    config = mesh.mesh_config(db)
    return InboundSettings(
        http=settings.http_settings(db, own, "inbound", ""),
        tcp=settings.tcp_settings(db, own, "inbound"),
        tls=tls,
        plain_alpn=alpn.plain_http(http10=mesh.control_plane(db).http10),
        http_policies=applied.http_policies(db, policies, own.dialect, False),
        tcp_policies=applied.network_policies(db, policies, own.dialect),
        detection_timeout=config.protocol_detection_timeout or settings.NO_TIMEOUT,
        exact_balance=exact_balance,
        listener_logs=telemetry.signals(db, own, "inbound").listener_logs,
    )


@query
def server_tls(db: Engine, dialect: Dialect, files: TlsFiles, file_credential: bool) -> WorkloadTls:
    """How a workload's mutual TLS is terminated: the mesh's parameters, and its certificate."""
    config = mesh.mesh_config(db)
    chosen = config.mesh_mtls
    return WorkloadTls(
        dialect=dialect,
        trust_domains=identities.accepted_trust_domains(db),
        minimum="TLSv1_3" if chosen is not None and chosen.min_protocol_version == "TLSV1_3" else "TLSv1_2",
        ciphers=chosen.cipher_suites if chosen is not None and chosen.cipher_suites else DEFAULT_CIPHERS,
        curves=chosen.ecdh_curves if chosen is not None else (),
        files=Files(chain=files.server_chain, key=files.server_key) if files.server_chain else None,
        root_file=files.server_root,
        file_credential=file_credential,
    )
