"""Which extensions are for a workload, and in what order."""

from typing import Any

from mizzen.api.decode import decode_object
from mizzen.api.meta import Key
from mizzen.incremental import Engine
from mizzen.model import wasm
from mizzen.model.attachments import Audience
from mizzen.model.wasm import Extension

CART = Audience("sidecar", "shop", (("app", "cart"),))


def _add(
    db: Engine, name: str, *, kind: str = "WasmPlugin", namespace: str = "shop", created: str = "", **spec: Any
) -> None:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "resourceVersion": "7"}
    if created:
        metadata["creationTimestamp"] = created
    document = {"apiVersion": "extensions.istio.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
    if kind == "WasmPlugin":
        document["spec"].setdefault("url", "https://x")
    decoded = decode_object(document)
    assert decoded.object is not None, decoded.problems
    db.set(decoded.key, decoded.object)


def _names(db: Engine, audience: Audience = CART) -> list[str]:
    return [each.key.name for each in wasm.extensions(db, audience)]


def _only(db: Engine) -> Extension:
    (found,) = wasm.extensions(db, CART)
    return found


def test_phases_stand_in_their_order():
    db = Engine()
    for phase in ("UNSPECIFIED_PHASE", "STATS", "AUTHZ", "AUTHN"):
        _add(db, phase, phase=phase)
    _add(db, "none")
    assert _names(db) == ["AUTHN", "AUTHZ", "STATS", "UNSPECIFIED_PHASE", "none"]


def test_in_a_phase_the_highest_priority_goes_first_then_root_then_age():
    db = Engine()
    _add(db, "unset", created="2026-01-01T00:00:00Z")
    _add(db, "low", priority=-5)
    _add(db, "young", priority=1, created="2026-01-02T00:00:00Z")
    _add(db, "old", priority=1, created="2026-01-01T00:00:00Z")
    _add(db, "root", priority=1, namespace="istio-system", created="2026-01-03T00:00:00Z")
    _add(db, "high", priority=9)
    assert _names(db) == ["high", "root", "old", "young", "low", "unset"]


def test_root_and_own_namespace_and_selector_count():
    db = Engine()
    _add(db, "root", namespace="istio-system")
    _add(db, "mine", selector={"matchLabels": {"app": "cart"}})
    _add(db, "others", selector={"matchLabels": {"app": "other"}})
    _add(db, "elsewhere", namespace="pay")
    assert _names(db) == ["root", "mine"]


def test_references_count_in_both_spellings():
    db = Engine()
    edge = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"}
    _add(db, "one", targetRef=edge)
    _add(db, "many", targetRefs=[edge])
    gateway = Audience("router", "shop", (("gateway.networking.k8s.io/gateway-name", "edge"),))
    assert _names(db, gateway) == ["many", "one"]
    assert _names(db) == []


def test_a_plugin_is_a_traffic_extension_of_a_longer_name():
    db = Engine()
    _add(db, "p")
    assert _only(db).resource_name == "extensions.istio.io/trafficextension/shop.p~istio-translated-wasmplugin"
    db = Engine()
    _add(db, "t", kind="TrafficExtension", wasm={"url": "https://x", "type": "NETWORK"}, phase="AUTHZ")
    assert _only(db).resource_name == "extensions.istio.io/trafficextension/shop.t"
    assert (_only(db).layer, _only(db).phase) == ("network", "AUTHZ")


def test_lua_stands_in_place():
    db = Engine()
    _add(db, "l", kind="TrafficExtension", lua={"inlineCode": "x = 1"})
    assert _only(db).inline_code == "x = 1"
    assert wasm.wasm_config(db, _only(db).key) is None


def test_a_traffic_extension_that_holds_nothing_is_none():
    db = Engine()
    _add(db, "a", kind="TrafficExtension")
    _add(db, "b", kind="TrafficExtension", lua={})
    assert _names(db) == []


def test_a_match_picks_sides_and_ports():
    db = Engine()
    _add(db, "p", match=[{"mode": "SERVER", "ports": [{"number": 80}]}, {"mode": "CLIENT"}])
    found = _only(db)
    assert found.applies("inbound", 80)
    assert not found.applies("inbound", 81)
    assert not found.applies("inbound", 0)
    assert found.applies("outbound", 81)
    assert found.applies("gateway", 0)


def test_without_a_match_or_mode_it_is_everywhere():
    db = Engine()
    _add(db, "p", match=[{"mode": "CLIENT_AND_SERVER", "ports": [{"number": 80}]}])
    assert _only(db).applies("inbound", 80)
    assert _only(db).applies("outbound", 80)
    assert Extension(key=Key("WasmPlugin", "a", "b")).applies("gateway", 3)


def test_the_settings_of_a_plugin_are_those_of_an_extension():
    db = Engine()
    _add(db, "p", sha256="abc", failStrategy="FAIL_OPEN", pluginName="n")
    found = wasm.wasm_config(db, _only(db).key)
    assert found is not None
    config, version = found
    assert (config.url, config.sha256, config.fail_strategy, config.plugin_name) == (
        "https://x",
        "abc",
        "FAIL_OPEN",
        "n",
    )
    assert version == "7"
    assert wasm.wasm_config(db, Key("WasmPlugin", "shop", "none")) is None


def test_a_change_of_its_configuration_leaves_the_place_of_an_extension():
    db = Engine()
    _add(db, "p", pluginConfig={"a": 1})
    before = wasm.extensions(db, CART)
    _add(db, "p", pluginConfig={"a": 2})
    assert wasm.extensions(db, CART) is before
