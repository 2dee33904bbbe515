"""Patches as messages, and the problems of those that are none."""

from envoy_patches import HTTP, NETWORK, TYPE, add_filter, ids, read_one, write_patch

from mizzen import protos
from mizzen.api.meta import Key
from mizzen.compile.patches import values
from mizzen.incremental import Engine

KEY = Key("EnvoyFilter", "shop", "f")
CLUSTER = {"name": "x", "type": "STATIC"}


def _problems(*patches: dict) -> list[str]:
    db = Engine()
    add_filter(db, *patches)
    return [f"{p.path}: {p.message}" for p in values.problems(db, KEY)]


def test_a_value_becomes_a_message():
    patch = read_one("CLUSTER", "MERGE", {"connect_timeout": "1.5s", "lbPolicy": "MAGLEV"})
    assert protos.to_json(patch.value) == {"connectTimeout": "1.500s", "lbPolicy": "MAGLEV"}
    assert patch.merges
    assert not patch.replaces_lists


def test_unknown_fields_are_passed_over():
    assert protos.to_json(read_one("CLUSTER", "MERGE", {"name": "x", "of_tomorrow": {"a": 1}}).value) == {"name": "x"}


def test_a_removal_needs_no_value():
    assert read_one("CLUSTER", "REMOVE").value is None


def test_merge_and_replace_list_is_a_merge_that_replaces_lists():
    patch = read_one("CLUSTER", "MERGE_AND_REPLACE_LIST", {})
    assert patch.merges
    assert patch.replaces_lists


def test_insertion_where_there_is_no_order_only_adds():
    assert read_one("CLUSTER", "INSERT_FIRST", CLUSTER).operation == "ADD"
    assert read_one("VIRTUAL_HOST", "INSERT_BEFORE", {"name": "v"}).operation == "ADD"
    assert read_one("HTTP_ROUTE", "INSERT_BEFORE", {"name": "r"}).operation == "INSERT_BEFORE"


def test_a_patch_without_context_is_in_all():
    patch = read_one("CLUSTER", "ADD", CLUSTER)
    assert patch.is_in("SIDECAR_INBOUND")
    assert not patch.adds_to("SIDECAR_INBOUND")
    assert patch.adds_to("SIDECAR_OUTBOUND")
    assert patch.adds_to("GATEWAY")


def test_a_patch_with_a_context_is_in_that_one():
    patch = read_one("CLUSTER", "ADD", CLUSTER, context="SIDECAR_INBOUND")
    assert patch.is_in("SIDECAR_INBOUND")
    assert patch.adds_to("SIDECAR_INBOUND")
    assert not patch.is_in("GATEWAY")
    assert not patch.adds_to("SIDECAR_OUTBOUND")


def test_equal_maps_inside_an_any_have_equal_bytes():
    def lua(names: str) -> dict:
        codes = {name: {"inline_string": name} for name in names}
        return {"name": "l", "typed_config": {"@type": HTTP + "lua.v3.Lua", "source_codes": codes}}

    one = read_one("HTTP_FILTER", "ADD", lua("abcdefgh")).value
    other = read_one("HTTP_FILTER", "ADD", lua("hgfedcba")).value
    assert one.typed_config.value == other.typed_config.value


def test_maps_and_lists_of_messages_are_settled_too():
    config = {"@type": HTTP + "fault.v3.HTTPFault", "headers": [{"name": "a", "present_match": True}]}
    patch = read_one("HTTP_ROUTE", "ADD", {"typed_per_filter_config": {"f": config}, "match": {"headers": [{}]}})
    assert protos.unpack(patch.value.typed_per_filter_config["f"]).headers[0].name == "a"


def test_a_value_that_is_no_message_is_a_problem_of_its_patch_alone():
    db = Engine()
    add_filter(db, write_patch("CLUSTER", "MERGE", {"connect_timeout": "soon"}), write_patch("CLUSTER", "ADD", CLUSTER))
    assert [p.id.position for p in values.patches(db, ids(2))] == [1]
    (problem,) = values.problems(db, KEY)
    assert (problem.key, problem.path) == (KEY, "spec.configPatches[0].patch.value")
    assert "soon" in problem.message


def test_an_any_of_unknown_type_is_a_problem():
    unknown = {"name": "x", "typed_config": {"@type": TYPE + "no.such.Type"}}
    (found,) = _problems(write_patch("HTTP_FILTER", "ADD", unknown))
    assert "no.such.Type" in found


def test_a_contrib_type_is_carried_as_a_typed_struct():
    mysql = {"name": "m", "typed_config": {"@type": NETWORK + "mysql_proxy.v3.MySQLProxy", "stat_prefix": "db"}}
    found = protos.unpack(read_one("NETWORK_FILTER", "ADD", mysql).value.typed_config)
    assert protos.to_json(found) == {
        "typeUrl": NETWORK + "mysql_proxy.v3.MySQLProxy",
        "value": {"stat_prefix": "db"},
    }


def test_what_is_missing_is_a_problem():
    assert _problems(
        {"patch": {"operation": "MERGE", "value": {}}},
        {"applyTo": "CLUSTER"},
        {"applyTo": "CLUSTER", "patch": {"value": {}}},
        {"applyTo": "CLUSTER", "patch": {"operation": "MERGE"}},
        write_patch("CLUSTER", "ADD", {"type": "STATIC"}),
        write_patch("EXTENSION_CONFIG", "INSERT_FIRST", {}),
    ) == [
        "spec.configPatches[0].applyTo: missing applyTo",
        "spec.configPatches[1].patch: missing patch operation",
        "spec.configPatches[2].patch: missing patch operation",
        "spec.configPatches[3].patch.value: missing patch value for non-remove operation",
        "spec.configPatches[4].patch.value.name: what has no name cannot be added",
        "spec.configPatches[5].patch.value.name: what has no name cannot be added",
    ]


def test_a_version_pattern_that_matches_nothing_is_a_problem():
    def proxy(pattern: str) -> dict:
        return write_patch("CLUSTER", "REMOVE", proxy={"proxyVersion": pattern})

    assert _problems(proxy("^1"), proxy("("), proxy("(?=1)"), proxy("1" * 1025)) == [
        "spec.configPatches[1].match.proxy.proxyVersion: not a regular expression of RE2: it matches no version",
        "spec.configPatches[2].match.proxy.proxyVersion: not a regular expression of RE2: it matches no version",
        "spec.configPatches[3].match.proxy.proxyVersion: longer than 1024 characters: it matches no version",
    ]


def test_a_bottomless_value_is_a_problem():
    deep: dict = {}
    for _ in range(3000):
        deep = {"a": deep}
    (found,) = _problems(write_patch("CLUSTER", "MERGE", {"metadata": {"filter_metadata": {"x": deep}}}))
    assert "patch.value" in found


def test_bootstrap_patches_are_the_agents_business():
    db = Engine()
    add_filter(db, write_patch("BOOTSTRAP", "MERGE", {"anything": 1}))
    assert values.patches(db, ids(1)) == []
    assert values.problems(db, KEY) == ()


def test_a_patch_that_is_gone_is_none():
    db = Engine()
    assert values.patches(db, ids(1)) == []
    assert values.problems(db, KEY) == ()
    add_filter(db)
    assert values.patches(db, ids(1)) == []


def test_a_change_beside_a_patch_leaves_it_the_same():
    db = Engine()
    add_filter(db, write_patch("CLUSTER", "ADD", CLUSTER), write_patch("CLUSTER", "REMOVE"))
    before = values.patches(db, ids(1))
    add_filter(db, write_patch("CLUSTER", "ADD", CLUSTER), write_patch("CLUSTER", "REMOVE", cluster={"name": "y"}))
    assert values.patches(db, ids(1)) == before
