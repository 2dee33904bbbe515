"""Domains of virtual hosts: under which names a service is called by a client.

In: a host, its aliases and addresses, the client's DNS domain. Out: domains in Istio's order.
Golden cases: networking/vs-host-forms, networking/service-types, networking/headless-services.
"""

from collections.abc import Iterable

from mizzen.model import names


def alternates(host: str, dns_domain: str) -> list[str]:
    """The shorter and longer spellings under which a client's resolver finds `host`."""
    if names.is_ip(host):
        return []
    found = [f"{host}."]
    suffix_at = dns_domain.find(".svc.")
    if suffix_at >= 0:
        found.extend(_kubernetes_forms(host, dns_domain[:suffix_at], dns_domain[suffix_at:]))
    else:
        found.extend(_shared_suffix_forms(host, dns_domain))
    return found


def _kubernetes_forms(host: str, own_namespace: str, suffix: str) -> list[str]:
    if not host.endswith(suffix):
        return []
    name, dot, namespace = host.removesuffix(suffix).partition(".")
    if not dot or "." in namespace:
        return []
    if namespace == own_namespace:
        return [name, f"{name}.{namespace}.svc", f"{name}.{namespace}"]
    return [f"{name}.{namespace}", f"{name}.{namespace}.svc"]


def _shared_suffix_forms(host: str, dns_domain: str) -> list[str]:
    labels, own = host.split("."), dns_domain.split(".")
    shared = 0
    while shared < min(len(labels), len(own)) and labels[-1 - shared] == own[-1 - shared]:
        shared += 1
    unique = labels[: len(labels) - shared]
    if not shared or not unique:
        return []
    text = ".".join(unique)
    return [text, f"{text}.{labels[len(unique)]}"] if len(unique) == 2 else [text]


def service_domains(
    hosts: Iterable[str], dns_domain: str, *, addresses: Iterable[str], headless: bool, port: int | None
) -> list[str]:
    """Every domain of a service: its host and aliases with their alternates, of a headless one its pods' names too,
    then its addresses. With a `port` (routes of no port) each is followed by itself with the port."""
    found: list[str] = []
    for host in hosts:
        found.append(host)
        found.extend(alternates(host, dns_domain))
    if headless:
        found.extend([f"*.{domain}" for domain in found])
    found.extend(names.bracketed(a) for a in addresses)
    if port is None:
        return found
    return [spelling for domain in found for spelling in (domain, f"{domain}:{port}")]
