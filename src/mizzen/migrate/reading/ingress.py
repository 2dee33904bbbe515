"""One Ingress with all its settings."""

from collections.abc import Mapping

from mizzen.api.kube.ingress import Ingress
from mizzen.api.meta import Key, Object
from mizzen.migrate.annotations import Annotations
from mizzen.migrate.findings import Notes
from mizzen.migrate.reading.access import read_access
from mizzen.migrate.reading.canaries import ignore_others, read_canary
from mizzen.migrate.reading.catalogue import judge_rest
from mizzen.migrate.reading.cors import read_cors
from mizzen.migrate.reading.redirects import read_redirects
from mizzen.migrate.reading.requests import read_requests
from mizzen.migrate.reading.upstreams import read_upstream
from mizzen.migrate.settings import Settings


def read_settings(key: Key, ingress: Ingress, objects: Mapping[Key, Object], notes: Notes) -> Settings:
    """What the annotations of an Ingress ask for; each of them is judged in the notes."""
    annotations = Annotations(key, ingress.metadata.annotations, notes)
    canary = read_canary(annotations)
    if canary is not None:
        ignore_others(annotations)
        return Settings(canary=canary)
    if annotations.flag("ssl-passthrough"):
        annotations.exact("ssl-passthrough")
        annotations.exact(*annotations.unjudged, how="nothing beside ssl-passthrough")
        return Settings(passthrough=True)
    annotations.exact("ssl-passthrough")
    settings = Settings(
        **read_redirects(annotations),
        **read_requests(annotations, objects),
        **read_upstream(annotations),
        **read_access(annotations),
        cors=read_cors(annotations),
        aliases=_aliases(annotations),
    )
    judge_rest(annotations)
    return settings


def _aliases(annotations: Annotations) -> tuple[str, ...]:
    names = annotations.items("server-alias")
    if any(name.startswith("~") for name in names):
        annotations.approximated("server-alias", how="without regular expressions; hosts have at most a leading *")
    annotations.exact("server-alias")
    return tuple(name for name in names if not name.startswith("~"))
