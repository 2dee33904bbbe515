"""Names under which Envoy counts, by the patterns of the mesh config.

In: a pattern such as `%SERVICE%_%SERVICE_PORT%` and the parts of a service. Out: the pattern filled in, for clusters,
connection managers and TCP proxies alike.
Golden case: networking/mesh-connections.
"""

from mizzen.model.services import Service


def fill_pattern(
    pattern: str,
    service: Service | None,
    *,
    port: int = 0,
    port_name: str = "",
    subset: str = "",
    target_port: int = 0,
) -> str:
    """The pattern with its words replaced; without a service they are empty."""
    host = service.host if service is not None else ""
    name = service.name if service is not None else ""
    short = f"{name}.{service.namespace}" if service is not None and service.is_kubernetes else host
    words = {
        "%SERVICE%": short,
        "%SERVICE_NAME%": name,
        "%SERVICE_FQDN%": host,
        "%SERVICE_PORT%": str(port),
        "%SERVICE_PORT_NAME%": port_name,
        "%TARGET_PORT%": str(target_port),
        "%SUBSET_NAME%": subset,
    }
    for word, value in words.items():
        pattern = pattern.replace(word, value)
    return pattern
