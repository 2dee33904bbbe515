"""Extension providers: found by name, and the host of the service that each is reached at.

In: the mesh config, services. Out: the provider, and the host that its cluster is named after. Who writes a provider
that does not exist gets nothing, or a refusal, in its place: the asking side decides.
Golden cases: security/authz-custom-http, telemetry/access-log-services, telemetry/default-providers.
"""

from mizzen.api.mesh.providers import ExtensionProvider
from mizzen.incremental import Engine, query
from mizzen.model import mesh, names
from mizzen.model.services import services_of_host


@query
def provider(db: Engine, name: str) -> ExtensionProvider | None:
    """The provider of exactly that name, as authorization looks it up."""
    return next((p for p in mesh.mesh_config(db).extension_providers if p.name == name), None)


@query
def provider_in_any_case(db: Engine, name: str) -> ExtensionProvider | None:
    """The provider of that name in whatever case, as telemetry looks it up."""
    wanted = name.lower()
    return next((p for p in mesh.mesh_config(db).extension_providers if p.name.lower() == wanted), None)


@query
def service_host(db: Engine, written: str) -> str | None:
    """The host of the service that a provider names, as `host` or `namespace/host`; None where it is unknown, or
    in several namespaces without saying which."""
    namespace, slash, host = written.rpartition("/")
    found = {s.namespace for s in services_of_host(db, host.lower())}
    if slash:
        return host if namespace in found else None
    return host if len(found) == 1 else None


def cluster_name(host: str, port: int) -> str:
    """The cluster of a provider's service."""
    return names.subset_key(names.OUTBOUND, port, "", host)
