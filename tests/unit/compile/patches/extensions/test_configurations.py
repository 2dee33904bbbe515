"""Extension configurations: what filters fetch by name."""

import json
from typing import Any

from envoy_patches import HTTP, NETWORK, add_filter, ask, ids, write_patch

from mizzen import protos
from mizzen.api.decode import decode_object
from mizzen.compile.patches.extensions import configurations
from mizzen.compile.resource import ResourceSet
from mizzen.incremental import Engine
from mizzen.model import wasm
from mizzen.model.attachments import Audience

CART = Audience("sidecar", "shop", ())
NAME = "extensions.istio.io/trafficextension/shop.p~istio-translated-wasmplugin"


def _set(db: Engine, document: dict[str, Any]) -> None:
    decoded = decode_object(document)
    assert decoded.object is not None, decoded.problems
    db.set(decoded.key, decoded.object)


def _plugin(db: Engine, **spec: Any) -> None:
    _set(
        db,
        {
            "apiVersion": "extensions.istio.io/v1alpha1",
            "kind": "WasmPlugin",
            "metadata": {"name": "p", "namespace": "shop", "resourceVersion": "7"},
            "spec": {"url": "https://x/y.wasm", **spec},
        },
    )


def _fetched(db: Engine, name: str = NAME, *, with_logins: bool = True) -> dict[str, Any]:
    found = configurations.configurations(db, frozenset([name]), (), wasm.extensions(db, CART), "istio", with_logins)
    (resource,) = found
    assert resource.name == name
    printed: dict[str, Any] = protos.to_json(resource.message())["typedConfig"]
    return printed


def test_the_whole_of_a_plugin():
    db = Engine()
    _plugin(
        db,
        sha256="ab" * 32,
        pluginName="root",
        pluginConfig={"b": [1, 2.0, 2.5, "x"], "a": {"é": True, "none": None}},
        failStrategy="FAIL_OPEN",
        imagePullPolicy="Always",
        vmConfig={"env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": "HOST"}]},
    )
    assert _fetched(db) == {
        "@type": HTTP + "wasm.v3.Wasm",
        "config": {
            "name": "shop.p~istio-translated-wasmplugin",
            "rootId": "root",
            "configuration": {
                "@type": "type.googleapis.com/google.protobuf.StringValue",
                "value": '{"a":{"none":null,"é":true},"b":[1,2,2.5,"x"]}',
            },
            "failurePolicy": "FAIL_OPEN",
            "vmConfig": {
                "runtime": "envoy.wasm.runtime.v8",
                "code": {
                    "remote": {
                        "httpUri": {"uri": "https://x/y.wasm", "cluster": "_", "timeout": "30s"},
                        "sha256": "ab" * 32,
                    }
                },
                "environmentVariables": {
                    "hostEnvKeys": ["B"],
                    "keyValues": {
                        "A": "1",
                        "ISTIO_META_WASM_IMAGE_PULL_POLICY": "Always",
                        "ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION": "7",
                    },
                },
            },
        },
    }


def test_the_least_of_a_plugin():
    db = Engine()
    _plugin(db)
    config = _fetched(db)["config"]
    assert config["configuration"] == {}
    assert config["failurePolicy"] == "FAIL_CLOSED"
    assert config["vmConfig"]["environmentVariables"] == {"keyValues": {"ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION": "7"}}


def _code(url: str) -> dict[str, Any]:
    db = Engine()
    _plugin(db, url=url)
    code: dict[str, Any] = _fetched(db)["config"]["vmConfig"]["code"]
    return code


def test_where_the_module_is():
    assert _code("file:///opt/a.wasm") == {"local": {"filename": "/opt/a.wasm"}}
    assert _code("oci://r.io/a:v1")["remote"]["httpUri"]["uri"] == "oci://r.io/a:v1"
    assert _code("r.io/a:v1")["remote"]["httpUri"]["uri"] == "oci://r.io/a:v1"
    assert _code("r.io:5000/a")["remote"]["httpUri"]["uri"] == "oci://r.io:5000/a"
    assert _code("http://x/a")["remote"]["httpUri"]["uri"] == "http://x/a"


def test_a_network_plugin_is_a_network_filters_configuration():
    db = Engine()
    _plugin(db, type="NETWORK")
    assert _fetched(db)["@type"] == NETWORK + "wasm.v3.Wasm"


def test_a_traffic_extension():
    db = Engine()
    _set(
        db,
        {
            "apiVersion": "extensions.istio.io/v1alpha1",
            "kind": "TrafficExtension",
            "metadata": {"name": "t", "namespace": "shop"},
            "spec": {"wasm": {"url": "https://x/t.wasm", "failStrategy": "FAIL_RELOAD"}},
        },
    )
    config = _fetched(db, "extensions.istio.io/trafficextension/shop.t")["config"]
    assert (config["name"], config["failurePolicy"]) == ("shop.t", "FAIL_RELOAD")


def _secret(db: Engine, namespace: str = "shop") -> str:
    login = json.dumps({"auths": {}})
    _set(
        db,
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "pull", "namespace": namespace},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": login},
        },
    )
    return login


def _pull_secret(db: Engine, with_logins: bool = True) -> str:
    values = _fetched(db, with_logins=with_logins)["config"]["vmConfig"]["environmentVariables"]["keyValues"]
    found: str = values["ISTIO_META_WASM_IMAGE_PULL_SECRET"]
    return found


def test_a_pull_secret_of_the_own_namespace_is_told():
    db = Engine()
    _plugin(db, imagePullSecret="pull")
    assert _pull_secret(db) == ""
    login = _secret(db)
    assert _pull_secret(db) == login
    _plugin(db, imagePullSecret="kubernetes://shop/pull")
    assert _pull_secret(db) == login


def test_a_pull_secret_is_not_told_to_who_has_not_proved_who_it_is():
    db = Engine()
    _plugin(db, imagePullSecret="pull")
    _secret(db)
    assert _pull_secret(db, with_logins=False) == ""


def test_a_pull_secret_of_another_namespace_is_not():
    db = Engine()
    _secret(db, "pay")
    _plugin(db, imagePullSecret="pay/pull")
    assert _pull_secret(db) == ""


def test_a_secret_without_logins_is_as_good_as_none():
    db = Engine()
    _plugin(db, imagePullSecret="pull")
    _set(db, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": "shop"}})
    assert _pull_secret(db) == ""


def _asked(db: Engine, *names: str, dialect: Any = "istio", count: int = 0) -> ResourceSet:
    return configurations.configurations(db, frozenset(names), ids(count), wasm.extensions(db, CART), dialect, True)


BUFFER = {"@type": HTTP + "buffer.v3.Buffer", "max_request_bytes": 5}


def test_added_configurations_are_for_those_who_ask():
    db = Engine()
    add_filter(
        db,
        write_patch("EXTENSION_CONFIG", "ADD", {"name": "a", "typed_config": BUFFER}, context="GATEWAY"),
        write_patch("EXTENSION_CONFIG", "ADD", {"name": "b", "typed_config": BUFFER}),
        write_patch("EXTENSION_CONFIG", "REMOVE"),
    )
    assert _asked(db, "a", "c", count=3).names == ("a",)
    assert _asked(db, count=3).names == ()


def test_of_two_of_one_name_the_first_stays_and_patches_come_first():
    db = Engine()
    _plugin(db)
    add_filter(
        db,
        write_patch("EXTENSION_CONFIG", "ADD", {"name": NAME, "typed_config": BUFFER}),
        write_patch(
            "EXTENSION_CONFIG", "INSERT_FIRST", {"name": NAME, "typed_config": {**BUFFER, "max_request_bytes": 6}}
        ),
    )
    (found,) = _asked(db, NAME, count=2)
    assert protos.to_json(found.message())["typedConfig"]["maxRequestBytes"] == 5


def test_upstream_envoy_is_spared_what_it_would_refuse():
    db = Engine()
    add_filter(db, write_patch("EXTENSION_CONFIG", "ADD", {"name": "a", "typed_config": {"@type": BUFFER["@type"]}}))
    found, problems = ask(db, configurations.configurations, frozenset("a"), ids(1), (), "envoy", True)
    assert found.names == ()
    assert [p.path for p in problems] == ["spec.configPatches[0].patch"]
    assert _asked(db, "a", count=1).names == ("a",)


def test_an_extension_that_cannot_be_built_leaves_the_others():
    db = Engine()
    _plugin(db, pluginName="\ud800")
    add_filter(db, write_patch("EXTENSION_CONFIG", "ADD", {"name": "a", "typed_config": BUFFER}))
    assert _asked(db, "a", NAME, count=1).names == ("a",)


def test_lua_is_not_fetched():
    db = Engine()
    _set(
        db,
        {
            "apiVersion": "extensions.istio.io/v1alpha1",
            "kind": "TrafficExtension",
            "metadata": {"name": "l", "namespace": "shop"},
            "spec": {"lua": {"inlineCode": "x = 1"}},
        },
    )
    assert _asked(db, "extensions.istio.io/trafficextension/shop.l").names == ()
