"""Envoy's admin interface as values: readiness in pilot-agent's words, connections of the application alone."""

import pytest

from mizzen.agent import admin

LIVE = {
    "server.state": 0,
    "listener_manager.workers_started": 1,
    "cluster_manager.cds.update_success": 2,
    "listener_manager.lds.update_success": 1,
}


def obstacle(**changes: int) -> str:
    return admin.parse_readiness(
        {**LIVE, **{name.replace("__", "."): value for name, value in changes.items()}}
    ).obstacle()


def test_statistics_are_read_line_by_line() -> None:
    text = 'server.live: 1\ncontrol_plane.identifier: "a: 1"\nhistogram: P0(1,1)\ncluster.a:80.cx: 7\n\n'
    assert admin.parse_stats(text) == {"server.live": 1, "cluster.a:80.cx": 7}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, ""),
        (
            {"cluster_manager.cds.update_success": 0},
            "config not received from XDS server (is Istiod running?): "
            "cds updates: 0 successful, 0 rejected; lds updates: 1 successful, 0 rejected",
        ),
        (
            {"listener_manager.lds.update_success": 0, "listener_manager.lds.update_rejected": 3},
            "config received from XDS server, but was rejected: "
            "cds updates: 2 successful, 0 rejected; lds updates: 0 successful, 3 rejected",
        ),
        ({"listener_manager.lds.update_rejected": 1}, ""),
        ({"server.state": 3}, "server is not live, current state is: INITIALIZING"),
        ({"server.state": 1}, "server is not live, current state is: DRAINING"),
        ({"server.state": 9}, "server is not live, current state is: UNKNOWN"),
        ({"listener_manager.workers_started": 0}, "workers have not yet started"),
    ],
)
def test_reasons_against_readiness(changes: dict[str, int], text: str) -> None:
    assert admin.parse_readiness(LIVE | changes).obstacle() == text


def test_nothing_known_is_not_ready() -> None:
    assert admin.parse_readiness({}).obstacle() != ""


def test_connections_of_the_agents_own_listeners_and_of_workers_do_not_count() -> None:
    values = {
        "listener.0.0.0.0_15006.downstream_cx_active": 3,
        "listener.10.1.1.10_80.downstream_cx_active": 2,
        "listener.0.0.0.0_15006.worker_0.downstream_cx_active": 3,
        "listener.0.0.0.0_15021.downstream_cx_active": 5,
        "listener.[__]_15090.downstream_cx_active": 5,
        "listener.admin.downstream_cx_active": 5,
        "http.agent.downstream_cx_active": 5,
    }
    assert admin.count_connections(values) == 5
    assert admin.count_connections({}) is None
    assert admin.count_connections({"listener.admin.downstream_cx_active": 1}) is None
