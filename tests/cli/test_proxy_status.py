"""`mizzen proxy-status` against a control plane's recorded answers."""

import copy
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import cli_runs
import pytest
from http_answers import Answers, on_port, on_socket

TYPES = "type.googleapis.com/envoy.config"
SYNCZ = [
    {
        "cluster_id": "Kubernetes",
        "proxy": "cart-0.shop",
        "proxy_type": "sidecar",
        "istio_version": "1.32.0",
        "resources": {
            f"{TYPES}.cluster.v3.Cluster": {"sent": "n1", "acked": "n1", "sentTime": "2026-01-01T00:00:00Z"},
            f"{TYPES}.listener.v3.Listener": {"sent": "n2", "acked": "n1", "sentTime": "2026-01-01T00:00:00Z"},
            f"{TYPES}.route.v3.RouteConfiguration": {
                "sent": "n3",
                "acked": "n2",
                "sentTime": "2026-01-01T00:00:00.123456789Z",
                "lastError": "duplicate domain",
            },
            f"{TYPES}.core.v3.TypedExtensionConfig": {"sentTime": "0001-01-01T00:00:00Z"},
        },
    },
    {"cluster_id": "Kubernetes", "proxy": "api-0.web", "proxy_version": "1.20.0", "cluster_sent": "a"},
]
DUMP = {
    "configs": [
        {
            "@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
            "dynamicActiveClusters": [
                {"cluster": {"@type": f"{TYPES}.cluster.v3.Cluster", "name": "b", "connectTimeout": "1s"}},
                {"cluster": {"@type": f"{TYPES}.cluster.v3.Cluster", "name": "a", "connectTimeout": "1s"}},
            ],
        },
        {
            "@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump",
            "dynamicListeners": [
                {
                    "name": "l",
                    "activeState": {"listener": {"@type": f"{TYPES}.listener.v3.Listener", "name": "l"}},
                }
            ],
        },
        {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "dynamicRouteConfigs": []},
    ]
}


@pytest.fixture
def plane() -> Iterator[str]:
    answers = Answers(
        {
            "/debug/syncz": json.dumps(SYNCZ).encode(),
            "/debug/config_dump?proxyID=cart-0.shop": json.dumps(DUMP).encode(),
        }
    )
    with on_port(answers) as address:
        yield address


def ps(*arguments: object) -> str:
    result = cli_runs.run("proxy-status", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def cells(text: str) -> list[list[str]]:
    """Lines split where at least two blanks stand: `NOT SENT` is one cell."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def test_without_v_it_is_the_classic_wide_table(plane: str) -> None:
    assert cells(ps("--monitoring", plane)) == [
        ["NAME", "CLUSTER", "CDS", "LDS", "EDS", "RDS", "ECDS", "ISTIOD", "VERSION"],
        [
            *("api-0.web", "Kubernetes", "STALE (Never Acknowledged)", *["NOT SENT"] * 4),
            *(plane, "1.20.0*"),
        ],
        [
            *("cart-0.shop", "Kubernetes", "SYNCED", "STALE", "NOT SENT", "ERROR", "NOT SENT"),
            *(plane, "1.32.0"),
        ],
    ]


def test_what_a_control_plane_no_longer_hears_is_told_beside_the_table(plane: str) -> None:
    silent = [{"name": "kubernetes", "ageSeconds": 75.2, "troubles": ["refused"]}, {"name": "files", "ageSeconds": 0}]
    pages = {"/debug/syncz": json.dumps(SYNCZ).encode(), "/debug/sources": json.dumps(silent).encode()}
    with on_port(Answers(pages)) as address:
        result = cli_runs.run("proxy-status", "--monitoring", address)
    warning = f"! {address} has heard nothing from kubernetes for 75s; what it sends is from then: refused\n"
    assert (result.exit_code, result.stderr) == (0, warning)
    assert result.stdout.replace(address, plane) == ps("--monitoring", plane), "columns are as ever"


def test_v_0_is_condensed(plane: str) -> None:
    assert cells(ps("--monitoring", plane, "-v", "0", "-n", "shop")) == [
        ["NAME", "CLUSTER", "ISTIOD", "VERSION", "SUBSCRIBED TYPES"],
        ["cart-0.shop", "Kubernetes", plane, "1.32.0", "4 (CDS,LDS,RDS,ECDS)"],
    ]


def test_v_1_has_a_column_for_every_type(plane: str) -> None:
    header, _, cart = cells(ps("--monitoring", plane, "-v=1"))

    assert header == ["NAME", "CLUSTER", "CDS", "ECDS", "EDS", "LDS", "RDS", "ISTIOD", "VERSION"]
    assert [cell.split(" (")[0] for cell in cart[2:7]] == ["SYNCED", "NOT SENT", "IGNORED", "STALE", "ERROR"]
    assert re.search(r" \(\d+(d|y|y\d+d)\)$", cart[2])


def test_json_tells_why_a_proxy_refused(plane: str) -> None:
    document = json.loads(ps("--monitoring", plane, "-o", "json", "-n", "shop"))
    (config,) = document["resources"]
    refused = next(c for c in config["genericXdsConfigs"] if c["configStatus"] == "ERROR")

    assert config["node"]["id"] == "cart-0.shop"
    assert refused["errorState"]["details"] == "duplicate domain"
    assert json.loads(document["controlPlane"]["identifier"])["ID"] == plane


def envoy_side(change: Any = None) -> bytes:
    """What the proxy would say: Envoy's spelling, its order, its times, and perhaps something else."""
    dump = copy.deepcopy(DUMP)
    clusters = dump["configs"][0].pop("dynamicActiveClusters")
    for entry in clusters:  # type: ignore[attr-defined]
        entry["cluster"]["connect_timeout"] = entry["cluster"].pop("connectTimeout")
        entry["last_updated"] = "2026-01-01T00:00:00Z"
    if change:
        clusters[0]["cluster"].update(change)  # type: ignore[index]
    dump["configs"][0]["dynamic_active_clusters"] = list(reversed(clusters))  # type: ignore[call-overload]
    dump["configs"][2]["dynamic_route_configs"] = [{"last_updated": "2026-01-01T00:00:00Z"}]  # type: ignore[list-item]
    return json.dumps(dump).encode()


def test_one_proxy_that_has_what_was_sent_matches(plane: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "dump.json").write_bytes(envoy_side())

    lines = ps("cart-0.shop", "--monitoring", plane, "-f", tmp_path / "dump.json").splitlines()

    assert lines[:2] == ["Clusters Match", "Listeners Match"]
    assert lines[2].startswith("Routes Match (RDS last loaded at ")
    assert len(lines) == 3


def test_one_proxy_that_differs_shows_where_and_still_exits_0(plane: str, tmp_path: pathlib.Path) -> None:
    admin = tmp_path / "admin.sock"
    with on_socket(admin, Answers({"/config_dump": envoy_side({"connect_timeout": "5s"})})):
        mesh = cli_runs.write_mesh(tmp_path / "shop", pods=[cli_runs.pod("cart-0", "shop", admin)], monitoring=plane)
        lines = ps("sts/cart", "-n", "shop", "--mesh", mesh).splitlines()

    assert lines[:3] == ["Clusters Don't Match", "--- Istiod Clusters", "+++ Envoy Clusters"]
    assert '-      "connectTimeout": "1s",' in lines
    assert '+      "connectTimeout": "5s",' in lines
    assert "Listeners Match" in lines


def test_explain_tells_fault_evidence_and_drift(plane: str, tmp_path: pathlib.Path) -> None:
    admin = tmp_path / "admin.sock"
    with on_socket(admin, Answers({"/config_dump": envoy_side({"connect_timeout": "5s"})})):
        pods = [cli_runs.pod("cart-0", "shop", admin), cli_runs.pod("gone-0", "shop", tmp_path / "none.sock")]
        mesh = cli_runs.write_mesh(tmp_path / "shop", pods=pods, monitoring=plane)
        document = json.loads(ps("--explain", "--mesh", mesh, "-o", "json"))
        text = ps("--explain", "--mesh", mesh)

    found = {(each["type"], each["state"]): each for each in document["findings"]}
    assert found["RDS", "ERROR"]["culprit"] == "configuration"
    assert found["RDS", "ERROR"]["evidence"] == ["Envoy says: duplicate domain"]
    assert found["LDS", "STALE"]["culprit"] == "proxy"
    assert found["CDS", "STALE"]["evidence"][-1] == "never acknowledged on this connection by api-0.web"
    assert found["", "NOT CONNECTED"]["proxies"] == ["gone-0.shop"]
    assert document["drift"] == {"cart-0.shop": ["clusters"]}
    assert "cart-0.shop holds other clusters than it would be sent: `mizzen proxy-status cart-0.shop`" in text


@pytest.mark.parametrize("written", [("cart-0",), ("cart-0.shop",), ("sts/cart", "-n", "shop")])
def test_explain_of_one_proxy_takes_it_as_people_write_it(
    plane: str, tmp_path: pathlib.Path, written: tuple[str, ...]
) -> None:
    admin = tmp_path / "admin.sock"
    with on_socket(admin, Answers({"/config_dump": envoy_side({"connect_timeout": "5s"})})):
        pods = [cli_runs.pod("cart-0", "shop", admin), cli_runs.pod("gone-0", "shop", tmp_path / "none.sock")]
        mesh = cli_runs.write_mesh(tmp_path / "shop", pods=pods, monitoring=plane)
        document = json.loads(ps(*written, "--explain", "--mesh", mesh, "-o", "json"))
        absent = json.loads(ps("gone-0", "--explain", "--mesh", mesh, "-o", "json"))

    assert {(each["type"], each["state"]) for each in document["findings"]} >= {("RDS", "ERROR"), ("LDS", "STALE")}
    assert document["drift"] == {"cart-0.shop": ["clusters"]}
    assert [(each["state"], each["proxies"]) for each in absent["findings"]] == [("NOT CONNECTED", ["gone-0.shop"])]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("front-0.web", "-f", "DUMP"), "unable to find config dump in Istiod responses"),
        (("cart-0.shop", "-f", "nowhere"), "could not contact sidecar: cannot read nowhere"),
        (("-f", "DUMP"), "proxy-status --file requires the name of the proxy"),
        (("-o", "wide"), 'output format "wide" not supported'),
    ],
)
def test_what_cannot_be_answered_is_one_line(
    plane: str, tmp_path: pathlib.Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "dump.json").write_bytes(envoy_side())
    stated = [str(tmp_path / "dump.json") if a == "DUMP" else a for a in arguments]

    result = cli_runs.run("ps", *stated, "--monitoring", plane)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {message}")


def test_a_control_plane_that_answers_nonsense_is_one_line() -> None:
    with on_port(Answers({"/debug/syncz": b"<html>"})) as address:
        result = cli_runs.run("ps", "--monitoring", address)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: the control plane at {address} did not answer with JSON")
