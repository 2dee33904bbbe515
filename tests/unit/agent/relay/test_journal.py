"""The journal: what was accepted is there again after a restart, whatever happened in between."""

import contextlib
import resource
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen import protos
from mizzen.agent.relay.journal import Journal

CLUSTER = protos.TYPE_PREFIX + "envoy.config.cluster.v3.Cluster"
ROUTE = protos.TYPE_PREFIX + "envoy.config.route.v3.RouteConfiguration"
NODE = "sidecar~10.1.1.10~front-0.web~web.svc.cluster.local"

_discovery = protos.package("envoy.service.discovery.v3")


def response(changed=(), removed=()) -> bytes:
    """An encoded response: `changed` maps names to versions; a resource's bytes follow from both."""
    message = _discovery.DeltaDiscoveryResponse(type_url=CLUSTER, nonce="n", removed_resources=removed)
    for name, version in dict(changed).items():
        message.resources.add(
            name=name, version=version, resource={"type_url": CLUSTER, "value": version.encode() * 50}
        )
    return protos.encode(message)


def versions(journal: Journal, type_url: str = CLUSTER) -> dict[str, str]:
    return {name: _discovery.Resource.FromString(data).version for name, data in journal.load(type_url).items()}


def test_accepted_resources_are_there_after_a_restart(tmp_path) -> None:
    journal = Journal(tmp_path / "last", NODE)
    journal.accept(CLUSTER, response({"a": "1", "b": "1"}))
    journal.accept(CLUSTER, response({"a": "2"}, ["b"]))
    journal.accept(ROUTE, response({"80": "1"}))
    again = Journal(tmp_path / "last", NODE)
    assert versions(again) == {"a": "2"}
    assert versions(again, ROUTE) == {"80": "1"}


def test_what_a_full_disk_tore_takes_nothing_along_that_is_accepted_later(tmp_path, caplog) -> None:
    journal = Journal(tmp_path / "last", NODE)
    journal.accept(CLUSTER, response({"a": "1"}))
    file = tmp_path / "last" / CLUSTER.rpartition("/")[2]
    with largest_file(file.stat().st_size + 10):
        journal.accept(CLUSTER, response({"b": "1"}))
    assert "cannot keep the last good configuration" in caplog.text
    journal.accept(CLUSTER, response({"c": "1"}))
    assert versions(journal) == versions(Journal(tmp_path / "last", NODE)) == {"a": "1", "c": "1"}


def test_a_torn_end_on_a_full_disk_is_left_out_all_the_same(tmp_path) -> None:
    journal = Journal(tmp_path / "last", NODE)
    for name in "ab":
        journal.accept(CLUSTER, response({name: "1"}))
    file = tmp_path / "last" / CLUSTER.rpartition("/")[2]
    file.write_bytes(file.read_bytes()[:-5])
    again = Journal(tmp_path / "last", NODE)
    with largest_file(10):
        assert again.holds(CLUSTER)
        assert versions(again) == {"a": "1"}
    again.accept(CLUSTER, response({"c": "1"}))
    assert versions(Journal(tmp_path / "last", NODE)) == {"a": "1", "c": "1"}


@contextlib.contextmanager
def largest_file(size: int):
    """Meanwhile no file of this process grows beyond this size, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_folder_and_files_are_private(tmp_path) -> None:
    Journal(tmp_path / "last", NODE).accept(CLUSTER, response({"a": "1"}))
    assert (tmp_path / "last").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "last").iterdir()} == {0o600}


def test_type_counts_as_held_even_if_its_last_state_is_empty(tmp_path) -> None:
    journal = Journal(tmp_path, NODE)
    assert not journal.holds(CLUSTER)
    journal.accept(CLUSTER, response())
    assert journal.holds(CLUSTER)
    assert journal.load(CLUSTER) == {}


def test_new_state_replaces_the_old_one_only_when_it_is_there(tmp_path) -> None:
    journal = Journal(tmp_path, NODE)
    journal.accept(CLUSTER, response({"a": "1", "b": "1"}))
    journal.replace_at_next(CLUSTER)
    assert versions(Journal(tmp_path, NODE)) == {"a": "1", "b": "1"}
    journal.accept(CLUSTER, response({"c": "1"}))
    journal.accept(CLUSTER, response({"d": "1"}))
    assert versions(Journal(tmp_path, NODE)) == {"c": "1", "d": "1"}


def test_resources_that_envoy_no_longer_asks_for_are_forgotten(tmp_path) -> None:
    journal = Journal(tmp_path, NODE)
    journal.accept(CLUSTER, response({"a": "1", "b": "1"}))
    journal.forget(CLUSTER, ["b", "never there"])
    size = (tmp_path / CLUSTER.rpartition("/")[2]).stat().st_size
    journal.forget(CLUSTER, ["b"])
    assert (tmp_path / CLUSTER.rpartition("/")[2]).stat().st_size == size
    assert versions(Journal(tmp_path, NODE)) == {"a": "1"}


def test_another_nodes_configuration_is_thrown_away(tmp_path) -> None:
    Journal(tmp_path, NODE).accept(CLUSTER, response({"a": "1"}))
    assert not Journal(tmp_path, NODE.replace("10.1.1.10", "10.1.1.11")).holds(CLUSTER)
    assert not Journal(tmp_path, NODE).holds(CLUSTER)


@pytest.mark.parametrize("torn", [1, 3, 4, 5, 100])
def test_torn_end_is_left_out_and_written_over(tmp_path, torn: int) -> None:
    journal = Journal(tmp_path, NODE)
    journal.accept(CLUSTER, response({"a": "1"}))
    journal.accept(CLUSTER, response({"b": "1"}))
    file = tmp_path / CLUSTER.rpartition("/")[2]
    file.write_bytes(file.read_bytes()[:-torn])
    again = Journal(tmp_path, NODE)
    assert versions(again) == {"a": "1"}
    again.accept(CLUSTER, response({"c": "1"}))
    assert versions(Journal(tmp_path, NODE)) == {"a": "1", "c": "1"}


def test_bytes_that_are_no_response_end_the_state(tmp_path) -> None:
    Journal(tmp_path, NODE).accept(CLUSTER, response({"a": "1"}))
    file = tmp_path / CLUSTER.rpartition("/")[2]
    file.write_bytes(file.read_bytes() + b"\0\0\0\4\xff\xff\xff\xff")
    assert versions(Journal(tmp_path, NODE)) == {"a": "1"}


def test_file_grows_with_its_content_and_not_with_its_history(tmp_path) -> None:
    journal = Journal(tmp_path, NODE)
    for version in range(2000):
        journal.accept(CLUSTER, response({"a": str(version), "b": str(version)}))
    assert (tmp_path / CLUSTER.rpartition("/")[2]).stat().st_size < 150_000
    assert versions(journal) == versions(Journal(tmp_path, NODE)) == {"a": "1999", "b": "1999"}


def test_disk_that_is_full_costs_a_warning_only(tmp_path, caplog) -> None:
    journal = Journal(tmp_path / "last", NODE)
    (tmp_path / "last" / CLUSTER.rpartition("/")[2]).mkdir()
    journal.accept(CLUSTER, response({"a": "1"}))
    assert "cannot keep the last good configuration" in caplog.text


_names = st.sampled_from(["a", "b", "c", "d"])
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("accept"), st.dictionaries(_names, st.sampled_from("123")), st.lists(_names, max_size=2)),
        st.tuples(st.just("forget"), st.lists(_names, max_size=2)),
        st.tuples(st.just("replace")),
        st.tuples(st.just("restart")),
    ),
    max_size=30,
)


@given(steps=_steps)
@settings(max_examples=150, deadline=None)
def test_journal_is_what_a_dictionary_would_be(steps, tmp_path_factory) -> None:
    folder: Path = tmp_path_factory.mktemp("journal")
    journal, model, replace = Journal(folder, NODE), {}, False
    for step, *arguments in steps:
        if step == "accept":
            changed, removed = arguments
            removed = [name for name in removed if name not in changed]
            model = {} if replace else model
            replace = False
            model = {name: version for name, version in (model | changed).items() if name not in removed}
            journal.accept(CLUSTER, response(changed, removed))
        elif step == "forget":
            if not replace:
                model = {name: version for name, version in model.items() if name not in arguments[0]}
                journal.forget(CLUSTER, arguments[0])
        elif step == "replace":
            replace = True
            journal.replace_at_next(CLUSTER)
        else:
            journal, replace = Journal(folder, NODE), False
        assert versions(journal) == model
