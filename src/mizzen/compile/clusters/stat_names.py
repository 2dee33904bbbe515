"""Names under which Envoy counts a cluster, by the mesh's patterns. Golden case: networking/mesh-connections."""

from mizzen.model.services import Port, Service


def cluster_stat_name(
    pattern: str, name: str, service: Service | None, port: Port | None, subset: str = "", target_port: int = 0
) -> str:
    """The pattern filled in, or the cluster's own name where the mesh sets none."""
    if not pattern:
        return name
    short = f"{service.name}.{service.namespace}" if service is not None and service.is_kubernetes else ""
    host = service.host if service is not None else ""
    values = {
        "%SERVICE%": short or host,
        "%SERVICE_NAME%": service.name if service is not None else "",
        "%SERVICE_FQDN%": host,
        "%SERVICE_PORT%": str(port.number) if port is not None else "0",
        "%SERVICE_PORT_NAME%": port.name if port is not None else "",
        "%TARGET_PORT%": str(target_port),
        "%SUBSET_NAME%": subset,
    }
    for word, value in values.items():
        pattern = pattern.replace(word, value)
    return pattern
