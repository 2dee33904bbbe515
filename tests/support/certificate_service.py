"""Certificates as workloads get them: over gRPC, from a control plane that they trust by the roots they were given."""

import grpc
from certificate_requests import make_request, read_chain
from control_planes import Plane
from cryptography import x509

from mizzen import protos

_AUTH = protos.package("istio.v1.auth")
_METHOD = "/istio.v1.auth.IstioCertificateService/CreateCertificate"


async def ask(
    plane: Plane, shown: str, csr: str = "", **fields: object
) -> tuple[list[x509.Certificate], list[x509.Certificate]]:
    """Leaf and intermediates, and the roots, for who shows this token."""
    host = f"istiod.{plane.control_plane._config.instance.namespace}.svc"
    options = [("grpc.ssl_target_name_override", host), ("grpc.use_local_subchannel_pool", 1)]
    target = plane.target("--secureGRPCAddr")
    async with grpc.aio.secure_channel(target, plane.credentials(), options) as channel:
        call = channel.unary_unary(_METHOD, protos.encode, _AUTH.IstioCertificateResponse.FromString)
        request = _AUTH.IstioCertificateRequest(csr=csr or make_request(), validity_duration=3600, **fields)
        answer = await call(request, metadata=[("authorization", f"Bearer {shown}")], timeout=120)
    return read_chain(answer.cert_chain)
