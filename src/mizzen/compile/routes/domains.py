"""Domains of virtual hosts: under which names a service is called by a client.

In: a host, its aliases and addresses, the client's DNS domain. Out: domains in Istio's order.
Golden cases: networking/vs-host-forms, networking/service-types, networking/headless-services.
"""

from collections.abc import Iterable

from mizzen.model import names


def service_domains(
    hosts: Iterable[str], dns_domain: str, *, addresses: Iterable[str], headless: bool, port: int | None
) -> list[str]:
    """Every domain of a service: its host and aliases with their alternates, of a headless one its pods' names too,
    then its addresses. With a `port` (routes of no port) each is followed by itself with the port."""
    found: list[str] = []
    for host in hosts:
        found.append(host)
        found.extend(names.alternates(host, dns_domain))
    if headless:
        found.extend([f"*.{domain}" for domain in found])
    found.extend(names.bracketed(a) for a in addresses)
    if port is None:
        return found
    return [spelling for domain in found for spelling in (domain, f"{domain}:{port}")]
