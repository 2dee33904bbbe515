"""The action for pull requests: its scripts run as the runner would run them, with a stand-in for `gh`."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACTION = ROOT / "contrib" / "github-action"

SERVER = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {containers: [{name: app, image: web}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
"""
POLICY = """
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: none, namespace: shop}
spec: {}
"""
GH = """#!/usr/bin/env python3
import json, os, pathlib, sys
log = pathlib.Path(os.environ["GH_LOG"])
with log.open("a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
if "--jq" in sys.argv:
    print(os.environ["GH_KNOWN"])
"""


@pytest.fixture
def runner(tmp_path: pathlib.Path) -> dict[str, str]:
    """A checkout whose base has a server, and whose head adds a policy; the environment of a step."""
    checkout = tmp_path / "checkout"
    (checkout / "mesh").mkdir(parents=True)
    (checkout / "mesh" / "a.yaml").write_text(SERVER)
    git(checkout, "init", "-q", "-b", "main")
    commit(checkout, "base")
    base = git(checkout, "rev-parse", "HEAD").strip()
    (checkout / "mesh" / "b.yaml").write_text(POLICY)
    commit(checkout, "head")
    program = tmp_path / "mizzen"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mizzen "$@"\n')
    program.chmod(0o755)
    files = {name: str(tmp_path / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GH_LOG")}
    return {
        **os.environ,
        **files,
        "PYTHON": sys.executable,
        "MIZZEN": str(program),
        "MANIFESTS": "mesh",
        "BASE": "",
        "BASE_COMMIT": base,
        "PROBES": "",
        "MESH": "",
        "DIALECT": "istio",
        "RUNNER_TEMP": str(tmp_path),
        "CHECKOUT": str(checkout),
        "GH_KNOWN": "",
        "REPOSITORY": "me/mesh",
        "NUMBER": "7",
    }


def git(folder: pathlib.Path, *arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: pathlib.Path, message: str) -> None:
    git(folder, "add", ".")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", message)


def run(script: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (str(ACTION / script),), cwd=environ["CHECKOUT"], env=environ, capture_output=True, text=True, check=False
    )


def test_the_comparison_sets_outputs_and_a_summary(runner: dict[str, str]) -> None:
    done = run("compare.sh", runner)

    assert done.returncode == 0, done.stdout + done.stderr
    lines = pathlib.Path(runner["GITHUB_OUTPUT"]).read_text().splitlines()
    outputs = dict(line.split("=", 1) for line in lines)
    assert (outputs["changed"], outputs["cut"], outputs["errors"]) == ("true", "1", "0")
    assert json.loads(pathlib.Path(outputs["report"]).read_text())["edited"] == ["AuthorizationPolicy shop/none added"]
    assert "### Mesh: 1 of 1 proxy" in pathlib.Path(runner["GITHUB_STEP_SUMMARY"]).read_text()


def test_what_the_base_gained_meanwhile_is_not_told(runner: dict[str, str]) -> None:
    checkout = pathlib.Path(runner["CHECKOUT"])
    git(checkout, "checkout", "-q", "-b", "base", runner["BASE_COMMIT"])
    (checkout / "mesh" / "c.yaml").write_text(POLICY.replace("none", "other"))
    commit(checkout, "meanwhile")
    runner["BASE_COMMIT"] = git(checkout, "rev-parse", "HEAD").strip()
    git(checkout, "checkout", "-q", "main")

    run("compare.sh", runner)

    report = json.loads(pathlib.Path(runner["RUNNER_TEMP"], "mizzen-diff.json").read_text())
    assert report["edited"] == ["AuthorizationPolicy shop/none added"]


def test_a_shallow_checkout_is_explained(runner: dict[str, str]) -> None:
    done = run("compare.sh", {**runner, "BASE_COMMIT": "0" * 40})

    assert done.returncode == 2
    assert "fetch-depth: 0" in done.stdout


@pytest.mark.parametrize(
    ("known", "method", "place"),
    [("", "POST", "repos/me/mesh/issues/7/comments"), ("42", "PATCH", "repos/me/mesh/issues/comments/42")],
)
def test_there_is_one_comment(runner: dict[str, str], known: str, method: str, place: str) -> None:
    folder = pathlib.Path(runner["RUNNER_TEMP"])
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)
    (folder / "mizzen-diff.md").write_text("<!-- mizzen diff -->\n### Mesh\n")

    done = run("comment.sh", {**runner, "GH_KNOWN": known, "PATH": f"{folder}:{os.environ['PATH']}"})

    assert done.returncode == 0, done.stderr
    asked, written = (json.loads(line) for line in pathlib.Path(runner["GH_LOG"]).read_text().splitlines())
    assert 'startswith("<!-- mizzen diff -->")' in asked[-1]
    assert (written[2], written[3]) == (method, place)
    assert f"body=@{folder}/mizzen-diff.md" in written


def test_no_expression_of_the_workflow_gets_into_a_script() -> None:
    action = yaml.safe_load((ACTION / "action.yml").read_text())

    # What others write (titles, paths, revisions) reaches scripts by the environment only.
    assert all("${{" not in step["run"] for step in action["runs"]["steps"])
    assert set(action["outputs"]) == {"changed", "cut", "report"}
