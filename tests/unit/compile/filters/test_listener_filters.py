"""Port predicates of listener filters, and names by the mesh's patterns."""

from mizzen import protos
from mizzen.compile.filters import listener_filters
from mizzen.compile.filters.stat_names import fill_pattern


def test_a_predicate_is_one_range_or_several_ascending():
    assert listener_filters.build_port_predicate([]) is None
    one = protos.to_json(listener_filters.build_port_predicate([15006]))
    assert one == {"destinationPortRange": {"start": 15006, "end": 15007}}
    several = protos.to_json(listener_filters.build_port_predicate([9000, 80, 9000]))
    starts = [r["destinationPortRange"]["start"] for r in several["orMatch"]["rules"]]
    assert starts == [80, 9000]


def test_a_filter_without_predicate_is_always_on():
    assert "filterDisabled" not in protos.to_json(listener_filters.build_http_inspector())


def test_words_without_a_service_are_empty():
    assert fill_pattern("%SERVICE%_%SERVICE_PORT%_%SUBSET_NAME%", None) == "_0_"
