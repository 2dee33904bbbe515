"""Changes of listeners: chains that come, go or change, and what of their filters: policies, logs, TLS, routes.

In: a listener on both sides. Out: `Change`s. One policy changes every chain of a pod, so what is said of several chains
is said once, with their number.
"""

from collections.abc import Container, Iterator

from mizzen.diagnose import dump
from mizzen.diagnose.change import routes
from mizzen.diagnose.change.changes import Action, Change, changed, generic, plural, worded
from mizzen.diagnose.change.fields import canonical, differences, show, without
from mizzen.diagnose.dump import Json
from mizzen.diagnose.policy_rules import parse_rule

_MANAGER = ".http_connection_manager."
_RBAC = ".rbac."
_JWT = ".jwt_authn."
_FEW = 2
CHAINS = ("filterChains", "defaultFilterChain", "filterChainMatcher")
"""The fields in which an update may differ and still be made in place."""


def address(listener: Json) -> str:
    """`ADDRESS:PORT` that it listens at, or stands for."""
    socket = dump.message(listener, "address", "socket_address")
    return f"{dump.text(socket, 'address')}:{dump.number(socket, 'port_value')}" if socket else "internal"


def subject(name: str, listener: Json) -> str:
    """The listener as operators name it."""
    where = address(listener)
    return name if where.replace(":", "_") == name else f"{name} ({where})"


def chains(listener: Json) -> dict[str, Json]:
    """The chains of a listener by title, the default one last; titles of several say what tells them apart."""
    found: dict[str, Json] = {}
    for chain in dump.items(listener, "filter_chains"):
        found[_unique(chain_title(chain), found)] = chain
    default = dump.message(listener, "default_filter_chain")
    if default:
        found[_unique("default", found)] = default
    return found


def chain_title(chain: Json) -> str:
    """Name and match of a chain."""
    match = dump.message(chain, "filter_chain_match")
    words = [f"port {dump.number(match, 'destination_port')}"] if dump.number(match, "destination_port") else []
    words += dump.texts(match, "server_names")
    words += [f"{dump.text(r, 'address_prefix')}/{dump.number(r, 'prefix_len')}" for r in _ranges(match)]
    protocols = dump.texts(match, "application_protocols")
    words += [dump.text(match, "transport_protocol")] if dump.text(match, "transport_protocol") else []
    words += ["+".join(protocols)] if protocols else []
    name = dump.text(chain, "name")
    inner = " ".join(words)
    return f"{name} ({inner})" if name and inner else name or inner or "all"


def _ranges(match: Json) -> list[Json]:
    return list(dump.items(match, "prefix_ranges"))[:_FEW]


def _unique(title: str, known: Container[str]) -> str:
    number, found = 2, title
    while found in known:
        found, number = f"{title} #{number}", number + 1
    return found


def compare(name: str, old: Json | None, new: Json | None) -> Iterator[Change]:
    """What changes for this listener."""
    if old is None or new is None:
        there = old or new or {}
        action: Action = "added" if old is None else "removed"
        text = f"{action}: {_purpose(there)}"
        yield Change(kind="listener", subject=subject(name, there), action=action, text=text)
        return
    texts = [
        *_chain_texts(chains(old), chains(new)),
        *generic(differences(without(old, *CHAINS), without(new, *CHAINS))),
        *generic(differences(old.get("filterChainMatcher"), new.get("filterChainMatcher"), "filterChainMatcher")),
    ]
    yield from changed("listener", subject(name, new), texts)


def _purpose(listener: Json) -> str:
    kinds = {dump.text(f, "typed_config", "@type") for c in chains(listener).values() for f in dump.items(c, "filters")}
    return "HTTP" if any(_MANAGER in kind for kind in kinds) else "TCP"


def _chain_texts(before: dict[str, Json], after: dict[str, Json]) -> Iterator[str]:
    yield from (f"chain {title} removed" for title in before if title not in after)
    yield from (f"chain {title} added" for title in after if title not in before)
    said: dict[str, list[str]] = {}
    for title in before:
        if title in after and before[title] != after[title]:
            for text in worded(_inner_texts(before[title], after[title]), before[title], after[title]):
                said.setdefault(text, []).append(title)
    for text, titles in said.items():
        where = f"chain {', '.join(titles)}" if len(titles) <= _FEW else plural(len(titles), "chain")
        yield f"{where}: {text}"


# -- one chain --------------------------------------------------------------------------------------------------------


def _inner_texts(old: Json, new: Json) -> Iterator[str]:
    before, after = _receives(old), _receives(new)
    if before != after:
        yield f"TLS {before} → {after}"
    elif old.get("transportSocket") != new.get("transportSocket"):
        yield from generic(differences(old.get("transportSocket"), new.get("transportSocket"), "TLS"))
    yield from _filter_lists(old, new, "filters")
    said = ("name", "filters", "transportSocket", "metadata")
    yield from generic(differences(without(old, *said), without(new, *said)))


def _receives(chain: Json) -> str:
    context = dump.message(chain, "transport_socket", "typed_config")
    if not context:
        return "plain"
    return "mutual" if dump.field(context, "require_client_certificate") else "one-sided"


def _filter_lists(old: Json, new: Json, field: str) -> Iterator[str]:
    before, after = _filters(old, field), _filters(new, field)
    for name in dict.fromkeys((*before, *after)):
        if name not in before or name not in after:
            yield from _whole(after.get(name) or before[name], "removed" if name not in after else "added")
        elif before[name] != after[name]:
            yield from _configs(before[name], after[name])
    kept = [name for name in before if name in after], [name for name in after if name in before]
    if kept[0] != kept[1]:
        yield f"order of filters → {', '.join(name.rpartition('.')[2] for name in kept[1])}"


def _filters(message: Json, field: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for each in dump.items(message, field):
        found[_unique(dump.text(each, "name"), found)] = each
    return found


def _whole(config: Json, action: str) -> Iterator[str]:
    """A filter that comes or goes; of policies, the rules that come or go with it."""
    short = dump.text(config, "name").rpartition(".")[2]
    rules = list(_policies(dump.message(config, "typed_config"))) if _RBAC in _type(config) else []
    if rules:
        yield from (f"{text} {action}" for text in rules)
    else:
        yield f"filter {short} {action}"


def _type(config: Json) -> str:
    return dump.text(config, "typed_config", "@type")


def _configs(old: Json, new: Json) -> Iterator[str]:
    before, after = dump.message(old, "typed_config"), dump.message(new, "typed_config")
    kind = _type(new)
    short = dump.text(new, "name").rpartition(".")[2]
    if _MANAGER in kind and _MANAGER in _type(old):
        yield from _managers(before, after)
    elif _RBAC in kind and _RBAC in _type(old):
        yield from _rule_texts(_policies(before), _policies(after))
    elif _JWT in kind:
        yield from (f"token rules: {text}" for text in generic(differences(dict(before), dict(after))))
    else:
        yield from generic(differences(dict(old), dict(new), short))


def _managers(old: Json, new: Json) -> Iterator[str]:
    yield from _filter_lists(old, new, "http_filters")
    if old.get("accessLog") != new.get("accessLog"):
        yield f"access log {_names(old)} → {_names(new)}" if _names(old) != _names(new) else "access log changed"
    before, after = dump.message(old, "route_config"), dump.message(new, "route_config")
    if before and after:
        yield from (str(each) for each in routes.compare(dump.text(after, "name"), before, after))
    elif before != after:
        yield f"routes {show(dict(before) or 'by discovery')} → {show(dict(after) or 'by discovery')}"
    said = ("httpFilters", "accessLog", "routeConfig")
    yield from generic(differences(without(old, *said), without(new, *said)))


def _names(manager: Json) -> str:
    names = [dump.text(each, "name").rpartition(".")[2] for each in dump.items(manager, "access_log")]
    return ", ".join(names) or "none"


def _policies(config: Json) -> dict[str, str]:
    """The rules of an authorization filter, each with its content."""
    found = {}
    for field, effect in (("rules", "policy rule"), ("shadow_rules", "dry-run rule")):
        rules = dump.message(config, field)
        action = dump.text(rules, "action") or "ALLOW"
        for name, rule in dump.message(rules, "policies").items():
            found[f"{effect} {_policy_name(name)} ({action})"] = canonical(rule)
        if dump.field(config, field) is not None and not dump.message(rules, "policies"):
            found[f"{effect} for nobody ({action})"] = ""
    return found


def _policy_name(name: str) -> str:
    """`ns[foo]-policy[bar]-rule[0]` as `foo/bar rule 0`."""
    parts = parse_rule(name) if name.startswith("ns[") else None
    return f"{parts.namespace}/{parts.name} rule {parts.rule}" if parts is not None else name


def _rule_texts(old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    yield from (f"{name} removed" for name in old if name not in new)
    yield from (f"{name} added" for name in new if name not in old)
    yield from (f"{name} changed" for name in old if name in new and old[name] != new[name])
