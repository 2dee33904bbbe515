"""Webhooks: injectors that overlap, or call a control plane that is not there.

In: both kinds of webhook configuration, Services, Namespaces' revisions. Out: IST0139, IST0163, IST0164.
"""

import ipaddress
import urllib.parse
from collections.abc import Iterator, Mapping

from mizzen.analysis import catalogue, objects
from mizzen.analysis.cluster import MUTATING, VALIDATING, Webhook, WebhookConfiguration
from mizzen.analysis.findings import Finding, report
from mizzen.analysis.membership import INJECT, INJECTION, REVISION
from mizzen.api.meta import Key, LabelSelector
from mizzen.api.selectors import selects
from mizzen.incremental import Engine, query

_WEBHOOK_SUFFIX = "istio.io"


# -- injectors ------------------------------------------------------------------------------------------------------


@query
def check_injectors(db: Engine, key: Key) -> tuple[Finding, ...]:
    """An injector that injects what another injects too, or whose Service does not exist."""
    found: WebhookConfiguration | None = db.input(key)
    if found is None or not _is_injector(found):
        return ()
    return (*_overlaps(db, key, found), *_missing_services(db, key, found))


def _is_injector(found: WebhookConfiguration) -> bool:
    return bool(_revisions(found)) or any(hook.name.endswith(_WEBHOOK_SUFFIX) for hook in found.webhooks)


def _revisions(found: WebhookConfiguration) -> set[str]:
    own = found.metadata.labels.get(REVISION)
    named = {
        value
        for hook in found.webhooks
        for selector in (hook.namespace_selector, hook.object_selector)
        for value in _selected_revisions(selector)
    }
    return named | ({own} if own else set())


def _selected_revisions(selector: LabelSelector) -> Iterator[str]:
    if REVISION in selector.match_labels:
        yield selector.match_labels[REVISION]
    for each in selector.match_expressions:
        if each.key == REVISION and each.operator == "In":
            yield from each.values


@query
def _situations(db: Engine) -> tuple[tuple[Mapping[str, str], Mapping[str, str]], ...]:
    """The labels of namespaces and pods that decide who injects."""
    configurations = [found for _, found in objects.values(db, MUTATING) if _is_injector(found)]
    revisions = sorted(set().union(*(_revisions(found) for found in configurations)))
    spaces = _with_revisions([{}, {INJECTION: "enabled"}, {INJECTION: "disabled"}], revisions)
    pods = _with_revisions([{}, {INJECT: "true"}, {INJECT: "false"}], revisions)
    return tuple((space, pod) for space in spaces for pod in pods)


def _with_revisions(plain: list[dict[str, str]], revisions: list[str]) -> list[dict[str, str]]:
    return [*plain, *({**labels, REVISION: revision} for labels in plain for revision in revisions)]


@query
def _overlapping(db: Engine) -> tuple[tuple[str, ...], ...]:
    """The sets of webhooks, by `configuration/webhook`, that would all inject the same pod."""
    hooks = [
        (f"{key.name}/{hook.name}", hook)
        for key, found in objects.values(db, MUTATING)
        if _is_injector(found)
        for hook in found.webhooks
    ]
    together = set()
    for namespace, pod in _situations(db):
        called = tuple(sorted(name for name, hook in hooks if _is_called(hook, namespace, pod)))
        if len(called) > 1:
            together.add(called)
    return tuple(sorted(together))


def _is_called(hook: Webhook, namespace: Mapping[str, str], pod: Mapping[str, str]) -> bool:
    return selects(hook.namespace_selector, namespace) and selects(hook.object_selector, pod)


def _overlaps(db: Engine, key: Key, found: WebhookConfiguration) -> Iterator[Finding]:
    for index, hook in enumerate(found.webhooks):
        own = f"{key.name}/{hook.name}"
        others = sorted({name for called in _overlapping(db) if own in called for name in called} - {own})
        if others:
            listed = " ".join(others)
            text = f"Webhook overlaps with others: [{listed}]. This may cause injection to occur twice."
            yield report(catalogue.INVALID_WEBHOOK, key, text, path=f"webhooks[{index}]")


def _missing_services(db: Engine, key: Key, found: WebhookConfiguration) -> Iterator[Finding]:
    for index, hook in enumerate(found.webhooks):
        service = hook.client_config.service
        if (
            service is not None
            and objects.exists(db, "Service")
            and db.input(Key("Service", service.namespace, service.name)) is None
        ):
            name = f"{service.namespace}/{service.name}"
            text = f"Injector refers to a control plane service that does not exist: {name}."
            path = f"webhooks[{index}].clientConfig.service"
            yield report(catalogue.INVALID_WEBHOOK, key, text, path=path)


# -- a control plane elsewhere ----------------------------------------------------------------------------------------


@query
def check_external(db: Engine, key: Key) -> tuple[Finding, ...]:
    """How a remote cluster's webhooks reach their control plane."""
    found: WebhookConfiguration | None = db.input(key)
    if found is None or not _is_istios(key):
        return ()
    return tuple(finding for index, hook in enumerate(found.webhooks) for finding in _check_address(key, index, hook))


def _is_istios(key: Key) -> bool:
    if key.kind == VALIDATING:
        return key.name == "istiod-default-validator" or key.name.startswith("istio-validator")
    return key.name.startswith("istio-sidecar-injector")


def _check_address(key: Key, index: int, hook: Webhook) -> Iterator[Finding]:
    config, path = hook.client_config, f"webhooks[{index}].clientConfig.url"
    if config.url is None:
        if config.service is None:
            yield report(catalogue.INVALID_EXTERNAL_CONTROL_PLANE_CONFIG, key, "", hook.name, "is blank", path=path)
        return
    host = _host_of(config.url)
    if host is None:
        message = catalogue.INVALID_EXTERNAL_CONTROL_PLANE_CONFIG
        yield report(message, key, config.url, hook.name, "was provided in an invalid format", path=path)
    elif _is_address(host):
        yield report(catalogue.EXTERNAL_CONTROL_PLANE_ADDRESS_IS_NOT_A_HOSTNAME, key, host, hook.name, path=path)


def _host_of(url: str) -> str | None:
    try:
        parts = urllib.parse.urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.scheme and parts.hostname else None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
