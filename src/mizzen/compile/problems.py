"""Problems: what the compiler leaves out of the objects that it was given, and why.

In: an engine. Out: Problems, each on its object. The queries that decide remark what they leave out as they go, for
whichever proxies are connected; `examine` asks those that depend on an object alone, so that a fault is known before
any proxy asks, and costs no more than the object that changed. Nothing is compiled for a proxy here. `gather` is the
one list: remarks, objects that came second where one counts, statuses that say no, and queries that raise.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mizzen.api.kinds import KINDS
from mizzen.api.mesh.config import MeshConfig
from mizzen.api.meta import Key
from mizzen.api.networking.virtual_service import HTTPMatchRequest, VirtualService
from mizzen.api.problems import Problem
from mizzen.compile.filters import formats
from mizzen.compile.patches import values
from mizzen.compile.routes.destinations import Place, RouteClient
from mizzen.compile.routes.virtual_service import routes
from mizzen.compile.security.authorization import compiled_policy
from mizzen.incremental import Engine, Raised, attempt, query
from mizzen.model import mesh, objects, policies, scope, telemetry
from mizzen.model.convert.status.objects import STATUSES, status
from mizzen.model.scope import ScopeId
from mizzen.model.virtual_services import MESH_GATEWAY, qualify_gateway

NOT_COMPILED = "not-compiled"
SHADOWED = "shadowed"
UNUSABLE = (NOT_COMPILED, "unusable-patch", "unusable-route", "unusable-server")
"""What cannot be in force as it is written; other codes are of what others overrule, or nobody takes."""
_WEB = 80
_KINDS = frozenset(kind.name for kind in KINDS)


@query
def parts(db: Engine) -> tuple[tuple[str, str], ...]:
    """Kinds and namespaces to examine, each a small piece of work."""
    spaces = (dict.fromkeys((kind, key.namespace) for key in objects.of_kind(db, kind)) for kind in _CHECKS)
    return ((mesh.MESH.kind, mesh.MESH.namespace), *itertools.chain.from_iterable(spaces))


@query
def examine(db: Engine, kind: str, namespace: str) -> None:
    """Have everything remarked that is wrong with the objects of a kind and namespace by themselves."""
    if kind == mesh.MESH.kind:
        attempt(_check_formats, db)
        return
    for key in objects.in_namespace(db, kind, namespace):
        attempt(_examine, db, key)


@query
def _examine(db: Engine, key: Key) -> None:
    _CHECKS[key.kind](db, key)


def gather(db: Engine) -> tuple[Problem, ...]:
    """What is left out now, by object; as old as the roots are."""
    found = [remark for remark in db.remarks() if isinstance(remark, Problem)]
    found += map(_failure, db.raised())
    return tuple(sorted(dict.fromkeys(found), key=lambda p: (p.key or Key("", "", ""), p.path, p.code, p.message)))


def _failure(raised: Raised) -> Problem:
    """The Problem of a query that raises, on the object that it is about."""
    named = [arg for arg in raised.args if isinstance(arg, Key)]
    read = [Key(*key) for key in raised.reads if len(key) == len(Key._fields)]
    key = next((each for each in (*named, *read) if each.kind in _KINDS), None)
    reason = f"{type(raised.error).__name__}: {raised.error}"
    effect = "everything that it selects is denied" if raised.function is _COMPILED_POLICY else "left out"
    return Problem(key=key, code=NOT_COMPILED, message=f"{effect}, for it cannot be compiled: {reason}")


# -- by kind --------------------------------------------------------------------------------------------------------


def _check_virtual_service(db: Engine, key: Key) -> None:
    """Its routes, for clients whom they mean."""
    virtual: VirtualService | None = db.input(key)
    if virtual is None:
        return
    gateways = tuple(qualify_gateway(gateway, key.namespace) for gateway in virtual.spec.gateways) or (MESH_GATEWAY,)
    conditions = [match for rule in virtual.spec.http for match in rule.match] or [HTTPMatchRequest()]
    for client, place in dict.fromkeys(_meant(match, gateways, key.namespace) for match in conditions):
        routes(db, client, key, place)


def _meant(match: HTTPMatchRequest, gateways: tuple[str, ...], namespace: str) -> tuple[RouteClient, Place]:
    """A client and a place that a match is for."""
    client = RouteClient(
        scope=ScopeId(match.source_namespace or namespace),
        dialect="envoy",
        source_labels=tuple(sorted(match.source_labels.items())),
    )
    gateway = qualify_gateway(match.gateways[0], namespace) if match.gateways else gateways[0]
    return client, Place(port=match.port or _WEB, gateway=gateway)


@query
def _check_formats(db: Engine) -> None:
    """Formats of access logs that upstream Envoy does not read, of which the default takes the place."""
    for path, text in _formats(mesh.mesh_config(db)):
        if not formats.is_readable(text):
            message = f"Envoy does not read {text!r}; the default, or the rest of the labels, is in force"
            db.remark(Problem(key=mesh.MESH, path=path, code="unreadable-format", message=message))


def _formats(config: MeshConfig) -> Iterator[tuple[str, str]]:
    if config.access_log_file and config.access_log_encoding != "JSON":
        yield "accessLogFormat", config.access_log_format
    for nth, provider in enumerate(config.extension_providers):
        for name in ("envoy_file_access_log", "envoy_otel_als"):
            sink = getattr(provider, name)
            written = sink.log_format if sink is not None else None
            if written is not None:
                path = f"extensionProviders[{nth}].{_FORMATTED[name]}.logFormat"
                yield f"{path}.text", written.text or ""
                yield from _texts(written.labels or {}, f"{path}.labels")


_FORMATTED = {"envoy_file_access_log": "envoyFileAccessLog", "envoy_otel_als": "envoyOtelAls"}


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(each, f"{path}.{key}")


def _check_envoy_filter(db: Engine, key: Key) -> None:
    values.problems(db, key)


def _check_authorization(db: Engine, key: Key) -> None:
    for tcp in (False, True):
        compiled_policy(db, key, "envoy", tcp)


def _check_general(db: Engine, key: Key) -> None:
    """Of those that are for a whole namespace only one counts."""
    counts, is_general = _GENERAL[key.kind]
    counting, mine = counts(db, key.namespace), db.input(key)
    if counting is not None and mine is not None and counting != mine and is_general(mine):
        where = "mesh" if key.namespace == mesh.root_namespace(db) else "namespace"
        message = f"has no effect: for the whole {where} {counting.metadata.name} counts, which is older"
        db.remark(Problem(key=key, code=SHADOWED, message=message))


_GENERAL: Mapping[str, tuple[Callable[[Engine, str], Any], Callable[[Any], bool]]] = {
    "PeerAuthentication": (policies.general, policies.is_general),
    "Sidecar": (scope.general, scope.is_general),
    "Telemetry": (telemetry.general, telemetry.is_general),
}
"""Of each kind: the object that counts for a namespace, and whether an object asks for that."""


def _check_status(db: Engine, key: Key) -> None:
    """What the status of an object of the Gateway API says no to."""
    found = status(db, key)
    for condition in _conditions(found) if found is not None else ():
        if condition.status == "False" and condition.type in _IN_FORCE:
            db.remark(Problem(key=key, code=condition.reason, message=condition.message))


_IN_FORCE = ("Accepted", "ResolvedRefs")
"""The conditions that are true of an object that is in force."""


def _conditions(found: Any) -> Iterator[Any]:
    yield from getattr(found, "conditions", ())
    for name in ("listeners", "parents", "ancestors"):
        for each in getattr(found, name, ()):
            yield from each.conditions


_CHECKS: Mapping[str, Callable[[Engine, Key], None]] = {
    "VirtualService": _check_virtual_service,
    "EnvoyFilter": _check_envoy_filter,
    "AuthorizationPolicy": _check_authorization,
    **dict.fromkeys(_GENERAL, _check_general),
    **dict.fromkeys(STATUSES, _check_status),
}

_COMPILED_POLICY = compiled_policy.__wrapped__  # type: ignore[attr-defined]
