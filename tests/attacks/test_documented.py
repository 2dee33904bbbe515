"""What gets through by design, as in Istio: asserted, so that nobody takes it for guarded, and not counted as refused."""

import attack_paths
import pytest
from attack_calls import Request
from attack_manifests import NORMALIZATIONS
from attack_material import spiffe
from traffic_programs import new_case

_SPELLINGS = [(option, path) for option in NORMALIZATIONS for path in attack_paths.DOCUMENTED[option]]


def send(mesh, request):
    """The request, and what the program saw of it."""
    case = new_case()
    mesh[request.source].order(**request.order(mesh, case))
    return mesh[request.pod].received(case)


@pytest.mark.parametrize(("option", "path"), _SPELLINGS)
def test_a_spelling_that_the_mesh_does_not_undo_reaches_the_program_as_it_is(option, path, mesh):
    """A DENY by path knows the path as the mesh's pathNormalization leaves it, and the program gets the same one."""
    mesh.normalize(option)
    (seen,) = send(mesh, Request(pod="deny", path=path))
    assert seen.target == path


def test_the_part_after_a_number_sign_is_cut_off(mesh):
    """Fragments are no part of a request: neither the policy nor the program gets one."""
    (seen,) = send(mesh, Request(pod="deny", path="/anything#/../private"))
    assert seen.target == "/anything"


def test_a_trailing_dot_makes_another_host(mesh):
    """A DENY by hosts matches what is written; who must not miss a spelling allows the hosts that are served."""
    (seen,) = send(mesh, Request(pod="deny", path="/anything", host="admin.example."))
    assert seen.header("host") == "admin.example."


def test_two_hosts_become_one_that_is_neither(mesh):
    """Envoy joins repeated Host headers: a DENY of either does not match, and the program sees the joined one."""
    request = Request(pod="deny", path="/anything", host="shop.example", headers=(("Host", "admin.example"),))
    (seen,) = send(mesh, request)
    assert seen.header("host") == "shop.example,admin.example"


def test_a_port_that_is_not_captured_is_not_guarded(mesh):
    """excludeInboundPorts takes a port out of the mesh: plaintext reaches it, STRICT or not."""
    assert send(mesh, Request(pod="strict", port=8085))
    assert not send(mesh, Request(pod="strict", port=8080))


def test_a_sidecar_adds_to_what_the_caller_says_of_certificates(mesh):
    """APPEND_FORWARD: a program may trust the last element of x-forwarded-client-cert alone, which is the sidecar's."""
    forged = f"By={spiffe('allow')};URI={spiffe('ingress', 'gateways')}"
    request = Request(pod="allow", by="front", path="/front", headers=(("x-forwarded-client-cert", forged),))
    (seen,) = send(mesh, request)
    first, _, last = seen.header("x-forwarded-client-cert").partition(",")
    assert first == forged
    assert f"URI={spiffe('front')}" in last
    assert seen.caller == spiffe("front")


def test_a_request_without_token_passes_where_none_is_required(mesh):
    """RequestAuthentication refuses bad tokens; to require one takes an AuthorizationPolicy."""
    assert send(mesh, Request(pod="token", path="/open"))


def test_a_check_that_cannot_be_asked_lets_in_where_it_may_fail_open(mesh):
    """failOpen is the operator's choice of the two errors."""
    assert send(mesh, Request(pod="other", port=8083, path="/checked"))
