"""Batches become inputs with their reasons; findings are told once; readiness waits for every source."""

import asyncio
import logging
import sys
import threading
from typing import Any

import msgspec
import pytest
from eventually import eventually

from mizzen import observe, settings
from mizzen.api.kube.data import ConfigMap
from mizzen.api.kube.pods import Pod
from mizzen.api.kube.services import Service
from mizzen.api.meta import Key, ObjectMeta
from mizzen.api.policy import JWTRule, RequestAuthentication, RequestAuthenticationSpec
from mizzen.api.problems import Problem
from mizzen.control.inputs import Inputs
from mizzen.control.mesh import MeshSettings
from mizzen.control.options import Options
from mizzen.model.mesh import CONTROL_PLANE, MESH
from mizzen.sources.batches import Batch
from mizzen.sources.origins import Finding, Origin

CART = Key("Service", "shop", "cart")
ISTIO = Key("ConfigMap", "istio-system", "istio")
HERE = Origin("a.yaml", 1)


class Pusher:
    """Keeps what it is fed."""

    def __init__(self) -> None:
        self.fed: list[tuple[Any, Any, str]] = []
        self.ready = False

    def feed(self, key: Any, value: Any, reason: str = "config") -> None:
        self.fed.append((key, value, reason))

    def open(self) -> None:
        self.ready = True


@pytest.fixture
def pusher() -> Pusher:
    return Pusher()


@pytest.fixture
def inputs(pusher: Pusher) -> Inputs:
    options = Options(config=(), domain="mesh.local", cluster_id="c1")
    config = settings.Settings(features=settings.Features(dual_stack=True, trace_sampling=5.0))
    return Inputs(pusher, MeshSettings(), options, config)  # type: ignore[arg-type]


def finding(message: str, level: Any = "error") -> Finding:
    return Finding(HERE, Problem(key=CART, code="invalid-field", message=message, level=level))


def config_map(text: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="istio", namespace="istio-system"), data={"mesh": text})


def test_settings_and_mesh_config_are_inputs_from_the_start(inputs: Inputs, pusher: Pusher) -> None:
    values = {key: value for key, value, _ in pusher.fed}
    control_plane = values[CONTROL_PLANE]
    assert (control_plane.domain, control_plane.cluster_id) == ("mesh.local", "c1")
    assert (control_plane.dual_stack, control_plane.trace_sampling) == (True, 5.0)
    assert values[MESH].trust_domain == "cluster.local"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("Service", "service"), ("EndpointSlice", "endpoint"), ("Secret", "secret"), ("VirtualService", "config")],
)
def test_changes_carry_the_reason_of_their_kind(inputs: Inputs, pusher: Pusher, kind: str, reason: str) -> None:
    key = Key(kind, "shop", "x")
    inputs.take("files", Batch(sets={key: Service()}), {})
    inputs.take("files", Batch(removes=(key,)), {})
    assert pusher.fed[-2:] == [(key, Service(), reason), (key, None, reason)]


def test_of_pods_from_files_too_the_engine_holds_what_is_read_of_pods_that_run(inputs: Inputs, pusher: Pusher) -> None:
    key = Key("Pod", "shop", "cart-0")
    metadata = ObjectMeta(name="cart-0", namespace="shop", annotations={"istio.io/rev": "stable"})
    for note in ("one", "another"):
        annotated = msgspec.structs.replace(metadata, annotations={**metadata.annotations, "example.com/note": note})
        inputs.take("files", Batch(sets={key: Pod(metadata=annotated)}), {})
        assert pusher.fed[-1] == (key, Pod(metadata=metadata), "endpoint")


def test_nobody_is_served_before_every_source_has_delivered(inputs: Inputs, pusher: Pusher) -> None:
    inputs.expect("files")
    inputs.expect("kube")
    inputs.take("files", Batch(), {})
    assert not pusher.ready
    inputs.take("kube", Batch(), {})
    assert pusher.ready


async def test_nobody_is_served_before_key_sets_were_tried(inputs: Inputs, pusher: Pusher) -> None:
    key = Key("RequestAuthentication", "shop", "jwt")
    rule = JWTRule(issuer="a", jwks_uri="ftp://nowhere")
    policy = RequestAuthentication(spec=RequestAuthenticationSpec(jwt_rules=(rule,)))
    inputs.expect("files")
    inputs.take("files", Batch(sets={key: policy}), {key: HERE})
    assert not pusher.ready
    task = asyncio.create_task(inputs.key_sets.run())
    await eventually(lambda: pusher.ready)
    (found,) = inputs.findings
    assert (found.origin, found.problem.key, found.problem.code) == (HERE, key, "key-set")
    inputs.take("files", Batch(removes=(key,)), {})
    assert inputs.findings == ()
    task.cancel()


def test_mesh_config_map_changes_the_mesh_input(inputs: Inputs, pusher: Pusher) -> None:
    inputs.take("files", Batch(sets={ISTIO: config_map("trustDomain: mesh.example")}), {ISTIO: HERE})
    assert (pusher.fed[-1][0], pusher.fed[-1][1].trust_domain) == (MESH, "mesh.example")
    inputs.take("files", Batch(removes=(ISTIO,)), {})
    assert pusher.fed[-1][1].trust_domain == "cluster.local"


def test_config_map_of_another_namespace_is_just_an_object(inputs: Inputs, pusher: Pusher) -> None:
    key = Key("ConfigMap", "shop", "istio")
    inputs.take("files", Batch(sets={key: config_map("trustDomain: mesh.example")}), {})
    assert pusher.fed[-1][0] == key


def test_findings_of_all_sources_and_of_the_mesh_config_are_kept(inputs: Inputs) -> None:
    inputs.take("kube", Batch(findings=(finding("two"),)), {})
    inputs.take("files", Batch(sets={ISTIO: config_map("a: [")}, findings=(finding("one"),)), {ISTIO: HERE})
    assert [each.problem.message for each in inputs.findings][:2] == ["one", "two"]
    assert inputs.findings[2].problem.key == ISTIO
    inputs.take("files", Batch(removes=(ISTIO,)), {})
    assert [each.problem.message for each in inputs.findings] == ["two"]


def test_findings_are_logged_when_they_come_and_when_they_go(inputs: Inputs, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bad = finding("port is wrong")
    for _ in range(3):
        inputs.take("files", Batch(findings=(bad,)), {})
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
        "a.yaml:1: Service shop/cart: port is wrong"
    ]
    caplog.clear()
    inputs.take("files", Batch(), {})
    assert [record.getMessage() for record in caplog.records] == [
        "no longer: a.yaml:1: Service shop/cart: port is wrong"
    ]


def test_flood_of_findings_is_cut_short_in_the_log_only(inputs: Inputs, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    inputs.take("files", Batch(findings=tuple(finding(f"fault {n}") for n in range(150))), {})
    assert len(inputs.findings) == 150
    assert len([record for record in caplog.records if "fault" in record.getMessage()]) == 100
    assert "and 50 more" in caplog.text


def test_findings_are_counted_by_code(inputs: Inputs) -> None:
    inputs.take("files", Batch(findings=(finding("one"), finding("two"))), {})
    assert b'mizzen_config_findings{code="invalid-field"} 2' in observe.render_metrics()
    inputs.take("files", Batch(), {})
    assert b"mizzen_config_findings{" not in observe.render_metrics()


def test_what_the_compiler_leaves_out_is_told_with_its_place_unless_a_source_has(inputs: Inputs) -> None:
    known = Problem(key=CART, code="invalid-field", message="no number", path="spec.ports[0].port")
    inputs.take("files", Batch(findings=(Finding(HERE, known),)), {CART: HERE})
    same = Problem(key=CART, code="unusable", message="left out", path="spec.ports[0]")
    other = Problem(key=CART, code="unusable", message="left out", path="spec.ports[1]")
    inputs.take_compiled((same, other))
    assert inputs.findings == (Finding(HERE, known), Finding(HERE, other))
    inputs.take_compiled(())
    assert inputs.findings == (Finding(HERE, known),)


def test_objects_are_counted_by_kind_and_by_why_they_are_not_in_force(inputs: Inputs) -> None:
    keys = [Key("Service", "shop", name) for name in ("cart", "front", "bill")]
    inputs.take("files", Batch(sets={key: Service() for key in keys}, findings=(finding("one"), finding("two"))), {})
    inputs.take_compiled((Problem(key=keys[1], code="unusable", message="left out"),))
    text = observe.render_metrics()
    assert b'mizzen_object_in_force{kind="Service",reason=""} 1' in text
    assert b'mizzen_object_in_force{kind="Service",reason="invalid-field"} 1' in text
    assert b'mizzen_object_in_force{kind="Service",reason="unusable"} 1' in text
    inputs.take("files", Batch(removes=(keys[0],)), {})
    inputs.take_compiled(())
    text = observe.render_metrics()
    assert b'mizzen_object_in_force{kind="Service",reason=""} 2' in text
    assert b'kind="Service",reason="unusable"' not in text


def test_a_scrape_in_another_thread_misses_nothing_while_objects_are_counted_anew(inputs: Inputs) -> None:
    kinds = ("Service", "Endpoints", "Sidecar", "Gateway", "Telemetry", "EnvoyFilter")
    inputs.take("files", Batch(sets={Key(kind, "shop", "x"): Service() for kind in kinds}), {})
    ended, lacking = threading.Event(), set[str]()

    def scrape() -> None:
        while not ended.is_set():
            text = observe.render_metrics().decode()
            lacking.update(kind for kind in kinds if f'mizzen_object_in_force{{kind="{kind}",reason=""}} 1' not in text)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    scraping = threading.Thread(target=scrape)
    scraping.start()
    try:
        for _ in range(3000):
            inputs.take("files", Batch(), {})
    finally:
        sys.setswitchinterval(before)
        ended.set()
        scraping.join()
    assert lacking == set()


def test_places_are_those_of_the_source_that_came_first(inputs: Inputs) -> None:
    other = Key("Service", "shop", "other")
    inputs.take("files", Batch(sets={CART: Service()}), {CART: HERE})
    inputs.take("more", Batch(sets={CART: Service(), other: Service()}), {CART: Origin("b", 1), other: Origin("b", 2)})
    assert inputs.places() == {CART: HERE, other: Origin("b", 2)}
