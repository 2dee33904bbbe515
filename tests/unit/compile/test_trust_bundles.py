"""The roots that agents are pushed."""

import acceptance_material
from meshes import mesh_of, proxy, told

from mizzen.compile import resource
from mizzen.model.mesh import AUTHORITY_ROOTS, spiffe_bundle_key

ROOT = acceptance_material.root_pem().decode()
OTHER = acceptance_material.leaf()[0].decode()


def pushed(roots: str, further: str = "") -> list[list[str]]:
    db = mesh_of(config={"caCertificates": [{"pem": further}]} if further else {})
    if roots:
        db.set(AUTHORITY_ROOTS, roots)
    return [found["caCertificatesPem"] for found in told(db, proxy(), resource.TRUST_BUNDLE).values()]  # type: ignore[misc]


def test_each_root_of_the_authority_and_of_the_mesh_config_stands_once() -> None:
    assert pushed(ROOT + OTHER, "\n" + ROOT) == [[ROOT, OTHER]]
    assert pushed(ROOT, OTHER + ROOT) == [[ROOT, OTHER]]


def test_without_an_authority_nothing_is_pushed() -> None:
    assert pushed("", OTHER) == []


def test_roots_that_another_trust_domain_publishes_are_pushed_once_they_are_fetched() -> None:
    url = "https://partner.example/bundle"
    db = mesh_of(config={"caCertificates": [{"spiffeBundleUrl": url, "trustDomains": ["partner.example"]}]})
    db.set(AUTHORITY_ROOTS, ROOT)
    (before,) = told(db, proxy(), resource.TRUST_BUNDLE).values()
    db.set(spiffe_bundle_key(url), OTHER)
    (after,) = told(db, proxy(), resource.TRUST_BUNDLE).values()
    assert (before["caCertificatesPem"], after["caCertificatesPem"]) == ([ROOT], [ROOT, OTHER])
