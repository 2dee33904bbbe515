"""Random edits of the soak: of every kind, some of them faulty, and repaired so that a fresh reader sees what stays."""

import pathlib

from bench import edits
from mizzen.sources.files import FileTree


def test_after_a_repair_a_fresh_reader_sees_what_one_that_followed_does(tmp_path: pathlib.Path) -> None:
    made = edits.Edits(tmp_path, services=6, pods=2, namespaces=3, seed=1)
    made.lay()
    follower, kinds, codes = FileTree(tmp_path), set(), set()
    follower.scan()
    for _ in range(400):
        made.step()
        follower.scan()
        kinds |= {key.kind for key in follower.objects}
        codes |= {problem.code for _, problem in follower.findings}
    made.repair()
    follower.scan()
    fresh = FileTree(tmp_path)
    fresh.scan()
    assert dict(follower.objects) == dict(fresh.objects)
    assert all(problem.code != "stale" for _, problem in fresh.findings)
    assert {"VirtualService", "EnvoyFilter", "HTTPRoute", "Telemetry", "WorkloadEntry", "Pod", "Service"} <= kinds
    assert {"unreadable", "not-text", "empty-file", "stale"} <= codes
    assert set(made.counts) == {"of the mesh", "create or change", "delete", "break", "no change"}


def test_the_same_seed_makes_the_same_edits(tmp_path: pathlib.Path) -> None:
    done = []
    for name in ("one", "two"):
        made = edits.Edits(tmp_path / name, services=6, pods=2, namespaces=3, seed=7)
        made.lay()
        done.append([made.step() for _ in range(50)])
    assert done[0] == done[1]
