from mizzen.diagnose.change import fields


def told(old: object, new: object) -> list[str]:
    return [str(field) for field in fields.differences(old, new)]


def test_equal_values_differ_nowhere() -> None:
    assert told({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}) == []


def test_fields_are_told_by_path() -> None:
    assert told({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "d": True}}) == [
        "a.b: 1 → 3",
        "a.c: 2 → nothing",
        "a.d: nothing → true",
    ]


def test_named_items_are_held_against_each_other_by_name() -> None:
    old = [{"name": "one", "x": 1}, {"name": "two", "x": 1}]
    new = [{"name": "new"}, {"name": "one", "x": 1}, {"name": "two", "x": 5}]

    assert told({"l": old}, {"l": new}) == ["l[two].x: 1 → 5", 'l[new]: nothing → {"name":"new"}']


def test_another_order_of_named_items_is_a_difference() -> None:
    old, new = [{"name": "one"}, {"name": "two"}], [{"name": "two"}, {"name": "one"}]

    assert told({"l": old}, {"l": new}) != []


def test_one_item_more_in_the_middle_is_one_difference() -> None:
    assert told({"l": [1, 2, 3]}, {"l": [1, 9, 2, 3]}) == ["l[1]: nothing → 9"]


def test_long_values_are_cut() -> None:
    assert fields.show("x" * 500).endswith("x…")
    assert len(fields.show(["y" * 500])) <= 60


def test_sets_are_equal_in_any_order_at_any_depth() -> None:
    one, other = {"a": [{"b": [1, 2]}, {"c": 3}]}, {"a": [{"c": 3}, {"b": [2, 1]}]}

    assert fields.equivalent(one) == fields.equivalent(other)
    assert fields.canonical(one) != fields.canonical(other)


def test_stated_defaults_are_equivalent_to_absent_ones() -> None:
    stated = {"a": False, "b": 0, "c": {"d": {}}, "e": [], "f": "", "g": "0s", "h": 1}

    assert fields.equivalent(stated) == fields.equivalent({"h": 1})
    assert fields.equivalent(stated) != fields.equivalent({"h": 2})
