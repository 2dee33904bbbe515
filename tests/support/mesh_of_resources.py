"""A mesh made of plain resources, for tests of serving: inputs are resources, compiling is reading them.

Inputs have keys `("Resource", type URL, name)` and bytes as values. Everybody sees everything, but for resources whose
name begins with `ns/NAMESPACE/`, which only proxies of that namespace get.
"""

from collections.abc import Iterable
from typing import Any

from mizzen import protos
from mizzen.compile import resource
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.incremental import Engine, Index, query
from mizzen.model.proxy import Proxy
from mizzen.xds.generator import EngineGenerator

SERVED = (
    resource.CLUSTER,
    resource.ENDPOINT,
    resource.LISTENER,
    resource.ROUTE,
    resource.SECRET,
    resource.EXTENSION,
    resource.NAME_TABLE,
)

_BY_TYPE = Index("Resource", "type", lambda key, _: (key[1],))
_FIELDS = {resource.ENDPOINT: "cluster_name"}


def build(type_url: str, name: str, content: str = "") -> bytes:
    """An encoded Any of that type and name; `content` makes it differ."""
    message: Any = protos.message_class(type_url.rpartition("/")[2])()
    setattr(message, _FIELDS.get(type_url, "name"), name)
    if content and type_url == resource.CLUSTER:
        message.alt_stat_name = content
    elif content and type_url == resource.ENDPOINT:
        message.named_endpoints[content].health_check_config.hostname = content
    elif content and type_url == resource.LISTENER:
        message.stat_prefix = content
    elif content:
        message.MergeFrom(_filled(message, content))
    return protos.encode(protos.pack(message))


def _filled(message: Any, content: str) -> Any:
    found = type(message)()
    if hasattr(found, "virtual_hosts"):
        found.virtual_hosts.add(name=content, domains=["*"])
    elif hasattr(found, "generic_secret"):
        found.generic_secret.secret.inline_string = content
    else:
        found.typed_config.value = content.encode()
    return found


def key(type_url: str, name: str) -> tuple[str, str, str]:
    """The input's key."""
    return ("Resource", type_url, name)


@query
def visible(db: Engine, namespace: str, type_url: str, names: frozenset[str] | None) -> ResourceSet:
    """What proxies of a namespace get: shared by all of them."""
    found = []
    for input_key in db.lookup(_BY_TYPE, type_url):
        name = input_key[2]
        if (names is None or name in names) and _may_see(namespace, name):
            data = db.input(input_key)
            if data == b"broken":
                raise ValueError(f"{name} cannot be compiled")
            found.append(Resource(name, data))
    return ResourceSet(type_url, found)


def _may_see(namespace: str, name: str) -> bool:
    return not name.startswith("ns/") or name.split("/")[1] == namespace


@query
def resources(db: Engine, proxy: Proxy, type_url: str, names: frozenset[str] | None) -> ResourceSet:
    """The root query."""
    return visible(db, proxy.namespace, type_url, names)


def generator(engine: Engine, inputs: Iterable[tuple[str, str, str]] = ()) -> EngineGenerator:
    """A generator over this mesh; `inputs` are (type URL, name, content)."""
    for type_url, name, content in inputs:
        engine.set(key(type_url, name), build(type_url, name, content))
    return EngineGenerator(engine, resources, SERVED)
