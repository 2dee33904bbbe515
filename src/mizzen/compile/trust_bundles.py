"""Trust bundles (PCDS): the roots that every workload trusts, for the agents of running ones.

In: the authority's roots, those that the mesh config names. Out: one ProxyConfig that holds nothing else, as Istio
pushes it to agents in a mesh of several roots. It is how an agent learns of a new root before anybody shows a
certificate of it, and of the end of an old one. Facts: the reference's multi-root rules; no golden case records one.
"""

import re

from mizzen import protos
from mizzen.compile import resource
from mizzen.compile.resource import ResourceSet, encode_resource
from mizzen.incremental import Engine, query
from mizzen.model import mesh

_mesh_v1alpha1 = protos.package("istio.mesh.v1alpha1")

NAME = "trust-bundle"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)


@query
def trust_bundle(db: Engine) -> ResourceSet:
    """The bundle of every proxy, one certificate an entry; without an authority there is none."""
    own = mesh.authority_roots(db)
    if not own:
        return ResourceSet(resource.TRUST_BUNDLE, ())
    texts = (own, *mesh.further_roots(db))
    roots = dict.fromkeys(pem.strip() + "\n" for text in texts for pem in _CERTIFICATE.findall(text))
    message = _mesh_v1alpha1.ProxyConfig(ca_certificates_pem=list(roots))
    return ResourceSet(resource.TRUST_BUNDLE, (encode_resource(NAME, message),))
