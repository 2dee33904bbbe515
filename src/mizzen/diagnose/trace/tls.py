"""TLS between two proxies: what each side speaks and demands, and whether they agree.

In: a cluster's transport socket with what its endpoint says of itself; a filter chain's transport socket. Out: the
client's `Hello`, the server's `Server`, and `agree`, which gives the `Failure` of the handshake or None.
"""

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import certificates, matchers, virtual_hosts
from mizzen.diagnose.trace.certificates import Roots
from mizzen.diagnose.trace.verdict import Link
from mizzen.diagnose.trace.wire import Certificate, Checks, Hello
from mizzen.diagnose.trace.world import Holdings, Workload, World

_MATCH = "envoy.transport_socket_match"
_WORKLOAD, _ROOT = "default", "ROOTCA"

WRONG_VERSION = "TLS_error:|268435703:SSL_routines:OPENSSL_internal:WRONG_VERSION_NUMBER:TLS_error_end"
_VERIFY_FAILED = "TLS_error:|268435581:SSL_routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED:verify_cert_failed:_"
NO_SECRET = "TLS_error:_Secret_is_not_supplied_by_SDS"
RESET = "TLS_error:|33554536:system_library:OPENSSL_internal:Connection_reset_by_peer:TLS_error_end"
"""What a client says whose server closes in the middle of the handshake."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A handshake that fails, as the client tells it."""

    reason: str
    transport: str
    """The client's transport failure reason; empty where the server only closes."""
    link: Link = "tls"
    secret: str = ""
    """The name of the secret that is missing."""
    shown: str = ""
    """The name of the secret that is there and no good."""
    handshake_seemed_done: bool = False
    """In TLS 1.3 a client learns that its certificate was refused when it already believes itself connected."""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """How a proxy speaks to one endpoint."""

    name: str = ""
    """The transport socket match that was taken."""
    hello: Hello | None = None
    """None for plain text."""
    missing: str = ""
    """A secret that the proxy does not have."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """How a filter chain receives."""

    certificate: Certificate | None
    missing: str = ""
    demands: bool = False
    """Whether it insists on a client certificate."""
    roots: Roots = Roots()
    names: tuple[tuple[str, Json], ...] = ()


def socket_of(cluster: Json, metadata: Json) -> tuple[str, Json]:
    """The transport socket for an endpoint: the first match whose labels the endpoint has, else the cluster's own."""
    labels = dump.message(metadata, "filter_metadata", _MATCH)
    for entry in dump.items(cluster, "transport_socket_matches"):
        wanted = dump.message(entry, "match")
        if all(labels.get(name) == value for name, value in wanted.items()):
            return dump.text(entry, "name"), dump.message(entry, "transport_socket")
    return "", dump.message(cluster, "transport_socket")


def _context(socket: Json) -> Json:
    """The TLS context of a socket, also inside a wrapper such as the PROXY protocol; empty for plain text."""
    config = dump.message(socket, "typed_config")
    inner = dump.message(config, "transport_socket")
    if inner:
        return _context(inner)
    return config if ".tls.v3." in dump.text(config, "@type") else {}


def client(world: World, pod: Workload, held: Holdings, cluster: Json, metadata: Json, authority: str) -> Client:
    """How the pod's proxy speaks to an endpoint of the cluster; `authority` is the SNI where the cluster says so."""
    name, socket = socket_of(cluster, metadata)
    context = _context(socket)
    if not context:
        return Client(name=name)
    common = dump.message(context, "common_tls_context")
    options = dump.message(cluster, "typed_extension_protocol_options", _HTTP_OPTIONS, "upstream_http_protocol_options")
    server_name = dump.text(context, "sni")
    if not server_name and options.get("autoSni") is True:
        server_name = virtual_hosts.strip_port(authority)
    own, absent = _certificate(world, pod, held, common)
    roots, names, lost = _validation(held, common)
    if options.get("autoSanValidation") is True and roots.kind != "none":
        names = (*names, ("DNS", {"exact": server_name}))
    hello = Hello(
        server_name=server_name,
        protocols=tuple(dump.texts(common, "alpn_protocols")),
        certificate=own,
        checks=Checks(roots=roots, names=names),
    )
    return Client(name=name, hello=hello, missing=absent or lost)


_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def server(world: World, pod: Workload, held: Holdings, chain: Json) -> Server | None:
    """How a filter chain receives; None for plain text."""
    context = _context(dump.message(chain, "transport_socket"))
    if not context:
        return None
    common = dump.message(context, "common_tls_context")
    own, absent = _certificate(world, pod, held, common)
    roots, names, lost = _validation(held, common)
    return Server(
        certificate=own,
        missing=absent or lost,
        demands=context.get("requireClientCertificate") is True,
        roots=roots,
        names=names,
    )


def identity(world: World, pod: Workload) -> str:
    """The name in a pod's certificate."""
    return f"spiffe://{world.trust_domain}/ns/{pod.namespace}/sa/{pod.account}"


def _certificate(world: World, pod: Workload, held: Holdings, common: Json) -> tuple[Certificate | None, str]:
    """The certificate that a context presents, and the name of one that it should and the proxy does not have."""
    for entry in dump.items(common, "tls_certificate_sds_secret_configs"):
        name = dump.text(entry, "name")
        held_secret = held.secrets.get(name)
        found = certificates.read_certificate(held_secret, world.now) if held_secret is not None else None
        if name == _WORKLOAD:
            expired = found.expired if found is not None else False
            return Certificate(identity=identity(world, pod), source=name, expired=expired), ""
        if name.startswith("file-cert:"):
            return Certificate(root="", source=name), ""
        return (msgspec.structs.replace(found, source=name), "") if found is not None else (None, name)
    for entry in dump.items(common, "tls_certificates"):
        pem = certificates.data_source(dump.message(entry, "certificate_chain"))
        return certificates.parse(pem, world.now) or Certificate(root="", source="file"), ""
    return None, ""


def _validation(held: Holdings, common: Json) -> tuple[Roots, tuple[tuple[str, Json], ...], str]:
    """Whom a context trusts, the names of which the peer must have one, and a root that the proxy does not have."""
    combined = dump.message(common, "combined_validation_context")
    if combined:
        context = dump.message(combined, "default_validation_context")
        name = dump.text(combined, "validation_context_sds_secret_config", "name")
    else:
        context = dump.message(common, "validation_context")
        name = dump.text(common, "validation_context_sds_secret_config", "name")
    names = tuple(_names(context))
    if not name:
        pem = certificates.data_source(dump.message(context, "trusted_ca"))
        filed = dump.text(context, "trusted_ca", "filename")
        if filed:
            return Roots(kind="unknown", source=filed), names, ""
        return (Roots(kind="given", pem=pem) if pem else Roots()), names, ""
    if name == _ROOT:
        return Roots(kind="mesh", source=name), names, ""
    if name.startswith("file-root:"):
        return Roots(kind="unknown", source=name), names, ""
    secret = held.secrets.get(name)
    if secret is None:
        return Roots(kind="given", source=name), names, name
    pem = certificates.data_source(dump.message(secret, "validation_context", "trusted_ca"))
    return Roots(kind="given", pem=pem, source=name), names, ""


def _names(context: Json) -> list[tuple[str, Json]]:
    typed = [
        (dump.text(m, "san_type"), dump.message(m, "matcher"))
        for m in dump.items(context, "match_typed_subject_alt_names")
    ]
    return typed + [("", m) for m in dump.items(context, "match_subject_alt_names")]


# -- agreement --------------------------------------------------------------------------------------------------------


def agree(hello: Hello, receiving: Server) -> tuple[Failure | None, str]:
    """Why the handshake fails, or None; and what it depends on that nobody here knows."""
    if receiving.missing or receiving.certificate is None:
        name = receiving.missing or "a certificate"
        return Failure(reason=f"the server has no secret {name!r}", transport="", link="secret", secret=name), ""
    unknown = ""
    checks = hello.checks
    if checks is not None:
        failure, unknown = _judge(receiving.certificate, checks.roots, checks.names, "server")
        if failure is not None:
            return failure, ""
    else:
        failure = _doubted(receiving.certificate, hello.server_name)
        if failure is not None:
            return failure, f"whether the client minds that {failure.reason}"
    if receiving.demands and hello.certificate is None:
        reason = "the server demands a client certificate and the client has none"
        return Failure(reason=reason, transport="", handshake_seemed_done=True), ""
    if hello.certificate is not None and receiving.roots.kind != "none":
        refused, doubt = _judge(hello.certificate, receiving.roots, receiving.names, "client")
        if refused is not None:
            return msgspec.structs.replace(refused, transport="", handshake_seemed_done=True), ""
        unknown = unknown or doubt
    return None, unknown


def _doubted(shown: Certificate, server_name: str) -> Failure | None:
    """What most clients would not accept, whoever they trust."""
    if shown.expired:
        return _refusal("the server's certificate has expired", "X509_verify_cert", "secret", shown.source)
    wanted = {"exact": server_name}
    if server_name and shown.names and not any(_matches_name(wanted, name, "DNS") for name in shown.names):
        return _refusal(
            f"the server's certificate names {', '.join(shown.names)} and not {server_name}",
            "SAN",
            "secret",
            shown.source,
        )
    return None


def _judge(
    shown: Certificate, roots: Roots, names: tuple[tuple[str, Json], ...], whose: str
) -> tuple[Failure | None, str]:
    trusted = certificates.is_trusted(shown, roots)
    if trusted is False:
        text = f"X509_verify_cert:_certificate_verification_error_{certificates.describe_distrust(shown)}"
        return _refusal(f"the {whose}'s certificate is not signed by the roots that the other side trusts", text), ""
    if shown.expired and roots.kind != "none":
        text = "X509_verify_cert:_certificate_verification_error_at_depth_0:_certificate_has_expired"
        return _refusal(f"the {whose}'s certificate has expired", text, "secret", shown.source), ""
    if names and not any(_has_name(shown, kind, matcher) for kind, matcher in names):
        has = ",_".join((*([shown.identity] if shown.identity else []), *shown.names))
        wanted = " or ".join(matchers.describe_string(matcher) for _, matcher in names[:4])
        reason = f"the {whose}'s certificate names {has or 'nobody'}, wanted is {wanted}"
        return _refusal(reason, f"SAN_matcher,_certificate_SANs_are_[{has}]"), ""
    return None, "" if trusted else f"whether {roots.source or 'its roots'} vouches for the {whose}"


def _refusal(reason: str, text: str, link: Link = "tls", shown: str = "") -> Failure:
    return Failure(reason=reason, transport=f"{_VERIFY_FAILED}{text}:TLS_error_end", link=link, shown=shown)


def _has_name(shown: Certificate, kind: str, matcher: Json) -> bool:
    names = [] if kind == "DNS" else [shown.identity] if shown.identity else []
    if kind != "URI":
        names += list(shown.names)
    return any(_matches_name(matcher, name, kind) for name in names)


def _matches_name(matcher: Json, name: str, kind: str) -> bool:
    if matchers.match_string(matcher, name):
        return True
    wanted = dump.text(matcher, "exact")
    return kind in ("DNS", "") and name.startswith("*.") and wanted.partition(".")[2] == name[2:]
