"""Mutual TLS that does not agree, tokens and callers that are refused, secrets that are missing.

In: the answer, and the objects of security. Out: the object at fault. Where client and server disagree about TLS, a
DestinationRule that says so comes first: without it auto-mTLS would have agreed.
"""

from mizzen.api.meta import Key
from mizzen.api.networking.destination_rule import DestinationRule
from mizzen.api.networking.gateway import Gateway
from mizzen.api.policy import AuthorizationPolicy
from mizzen.diagnose.policy_rules import parse_rule
from mizzen.diagnose.trace.causes import hosts
from mizzen.diagnose.trace.causes.found import Case, Found
from mizzen.diagnose.trace.causes.gateways import all_gateways, no_chain, serving
from mizzen.diagnose.trace.verdict import Cause
from mizzen.diagnose.trace.world import Workload
from mizzen.model import policies, workloads

_ABOUT_SERVERS = ("strict", "tls")


# -- mutual TLS ------------------------------------------------------------------------------------------------------


def plain_text_to_strict(case: Case) -> Found:
    """A server that takes mutual TLS only, and a client that does not speak it."""
    server, client = _server(case), case.first
    rule = _client_rule(case)
    policy = _strict_policy(case, server) if server is not None else None
    if server is not None and server.proxy == "router" and rule is None:
        return no_chain(case)
    if rule is not None:
        reason = f"{rule} has the client speak plain text or TLS of its own, and {_named(policy, 'the server')}"
        return Found(cause=rule, reason=f"{reason} takes mutual TLS only", fix="set its tls.mode to ISTIO_MUTUAL")
    hidden = hosts.hidden_from(case, client) if client is not None and client.proxy == "sidecar" else Found()
    if hidden.cause is not None:
        reason = f"{hidden.reason}, so that the client knows of no mutual TLS, and {_named(policy, 'the server')}"
        return Found(cause=hidden.cause, reason=f"{reason} takes nothing else", fix=hidden.fix)
    why = "has no sidecar" if client is not None and client.proxy != "sidecar" else "speaks plain text"
    who = client.reference if client is not None else "the client"
    reason = f"{who} {why}, and {_named(policy, 'the server')} takes mutual TLS only (STRICT)"
    return Found(cause=policy, reason=reason, fix="give the client a sidecar, or set the mode to PERMISSIVE")


def _named(cause: Cause | None, otherwise: str) -> str:
    return str(cause) if cause is not None else otherwise


def _server(case: Case) -> Workload | None:
    """The proxy that the answer is about, else the last one on the way."""
    about = case.answer.about
    named = case.pod(about[1]) if len(about) > 1 and about[0] in _ABOUT_SERVERS else None
    return named or next((p for step in reversed(case.steps) if (p := case.pod(step.side)) is not None), None)


def _client_rule(case: Case) -> Cause | None:
    """The DestinationRule that shaped the last cluster before the server."""
    origin = case.origin("cluster")
    if origin is None or origin.kind != "DestinationRule":
        return None
    return origin if sets_tls(case.world.object(Key(origin.kind, origin.namespace, origin.name))) else None


def sets_tls(rule: DestinationRule | None) -> bool:
    """Whether a rule says anything of TLS, of whichever subset and port."""
    written = [rule.spec.traffic_policy, *(s.traffic_policy for s in rule.spec.subsets)] if rule is not None else []
    stated = [policy for policy in written if policy is not None]
    return any(tls is not None for p in stated for tls in (p.tls, *(level.tls for level in p.port_level_settings)))


def _strict_policy(case: Case, server: Workload) -> Cause | None:
    """The PeerAuthentication by which the server takes mutual TLS only at the port that the answer is about."""
    labels, port = workloads.freeze(server.labels), int(case.answer.about[2])
    if policies.peer_modes(case.db, server.namespace, labels).of(port) != "STRICT":
        return None
    deciding = policies.deciding_peer(case.db, server.namespace, labels, port)
    if deciding is None:
        return None
    return case.world.cause(Key("PeerAuthentication", deciding.metadata.namespace, deciding.metadata.name))


def disagreement(case: Case) -> Found:
    """A handshake that fails."""
    rule = _client_rule(case)
    reason = case.answer.reason
    server = _server(case)
    if case.answer.link == "secret" and server is not None:
        return _bad_secret(case, server)
    if rule is not None:
        return Found(
            cause=rule, reason=f"{reason} ({rule})", fix="correct its tls settings, or leave them to auto-mTLS"
        )
    if server is None:
        return Found(reason=reason)
    gateway = serving(case, server) if server.proxy == "router" else None
    if gateway is not None:
        return case.blame(gateway, reason, "give the client such a certificate, or change the tls.mode of the server")
    if not server.proxy:
        fix = "give the pod a sidecar, or take the label security.istio.io/tlsMode from it"
        return case.blame(Key("Pod", server.namespace, server.name), reason, fix)
    policy = _strict_policy(case, server)
    if case.request.is_tls:
        fix = "call it in plain text: the sidecars see to TLS; or name the Service's port tls, if the program speaks it"
        return Found(cause=policy, reason=reason, fix=fix)
    return Found(cause=policy, reason=reason, fix="compare both sides with `mizzen proxy-config secret`")


def unmatched_chain(case: Case) -> Found:
    """No chain for a server name: the rule that has the client say it, or the gateway that does not know it."""
    rule = _client_rule(case)
    if rule is None:
        return no_chain(case)
    return Found(cause=rule, reason=f"{case.answer.reason} ({rule})", fix="correct the sni or the mode of its tls")


# -- secrets ---------------------------------------------------------------------------------------------------------


def missing_secret(case: Case) -> Found:
    """A secret that a proxy should have: the Gateway or rule that names it, or the Secret that is no use."""
    name = next((part for part in case.answer.about if "://" in part), "")
    bare = name.partition("://")[2].rpartition("/")[2].removesuffix("-cacert")
    server = _server(case)
    if bare and server is not None:
        secret = Key("Secret", server.namespace, bare)
        if case.db.input(secret) is not None:
            reason = f"{case.world.cause(secret)} holds no usable certificate and key"
            return case.blame(secret, reason, "replace its tls.crt and tls.key")
        for key, gateway in all_gateways(case):
            if _names_credential(gateway, bare):
                reason = f"{case.world.cause(key)} names the Secret {bare}, which namespace {server.namespace} lacks"
                return case.blame(
                    key, reason, f"create the Secret {server.namespace}/{bare}, or correct credentialName"
                )
    rule = _client_rule(case)
    return Found(cause=rule, reason=case.answer.reason, fix="create the Secret, or correct credentialName")


def _bad_secret(case: Case, server: Workload) -> Found:
    """A certificate that is there and no good: the Secret that the server showed, or that of the server meant."""
    shown = case.answer.about[3] if len(case.answer.about) > 3 else ""
    own = Key("Secret", server.namespace, shown.rpartition("/")[2])
    if shown and case.db.input(own) is not None:
        return case.blame(own, case.answer.reason, f"renew the certificate in {own.namespace}/{own.name}")
    key = serving(case, server) if server.proxy == "router" else None
    gateway: Gateway | None = case.db.input(key) if key is not None else None
    for each in gateway.spec.servers if gateway is not None else ():
        credential = each.tls.credential_name if each.tls is not None else ""
        secret = Key("Secret", server.namespace, credential)
        if credential and case.db.input(secret) is not None:
            return case.blame(secret, case.answer.reason, f"renew the certificate in {server.namespace}/{credential}")
    return Found(reason=case.answer.reason, fix="renew the certificate")


def _names_credential(gateway: Gateway, name: str) -> bool:
    return any(
        server.tls is not None and name in (server.tls.credential_name, *server.tls.credential_names)
        for server in gateway.spec.servers
    )


# -- policies --------------------------------------------------------------------------------------------------------


def denied(case: Case) -> Found:
    """An AuthorizationPolicy: the one whose rule matched, or for none the one that came nearest."""
    server = case.pod(case.answer.side)
    matched = parse_rule(case.answer.details)
    if matched is not None:
        key = Key("AuthorizationPolicy", matched.namespace, matched.name)
        reason = f"rule {matched.rule} of {case.world.cause(key)} denies it"
        return case.blame(key, reason, "narrow that rule, or send what it does not match")
    nothing = _allows_nothing(case, server) if server is not None else None
    if nothing is not None:
        reason = f"{case.world.cause(nothing)} has no rules and allows nothing"
        return case.blame(nothing, reason, "add rules that allow what should pass")
    nearest = next((v for s in reversed(case.steps) for n, v in s.facts if n == "nearest miss"), "")
    near = parse_rule(nearest)
    if near is not None:
        key = Key("AuthorizationPolicy", near.namespace, near.name)
        missed = nearest.partition(": ")[2]
        reason = f"no rule allows it; rule {near.rule} of {case.world.cause(key)} comes nearest: {missed}"
        return case.blame(key, reason, "add a rule that allows it")
    return _first_allowing(case, server) if server is not None else Found(reason=case.answer.reason)


def refused_by_authorizer(case: Case) -> Found:
    """The CUSTOM policy by which an authorizer was asked."""
    matched = parse_rule(" ".join(case.answer.about))
    if matched is None:
        return Found(reason=case.answer.reason)
    key = Key("AuthorizationPolicy", matched.namespace, matched.name)
    reason = f"rule {matched.rule} of {case.world.cause(key)} has it asked, and {case.answer.reason}"
    return case.blame(key, reason, "narrow that rule, or have the authorizer allow it")


def _allows_nothing(case: Case, server: Workload) -> Key | None:
    """The only ALLOW policy, if it has no rules."""
    applying = policies.authorization_policies(case.db, server.namespace, workloads.freeze(server.labels))
    allowing = [policy for policy in applying if policy.spec.action == "ALLOW"]
    if len(allowing) != 1 or allowing[0].spec.rules:
        return None
    return Key("AuthorizationPolicy", allowing[0].metadata.namespace, allowing[0].metadata.name)


def _first_allowing(case: Case, server: Workload) -> Found:
    """Connections: rules that only HTTP can meet are left out of what is enforced."""
    labels = workloads.freeze(server.labels)
    for policy in policies.authorization_policies(case.db, server.namespace, labels):
        if isinstance(policy, AuthorizationPolicy) and policy.spec.action == "ALLOW":
            key = Key("AuthorizationPolicy", policy.metadata.namespace, policy.metadata.name)
            return case.blame(key, f"no rule of {case.world.cause(key)} allows the connection", "add such a rule")
    return Found(reason=case.answer.reason)


def refused_token(case: Case) -> Found:
    """The RequestAuthentication that judged the token."""
    server = case.pod(case.answer.side)
    if server is None:
        return Found(reason=case.answer.reason)
    rules = policies.request_authentications(case.db, server.namespace, workloads.freeze(server.labels))
    written = [(rule.issuer, policy) for policy in rules for rule in policy.spec.jwt_rules]
    for issuer in case.answer.about[1:]:
        policy = next((policy for stated, policy in written if stated == issuer), None)
        if policy is not None:
            key = Key("RequestAuthentication", policy.metadata.namespace, policy.metadata.name)
            reason = f"{case.world.cause(key)} refuses the token: {case.answer.reason}"
            return case.blame(key, reason, "send a token of a configured issuer, unexpired and rightly signed")
    return Found(reason=case.answer.reason)
