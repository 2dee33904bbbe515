"""Identities: SPIFFE IDs of this mesh and the same under its trust domain's aliases.

In: identities as endpoints and objects give them, the mesh's trust domain and aliases. Out: the sets that clients
accept, and the trust domains that servers accept. Golden cases: security/mesh-tls-settings,
security/authz-trust-domains.
"""

from mizzen.incremental import Engine, query
from mizzen.model import mesh
from mizzen.model.spiffe import SCHEME


@query
def trust_domains(db: Engine) -> tuple[str, ...]:
    """The mesh's trust domain, then its aliases sorted."""
    config = mesh.mesh_config(db)
    aliases = sorted(set(config.trust_domain_aliases))
    return tuple(dict.fromkeys(d for d in (config.trust_domain, *aliases) if d))


@query
def accepted_trust_domains(db: Engine) -> tuple[str, ...]:
    """Those whose certificates a server lets in: the mesh's own, then those of further roots it trusts."""
    roots = mesh.mesh_config(db).ca_certificates
    return tuple(dict.fromkeys((*trust_domains(db), *(d for root in roots for d in root.trust_domains if d))))


@query
def expand(db: Engine, accounts: tuple[str, ...]) -> tuple[str, ...]:
    """Each SPIFFE identity under every trust domain of the mesh, other names as they are; sorted."""
    domains = trust_domains(db)
    if len(domains) == 1:
        return tuple(sorted(set(accounts)))
    found: set[str] = set()
    for account in accounts:
        domain, slash, path = account.removeprefix(SCHEME).partition("/")
        if account.startswith(SCHEME) and slash and domain in domains:
            found.update(f"{SCHEME}{d}/{path}" for d in domains)
        else:
            found.add(account)
    return tuple(sorted(found))
