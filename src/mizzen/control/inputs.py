"""From the batches of the sources to the inputs of the engine.

In: batches of changed objects, the mesh config, what the compiler leaves out. Out: changes for `xds.push`, each with
the reason that Istio's metrics give it; the findings, of which those of level error are what is not in force, each
logged when it comes and when it goes. Proxies are served once every source has delivered its first list and the key
sets that it names were tried: valid tokens are not refused after a restart.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mizzen import observe, settings
from mizzen.api.kube.data import ConfigMap
from mizzen.api.kube.pods import as_running
from mizzen.api.meta import Key, Object
from mizzen.api.policy import RequestAuthentication
from mizzen.api.problems import Problem
from mizzen.control.jwks import KeySets
from mizzen.control.mesh import MeshSettings, config_map_key
from mizzen.control.mesh_size import MeshSize
from mizzen.control.options import Options
from mizzen.control.spiffe_bundles import SpiffeBundles
from mizzen.model.mesh import AUTHORITY_ROOTS, CONTROL_PLANE, MESH, ControlPlane
from mizzen.sources.batches import Batch
from mizzen.sources.origins import Finding, Origin, untold
from mizzen.xds.push import Pusher

_log = observe.scope("config")
_FINDINGS = observe.Gauge("mizzen_config_findings", "What is wrong with the configuration now, by code.", ("code",))
_OBJECTS = observe.Gauge(
    "mizzen_object_in_force",
    "Objects by kind: without a reason those that are wholly in force, else those that for this reason are not.",
    ("kind", "reason"),
)
_REJECTED = observe.Counter(
    "pilot_total_rejected_configs", "How often a Gateway came to be not wholly in force.", ("type", "name")
)

_REASONS = {
    "Endpoints": "endpoint",
    "EndpointSlice": "endpoint",
    "Pod": "endpoint",
    "Namespace": "namespace",
    "Secret": "secret",
    "Service": "service",
    "ServiceEntry": "service",
    "WorkloadEntry": "service",
}
_SHOWN_AT_START = 100


class Inputs:
    """Everything that the engine is told."""

    def __init__(self, pusher: Pusher, mesh: MeshSettings, options: Options, config: settings.Settings) -> None:
        self._pusher = pusher
        self._mesh = mesh
        self._map_key = config_map_key(config.instance.namespace, config.instance.revision)
        self._waiting: set[str] = set()
        self._opening = False
        self._roots = b""
        self._by_source: dict[str, tuple[Finding, ...]] = {}
        self._origins: dict[str, Mapping[Key, Origin]] = {}
        self._keys: dict[str, set[Key]] = {}
        """The objects that there are, by kind."""
        self._size = MeshSize()
        self._compiled: tuple[Problem, ...] = ()
        self.findings: tuple[Finding, ...] = ()
        """What is wrong now, in the order of the sources."""
        control_plane = ControlPlane(
            domain=options.domain,
            cluster_id=options.cluster_id,
            dual_stack=config.features.dual_stack,
            http10=config.features.http10,
            trace_sampling=config.features.trace_sampling,
        )
        self._issuers: dict[Key, Origin] = {}
        """Where the objects stand that name token issuers."""
        self.key_sets = KeySets(lambda key, value: pusher.feed(key, value, "config"), config.key_sets, self._report)
        """The key sets of token issuers; somebody runs it."""
        self.spiffe_bundles = SpiffeBundles(lambda key, value: pusher.feed(key, value, "global"), config.key_sets)
        """The roots of other trust domains; somebody runs it."""
        pusher.feed(CONTROL_PLANE, control_plane, "global")
        self._feed_mesh()

    def expect(self, source: str) -> None:
        """Serve nobody before this source has delivered its first list."""
        self._waiting.add(source)

    def take(self, source: str, batch: Batch, origins: Mapping[Key, Origin]) -> None:
        """What a source has seen."""
        for key, value in batch.sets.items():
            self._feed(key, value, origins.get(key, Origin(source)))
        for key in batch.removes:
            self._feed(key, None, Origin(source))
        self._by_source[source] = batch.findings
        self._origins[source] = origins
        self._report()
        self._waiting.discard(source)
        if not self._waiting and not self._opening:
            self._opening = True
            self.key_sets.after_first_tries(self._open)

    def take_compiled(self, problems: tuple[Problem, ...]) -> None:
        """What the compiler leaves out now, and what proxies refuse."""
        self._compiled = problems
        self._report()

    def _open(self) -> None:
        _log.info("every source has delivered its first list")
        self._pusher.open()

    def take_mesh(self) -> None:
        """The mesh config may be another one."""
        self._feed_mesh()
        self._report()

    def _feed_mesh(self) -> None:
        config = self._mesh.config
        self.spiffe_bundles.follow(data.spiffe_bundle_url for data in config.ca_certificates if data.spiffe_bundle_url)
        self._pusher.feed(MESH, config, "global")

    def take_roots(self, bundle: bytes) -> None:
        """The authority trusts these roots now."""
        if bundle != self._roots:
            self._roots = bundle
            self._pusher.feed(AUTHORITY_ROOTS, bundle.decode(), "global")

    def _feed(self, key: Key, found: Object | None, origin: Origin) -> None:
        value = as_running(found) if found is not None else None
        self._pusher.feed(key, value, _REASONS.get(key.kind, "config"))
        keys = self._keys.setdefault(key.kind, set())
        (keys.discard if value is None else keys.add)(key)
        self._size.take(key, value)
        if key.kind == "RequestAuthentication":
            policy = value if isinstance(value, RequestAuthentication) else None
            self._issuers.pop(key, None)
            if policy is not None:
                self._issuers[key] = origin
            self.key_sets.follow(key, policy)
        if key == self._map_key:
            self._mesh.follow(value if isinstance(value, ConfigMap) else None, origin)
            self.take_mesh()

    def _report(self) -> None:
        keyless = (Finding(self._issuers[p.key], p) for p in self.key_sets.problems() if p.key in self._issuers)
        told = (*_flatten(self._by_source), *self._mesh.findings, *keyless)
        compiled = (Finding(self._origin(p.key), p) for p in untold(self._compiled, told))
        before, now = self.findings, tuple(dict.fromkeys((*told, *compiled)))
        _count_objects(self._keys, now)
        if set(before) == set(now):
            return
        self.findings = now
        _tell(before, now)
        _count(now)

    def places(self) -> Mapping[Key, Origin]:
        """Where objects stand in files, as far as they do; a copy."""
        found: dict[Key, Origin] = {}
        for origins in reversed(self._origins.values()):
            found.update(origins)
        return found

    def _origin(self, key: Key | None) -> Origin:
        if key is None:
            return Origin("")
        return next((origins[key] for origins in self._origins.values() if key in origins), Origin(""))


def _flatten(by_source: Mapping[str, Iterable[Finding]]) -> Iterable[Finding]:
    for _, findings in sorted(by_source.items()):
        yield from findings


def _identity(finding: Finding) -> tuple[str, Problem]:
    return finding.origin.file, finding.problem


def _tell(before: Sequence[Finding], now: Sequence[Finding]) -> None:
    """Log what is new, and what is gone; that it has moved within its file is no news."""
    known, held = set(map(_identity, before)), set(map(_identity, now))
    new = [finding for finding in now if _identity(finding) not in known]
    _count_rejected(new)
    gone = [finding for finding in before if _identity(finding) not in held]
    for finding in new[:_SHOWN_AT_START]:
        _log.log(observe.LEVELS[finding.problem.level], "%s", finding)
    if len(new) > _SHOWN_AT_START:
        _log.warning("and %d more; all of them are at /debug/problems", len(new) - _SHOWN_AT_START)
    for finding in gone[:_SHOWN_AT_START]:
        _log.info("no longer: %s", finding)
    if len(gone) > _SHOWN_AT_START:
        _log.info("and %d more no longer hold", len(gone) - _SHOWN_AT_START)


def _count_rejected(new: Iterable[Finding]) -> None:
    rejected = {finding.problem.key for finding in new if finding.problem.level == "error"}
    for key in rejected:
        if key is not None and key.kind in ("Gateway", "KubernetesGateway"):
            _REJECTED.labels("gateway", f"{key.namespace}/{key.name}").inc()


def _count(findings: Iterable[Finding]) -> None:
    observe.replace_series(_FINDINGS, Counter((finding.problem.code,) for finding in findings))


def _count_objects(keys: Mapping[str, set[Key]], findings: Iterable[Finding]) -> None:
    """Count each object under every reason for which it is not wholly in force; what is no object's has no kind."""
    problems = [finding.problem for finding in findings if finding.problem.level == "error"]
    at_fault = {problem.key for problem in problems}
    faulty = Counter(key.kind for key in at_fault if key is not None and key in keys.get(key.kind, ()))
    counts: Counter[tuple[str, ...]] = Counter({(kind, ""): len(found) - faulty[kind] for kind, found in keys.items()})
    counts.update({(p.key, p.code): (p.key.kind if p.key is not None else "", p.code) for p in problems}.values())
    observe.replace_series(_OBJECTS, counts)
