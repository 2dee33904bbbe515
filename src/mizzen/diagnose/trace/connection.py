"""One connection at one proxy: listener, filter chain, TLS, network filters.

In: a hop and the listener that took the connection. Out: the answer. HTTP goes on in `http`, everything else through
`tcp_proxy` to a cluster.
"""

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import branches, filter_chains, http, listeners, policies, rbac, tls, upstream
from mizzen.diagnose.trace.hop import Hop
from mizzen.diagnose.trace.verdict import NO_FLAG, Answer, Passage
from mizzen.diagnose.trace.wire import Peer

CONNECTION_MANAGER = ".http_connection_manager."
_TCP_PROXY = ".tcp_proxy."
_RBAC = ".network.rbac."
_SNI_CLUSTER = ".sni_cluster."
_NO_CHAIN = "filter_chain_not_found"


def serve(hop: Hop, chosen: listeners.Chosen) -> Answer:
    """What becomes of the connection at this listener."""
    listener = chosen.listener
    hop.journal.note(
        hop.side,
        "listener",
        f"listener {dump.text(listener, 'name')}",
        ("why", chosen.why),
        origin=hop.world.origin(listener),
    )
    seen = listeners.inspect(listener, hop.wire)
    found = filter_chains.find(listener, seen)
    if found.chain is None:
        return _no_chain(hop, found, seen, listener)
    _note_chain(hop, found, seen)
    hop.journal.passages.append(Passage(side=hop.side, listener=dump.text(listener, "name"), chain=found.chain))
    receiving = tls.server(hop.world, hop.pod, hop.held, found.chain)
    refused, onward = _handshake(hop, receiving)
    return refused if refused is not None else _filters(onward, found.chain)


def _no_chain(hop: Hop, found: filter_chains.Found, seen: filter_chains.Seen, listener: Json) -> Answer:
    there = filter_chains.by_port(list(dump.items(listener, "filter_chains")), seen)
    others = tuple(filter_chains.describe(c) for c in there)
    hop.journal.note(hop.side, "filter_chain", found.failed, state="fails", passed_over=others[:8])
    hop.journal.first_log = (0, "NR", _NO_CHAIN)
    plain = hop.wire.hello is None
    reason, about = _why_no_chain(hop, found, seen, there)
    return Answer(
        kind="closed" if plain else "tls",
        flag="NR",
        details=_NO_CHAIN,
        side=hop.side,
        link="filter_chain" if about[0] == "sni" else "tls",
        reason=reason,
        transport="" if plain else tls.RESET,
        about=about,
        connected=plain,
    )


def _why_no_chain(
    hop: Hop, found: filter_chains.Found, seen: filter_chains.Seen, there: list[Json]
) -> tuple[str, tuple[str, ...]]:
    """In words, and what the cause is looked for by: at a sidecar it is TLS that the two sides see differently."""
    secured = [c for c in there if tls.server(hop.world, hop.pod, hop.held, c) is not None]
    if not hop.is_inbound or not secured:
        return found.failed, ("sni", seen.server_name)
    if hop.wire.hello is None:
        reason = f"{hop.side} takes mutual TLS only on port {seen.port}, and the client speaks plain text"
        return reason, ("strict", hop.side, str(seen.port))
    takes = "plain text or the mesh's mutual TLS" if len(secured) < len(there) else "the mesh's mutual TLS only"
    reason = f"{hop.side} takes {takes} on port {seen.port}, and the client speaks other TLS"
    return reason, ("tls", hop.side, str(seen.port))


def _note_chain(hop: Hop, found: filter_chains.Found, seen: filter_chains.Seen) -> None:
    chain = found.chain or {}
    hop.journal.note(
        hop.side,
        "filter_chain",
        f"filter chain {dump.text(chain, 'name')}".rstrip(),
        ("matches", "nothing else did: the default" if found.is_default else filter_chains.describe(chain)),
        ("transport", seen.transport),
        ("SNI", seen.server_name),
        ("protocols", ", ".join(seen.protocols)),
        origin=hop.world.origin(chain),
    )


# -- TLS --------------------------------------------------------------------------------------------------------------


def _handshake(hop: Hop, receiving: tls.Server | None) -> tuple[Answer | None, Hop]:
    """The connection behind the handshake, or how it failed."""
    hello = hop.wire.hello
    if receiving is None:
        return None, _with_peer(hop, Peer(address=hop.wire.source, port=hop.wire.port, destination=hop.wire.address))
    if hello is None:
        reason = f"{hop.side} expects TLS here, and the client speaks plain text"
        hop.journal.note(hop.side, "tls", "plain text where TLS is expected", state="fails")
        about = ("strict", hop.side, str(hop.wire.port))
        return hop.closed("tls", reason, flag=NO_FLAG, details="", about=about), hop
    failure, doubt = tls.agree(hello, receiving)
    if doubt:
        hop.journal.hang_on(doubt)
    if failure is not None:
        return _refused(hop, failure), hop
    shown = hello.certificate if receiving.roots.kind != "none" or receiving.demands else None
    peer = Peer(
        address=hop.wire.source,
        is_mutual=shown is not None,
        identity=shown.identity if shown is not None else "",
        server_name=hello.server_name,
        port=hop.wire.port,
        destination=hop.wire.address,
    )
    hop.journal.note(
        hop.side,
        "tls",
        "mutual TLS agrees" if peer.is_mutual else "TLS agrees",
        ("server certificate", _name(receiving)),
        ("client certificate", peer.identity),
        ("SNI", hello.server_name),
    )
    onward = msgspec.structs.replace(hop.wire, hello=None)
    return None, _with_peer(msgspec.structs.replace(hop, wire=onward), peer)


def _name(receiving: tls.Server) -> str:
    own = receiving.certificate
    return "" if own is None else own.identity or ", ".join(own.names) or own.source


def _refused(hop: Hop, failure: tls.Failure) -> Answer:
    hop.journal.note(hop.side, failure.link, "TLS fails", ("why", failure.reason), state="fails")
    return Answer(
        kind="closed" if failure.handshake_seemed_done else "tls",
        side=hop.side,
        link=failure.link,
        reason=failure.reason,
        transport=failure.transport,
        about=("secret", failure.secret) if failure.secret else ("tls", hop.side, str(hop.wire.port), failure.shown),
        connected=failure.handshake_seemed_done,
    )


def _with_peer(hop: Hop, peer: Peer) -> Hop:
    return msgspec.structs.replace(hop, peer=peer)


# -- network filters --------------------------------------------------------------------------------------------------


def _filters(hop: Hop, chain: Json) -> Answer:
    by_sni = False
    for each in dump.items(chain, "filters"):
        config = dump.message(each, "typed_config")
        kind = dump.text(config, "@type")
        if _RBAC in kind:
            denied = rbac.network(hop, config)
            if denied is not None:
                policies.corroborate(hop, None, None, denied)
                return denied
        elif _SNI_CLUSTER in kind:
            by_sni = True
        elif _TCP_PROXY in kind:
            if hop.is_inbound:
                policies.corroborate(hop, None, None, None)
            return _tcp(hop, config, by_sni=by_sni)
        elif CONNECTION_MANAGER in kind:
            return _http(hop, config)
    reason = "the filter chain leads nowhere"
    return hop.closed("filter_chain", reason, flag=NO_FLAG, details="")


def _http(hop: Hop, config: Json) -> Answer:
    message = hop.wire.message
    if message is None or hop.wire.hello is not None:
        what = "TLS" if hop.wire.hello is not None else "something other than HTTP"
        hop.journal.note(hop.side, "filter_chain", f"{what} where HTTP is expected", state="fails")
        return Answer(
            kind="tls" if hop.wire.hello is not None else "response",
            status=400,
            flag="DPE",
            details="http1.codec_error",
            side=hop.side,
            link="tls" if hop.wire.hello is not None else "filter_chain",
            reason=f"{hop.side} expects plain HTTP on port {hop.wire.port}, and {what} arrives",
            transport=tls.WRONG_VERSION if hop.wire.hello is not None else "",
            about=("tls", hop.side, str(hop.wire.port)) if hop.wire.hello is not None else ("protocol",),
            connected=hop.wire.hello is None,
        )
    return http.serve(hop, config, message)


def _tcp(hop: Hop, config: Json, *, by_sni: bool) -> Answer:
    weighted = [
        (dump.text(c, "name"), dump.number(c, "weight")) for c in dump.items(config, "weighted_clusters", "clusters")
    ]
    cluster = hop.wire.hello.server_name if by_sni and hop.wire.hello else dump.text(config, "cluster")
    targets = [(name, weight) for name, weight in weighted if weight] or [(cluster, 1)]
    if len(targets) == 1:
        return upstream.connect(hop, targets[0][0])
    hop.journal.shares = tuple(targets)
    ways = []
    for name, weight in targets:
        journal = hop.journal.branch()
        answer = upstream.connect(hop.with_journal(journal), name)
        ways.append(branches.Way(label=name, weight=weight, answer=answer, journal=journal))
    return branches.settle(hop.journal, "weights", ways)
