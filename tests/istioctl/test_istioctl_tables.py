"""`mizzen proxy-config` prints of an Envoy's dump what the real istioctl prints of it."""

import json
import pathlib

import cli_runs
import istioctl_runs
import pytest
import yaml

TESTS = pathlib.Path(__file__).parents[1]
DUMPS = (*sorted((TESTS / "golden/corpus/cli").glob("*/config_dump.json")), TESTS / "cli/dumps/config_dump.json")
HOSTS = TESTS / "cli/dumps/clusters.json"

SUBCOMMANDS = ("cluster", "listener", "route", "secret", "ecds", "bootstrap", "eds", "all")
FILTERS = (
    ("cluster", "--direction", "inbound"),
    ("cluster", "--fqdn", "cart.shop.svc.cluster.local", "--port", "8080", "--subset", "v1"),
    ("listener", "--verbose=false"),
    ("listener", "--port", "15006"),
    ("listener", "--type", "HTTP"),
    ("listener", "--address", "0.0.0.0"),
    ("route", "--name", "8080"),
    ("route", "--verbose=false"),
    ("all", "--with-headers"),
)


def read(form: str, text: str) -> object:
    """Tables are compared byte for byte, documents by what they say: Go varies the blanks in its own."""
    if form == "json":
        return json.loads(text)
    return yaml.safe_load(text) if form == "yaml" else text


async def compare(folder: pathlib.Path, form: str, *arguments: object) -> None:
    theirs = await istioctl_runs.run(folder, "proxy-config", *arguments, "-o", form)
    ours = cli_runs.run("proxy-config", *arguments, "-o", form)
    assert (ours.exit_code, theirs.code) == (0, 0), (ours.stderr, theirs.err)
    assert read(form, ours.stdout) == read(form, theirs.out)


@pytest.mark.parametrize("dump", DUMPS, ids=lambda dump: dump.parent.name)
@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
async def test_every_form_of_every_section(tmp_path: pathlib.Path, subcommand: str, dump: pathlib.Path) -> None:
    for form in ("short", "json", "yaml"):
        await compare(tmp_path, form, subcommand, "--file", dump)


@pytest.mark.parametrize("arguments", FILTERS, ids=" ".join)
async def test_filters(tmp_path: pathlib.Path, arguments: tuple[str, ...]) -> None:
    for dump in DUMPS[:-1]:
        await compare(tmp_path, "short", *arguments, "--file", dump)


@pytest.mark.parametrize("arguments", [(), ("--status", "healthy"), ("--port", "9080")], ids=str)
async def test_hosts(tmp_path: pathlib.Path, arguments: tuple[str, ...]) -> None:
    for form in ("short", "json"):
        await compare(tmp_path, form, "endpoint", *arguments, "--file", HOSTS)


@pytest.mark.parametrize(
    "arguments",
    [("cluster",), ("cluster", "--file", HOSTS), ("listener", "--file", "/nowhere"), ("cluster", "-o", "wide")],
    ids=str,
)
async def test_both_refuse(tmp_path: pathlib.Path, arguments: tuple[object, ...]) -> None:
    theirs = await istioctl_runs.run(tmp_path, "proxy-config", *arguments)
    ours = cli_runs.run("proxy-config", *arguments)
    assert (ours.exit_code, theirs.code) == (1, 1)
