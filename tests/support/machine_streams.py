"""What an agent of a machine says over ADS, and what others are told of it."""

import adsclient

from mizzen import protos
from mizzen.xds import kinds


async def say_health(speaking: adsclient.Client, why_not: str = "") -> None:
    """Say that the workload is healthy, or why it is not."""
    detail = protos.package("google.rpc").Status(code=13, message=why_not) if why_not else None
    request = protos.package("envoy.service.discovery.v3").DeltaDiscoveryRequest(
        type_url=kinds.HEALTH, error_detail=detail
    )
    await speaking.call.write(request.SerializeToString())


def addresses(answer: adsclient.Answer, cluster: str) -> list[str]:
    """The addresses of a cluster's endpoints."""
    packed = protos.package("google.protobuf").Any.FromString(answer.resources[cluster])
    loaded = protos.package("envoy.config.endpoint.v3").ClusterLoadAssignment.FromString(packed.value)
    endpoints = (endpoint for locality in loaded.endpoints for endpoint in locality.lb_endpoints)
    return [each.endpoint.address.socket_address.address for each in endpoints]
