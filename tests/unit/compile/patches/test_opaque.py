"""Types that are carried as they are."""

from envoy_patches import HTTP, NETWORK, TYPE

from mizzen.compile.patches import opaque

GOLANG = HTTP + "golang.v3alpha.Config"


def test_opaque_types_are_wrapped_wherever_they_stand():
    written = {"filters": [{"name": "g", "typed_config": {"@type": GOLANG, "library_id": "x", "plugin": {"a": [1]}}}]}
    assert opaque.as_typed_structs(written) == {
        "filters": [
            {
                "name": "g",
                "typed_config": {
                    "@type": TYPE + "udpa.type.v1.TypedStruct",
                    "typeUrl": GOLANG,
                    "value": {"library_id": "x", "plugin": {"a": [1]}},
                },
            }
        ]
    }
    assert written["filters"][0]["typed_config"]["@type"] == GOLANG


def test_other_values_stay():
    written = {"typed_config": {"@type": NETWORK + "rbac.v3.RBAC"}, "@type": 3, "a": [1, None, "x"]}
    assert opaque.as_typed_structs(written) == written


def test_contrib_is_what_upstream_builds_lack():
    assert opaque.is_contrib("envoy.extensions.filters.http.golang.v3alpha.Config")
    assert not opaque.is_contrib("envoy.extensions.filters.http.lua.v3.Lua")
