"""TLS towards a destination: by the DestinationRule, by auto-mTLS, or none.

In: the rule's TLS settings, what endpoints and PeerAuthentication say of the service. Out: the transport socket (or
the matches by which endpoint metadata chooses one) in the draft. Golden cases: golden base, networking/dr-tls-modes,
security/dr-tls-modes, security/auto-mtls-off, security/pa-*.
"""

from typing import Any

import msgspec

from mizzen import protos
from mizzen.api.networking.traffic_policy import ClientTLSSettings, ProxyProtocol
from mizzen.compile.clusters.draft import Draft
from mizzen.compile.context import ClientTraits
from mizzen.compile.filters import alpn, sds, tls
from mizzen.model import names

_core_v3 = protos.package("envoy.config.core.v3")
_cluster_v3 = protos.package("envoy.config.cluster.v3")
_tls_v3 = protos.package("envoy.extensions.transport_sockets.tls.v3")
_raw_buffer_v3 = protos.package("envoy.extensions.transport_sockets.raw_buffer.v3")
_proxy_protocol_v3 = protos.package("envoy.extensions.transport_sockets.proxy_protocol.v3")

_PARAMS = {"tls_minimum_protocol_version": "TLSv1_2", "tls_maximum_protocol_version": "TLSv1_3"}


class Peer(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """The destination as its TLS depends on it."""

    port: int
    subset: str
    host: str
    accounts: tuple[str, ...] = ()
    """Identities of its workloads and those declared on it."""
    declared_accounts: tuple[str, ...] = ()
    external: bool = False
    auto: bool = False
    """Mutual TLS is on by itself: allowed by the mesh and by the server's namespace."""
    original_destination: bool = False
    selected_by_label: bool = False
    """The rule selects this client by its labels, so that even a sidecar may use credentials from Secrets."""


class MeshTls(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """The mesh's defaults for TLS that is not mutual TLS of the mesh."""

    cipher_suites: tuple[str, ...] = ()
    ecdh_curves: tuple[str, ...] = ()


def apply_transport(
    draft: Draft, settings: ClientTLSSettings | None, peer: Peer, client: ClientTraits, mesh: MeshTls
) -> None:
    """Write the transport socket that the settings, or in their absence auto-mTLS, ask for."""
    if settings is None:
        if not peer.auto:
            return
        socket = _mutual_socket(draft, None, peer, client)
        if peer.original_destination or _has_files(client):
            draft.fields["transport_socket"] = socket
        else:
            draft.fields["transport_socket_matches"] = _auto_matches(socket)
        return
    match settings.mode:
        case "DISABLE":
            return
        case "ISTIO_MUTUAL":
            draft.fields["transport_socket"] = _mutual_socket(draft, settings, peer, client)
        case _:
            draft.istio_metadata["alpn_override"] = "false"
            _apply_plain_tls(draft, settings, peer, client, mesh)


def _auto_matches(socket: Any) -> list[Any]:
    match = _cluster_v3.Cluster.TransportSocketMatch
    return [
        match(name="tlsMode-istio", match=protos.struct({"tlsMode": "istio"}), transport_socket=socket),
        match(name="tlsMode-disabled", match={}, transport_socket=_raw_buffer("envoy.transport_sockets.raw_buffer")),
    ]


def _raw_buffer(name: str) -> Any:
    return _core_v3.TransportSocket(name=name, typed_config=protos.pack(_raw_buffer_v3.RawBuffer()))


def _socket(context: Any) -> Any:
    return _core_v3.TransportSocket(name=tls.SOCKET, typed_config=protos.pack(context))


# -- mutual TLS of the mesh ---------------------------------------------------------------------------------------


def _mutual_socket(draft: Draft, settings: ClientTLSSettings | None, peer: Peer, client: ClientTraits) -> Any:
    accounts = tuple(settings.subject_alt_names) if settings is not None and settings.subject_alt_names else None
    common: dict[str, Any] = {"tls_params": _PARAMS}
    if not _has_files(client):
        common["alpn_protocols"] = (*alpn.MESH_TCP, "h2") if draft.upstream == "http2" else alpn.MESH_TCP
    elif draft.upstream == "http2":
        common["alpn_protocols"] = ["h2"]
    common.update(_mutual_certificates(accounts if accounts is not None else peer.accounts, client))
    sni = settings.sni if settings is not None else ""
    return _socket(
        _tls_v3.UpstreamTlsContext(
            common_tls_context=common, sni=sni or names.sni_key(peer.port, peer.subset, peer.host)
        )
    )


def _has_files(client: ClientTraits) -> bool:
    """Whether the node brings its own certificate, so that its mutual TLS is not the mesh's."""
    return bool(client.tls_files.client_chain and client.tls_files.client_key)


def _mutual_certificates(accounts: tuple[str, ...], client: ClientTraits) -> dict[str, Any]:
    """The workload's own certificate and roots, or the files that its node names in their place."""
    files = client.tls_files
    own: Any = sds.build_workload_secret(sds.WORKLOAD)
    root: Any = sds.build_workload_secret(sds.ROOT)
    if _has_files(client):
        own = _file_secret(sds.file_certificate_name(files.client_chain, files.client_key), client)
        root = _file_secret(sds.file_root_name(files.client_root), client) if files.client_root else None
    return {"tls_certificate_sds_secret_configs": [own], **_validation(_sans(accounts, client), root)}


def _file_secret(name: str, client: ClientTraits) -> Any:
    return sds.build_file_secret(name, file_credential=client.file_credential)


def _sans(accounts: tuple[str, ...], client: ClientTraits) -> dict[str, Any]:
    """Names of which the server's certificate must have one; none accepts every certificate of the root.

    Istio's proxies take the older untyped field; upstream Envoy the typed one, which tells URIs from DNS names.
    """
    if client.dialect == "istio":
        return {"match_subject_alt_names": [{"exact": a} for a in accounts]}
    return {
        "match_typed_subject_alt_names": [
            {"san_type": "URI" if "://" in a else "DNS", "matcher": {"exact": a}} for a in accounts
        ]
    }


def _validation(context: dict[str, Any], root: Any) -> dict[str, Any]:
    if root is None:
        return {"validation_context": context}
    return {
        "combined_validation_context": {
            "default_validation_context": context,
            "validation_context_sds_secret_config": root,
        }
    }


# -- TLS to the outside -------------------------------------------------------------------------------------------


def _apply_plain_tls(
    draft: Draft, settings: ClientTLSSettings, peer: Peer, client: ClientTraits, mesh: MeshTls
) -> None:
    credential = settings.credential_name
    unusable = not client.is_router and not peer.selected_by_label and not credential.startswith("configmap://")
    if credential and unusable:
        return
    mutual = settings.mode == "MUTUAL"
    if mutual and not credential and not (settings.client_certificate and settings.private_key):
        return
    params: dict[str, Any] = dict(_PARAMS)
    if mesh.cipher_suites:
        params["cipher_suites"] = mesh.cipher_suites
    if mesh.ecdh_curves:
        params["ecdh_curves"] = mesh.ecdh_curves
    accounts = tuple(settings.subject_alt_names) or (peer.declared_accounts if peer.external else ())
    common: dict[str, Any] = {"tls_params": params}
    if draft.upstream == "http2":
        common["alpn_protocols"] = ["h2"]
    if mutual:
        common["tls_certificate_sds_secret_configs"] = [_client_certificate(settings, client)]
    common.update(_outside_validation(settings, accounts, client))
    draft.fields["transport_socket"] = _socket(_tls_v3.UpstreamTlsContext(common_tls_context=common, sni=settings.sni))
    if not settings.sni:
        draft.upstream_http["auto_sni"] = True
        if not settings.subject_alt_names and not settings.insecure_skip_verify:
            draft.upstream_http["auto_san_validation"] = True


def _client_certificate(settings: ClientTLSSettings, client: ClientTraits) -> Any:
    if settings.credential_name:
        return sds.build_credential_secret(settings.credential_name, _external(client))
    return _file_secret(sds.file_certificate_name(settings.client_certificate, settings.private_key), client)


def _external(client: ClientTraits) -> sds.ExternalSds:
    return sds.ExternalSds(socket=client.credential_socket)


def _outside_validation(settings: ClientTLSSettings, accounts: tuple[str, ...], client: ClientTraits) -> dict[str, Any]:
    if settings.insecure_skip_verify:
        return {"validation_context": {}}
    context = _sans(accounts, client)
    if settings.ca_crl:
        context["crl"] = {"filename": settings.ca_crl}
    if settings.credential_name:
        root: Any = sds.build_credential_secret(settings.credential_name, _external(client), ca=True)
    elif settings.ca_certificates:
        root = _file_secret(sds.file_root_name(settings.ca_certificates), client)
    else:
        root = _file_secret(sds.SYSTEM_ROOTS, client)
    return _validation(context, root)


# -- PROXY protocol -----------------------------------------------------------------------------------------------


def wrap_in_proxy_protocol(draft: Draft, settings: ProxyProtocol | None) -> None:
    """Send the PROXY protocol's header before whatever the socket does; every socket is wrapped."""
    if settings is None:
        return
    config = {"version": "V2"} if settings.version == "V2" else {}

    def wrap(inner: Any) -> Any:
        outer = _proxy_protocol_v3.ProxyProtocolUpstreamTransport(config=config, transport_socket=inner)
        return _core_v3.TransportSocket(
            name="envoy.transport_sockets.upstream_proxy_protocol", typed_config=protos.pack(outer)
        )

    matches = draft.fields.get("transport_socket_matches")
    if matches:
        for entry in matches:
            entry.transport_socket.CopyFrom(wrap(entry.transport_socket))
    else:
        draft.fields["transport_socket"] = wrap(draft.fields.get("transport_socket") or _raw_buffer("raw_buffer"))
