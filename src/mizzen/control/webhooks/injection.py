"""Injection on admission: the review of a pod, answered with what it lacks.

In: a `Request` and the variables of its path. Out: an `Answer` whose patch is the difference between the pod as it
came and as `inject.pod.inject_pod` leaves it, so that admission and `mizzen inject` agree. Which pods are asked about
is decided by the selectors of the webhook configuration; what the pod itself says is decided here. A pod that cannot be
injected is refused with the reason; one that needs nothing passes.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from mizzen import observe
from mizzen.control.webhooks import addresses
from mizzen.control.webhooks.installation import Installation
from mizzen.control.webhooks.patches import diff
from mizzen.control.webhooks.reviews import Answer, Request
from mizzen.errors import DecodeError
from mizzen.inject.pod import inject_pod
from mizzen.inject.selection import INJECT
from mizzen.inject.workload import mapping, texts

_log = observe.scope("injector")
_REQUESTS = observe.Counter("sidecar_injection_requests_total", "Pods that injection was asked about.")
_SUCCESSES = observe.Counter("sidecar_injection_success_total", "Pods that were injected.")
_FAILURES = observe.Counter("sidecar_injection_failure_total", "Pods that could not be injected.")
_SKIPS = observe.Counter("sidecar_injection_skip_total", "Pods that were left as they are.")
_SECONDS = observe.Histogram(
    "sidecar_injection_time_seconds", "Time that an injection took.", (0.1, 1, 3, 5, 10, 20, 30, 60)
)


class Injector:
    """Answers reviews of pods."""

    def __init__(self, installation: Installation, mesh: Callable[[], Mapping[str, Any]]) -> None:
        """`mesh` gives the mesh config as it is written."""
        self._installation, self._mesh = installation, mesh

    def review(self, request: Request, path: str = "") -> Answer:
        """The answer; `path` is what follows `/inject/`."""
        _REQUESTS.inc()
        begun = time.perf_counter()
        try:
            return self._inject(request, path)
        except DecodeError as error:
            return _refuse(request, str(error))
        finally:
            _SECONDS.observe(time.perf_counter() - begun)

    def count_unread(self) -> None:
        """Somebody asked in a way that cannot be answered."""
        _REQUESTS.inc()
        _FAILURES.inc()

    def _inject(self, request: Request, path: str) -> Answer:
        if request.operation not in ("", "CREATE"):
            _SKIPS.inc()
            return Answer(allowed=True)  # A pod that exists cannot be given containers.
        raw = request.object
        if raw is None or not isinstance(mapping(raw, "spec").get("containers"), list):
            return _refuse(request, "the review holds no pod")
        pod = _placed(raw, request.namespace)
        config = addresses.apply(self._installation.config_for(pod), addresses.read_path(path))
        done = inject_pod(pod, mesh=self._mesh(), config=config)
        if done.problems:
            return _refuse(request, "; ".join(map(str, done.problems)))
        if done.skipped_reason is not None:
            _SKIPS.inc()
            _log.debug("%s is not injected: %s", _name(request), done.skipped_reason)
            return Answer(allowed=True, warnings=_surprises(raw, done.skipped_reason))
        _SUCCESSES.inc()
        _log.debug("%s is injected", _name(request))
        return Answer(allowed=True, patch=tuple(diff(raw, _unplaced(done.pod, raw))))


def _placed(raw: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """The pod in its namespace, which a pod of a controller need not name."""
    metadata = mapping(raw, "metadata")
    return {**raw, "metadata": {**metadata, "namespace": metadata.get("namespace") or namespace}}


def _unplaced(pod: dict[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """The result with no more said about its namespace than before."""
    before, after = mapping(raw, "metadata"), dict(pod["metadata"])
    after.pop("namespace", None)
    return {**pod, "metadata": {**after, **{name: before[name] for name in ("namespace",) if name in before}}}


def _surprises(raw: Mapping[str, Any], reason: str) -> tuple[str, ...]:
    """That a pod which asks for a sidecar gets none is worth a word to whoever made it."""
    asks = texts(mapping(raw, "metadata"), "labels").get(INJECT) == "true"
    return (f"no sidecar is injected: {reason}",) if asks else ()


def _refuse(request: Request, message: str) -> Answer:
    _FAILURES.inc()
    _log.warning("%s cannot be injected: %s", _name(request), message)
    return Answer(allowed=False, message=message)


def _name(request: Request) -> str:
    metadata = mapping(request.object or {}, "metadata")
    return f"{request.namespace}/{request.name or metadata.get('name') or metadata.get('generateName') or ''}"
