"""What `mizzen test` recorded over golden inputs, asked of real Envoys that hold what is compiled of them."""

import pathlib

import expectation_runs
import pytest

pytestmark = pytest.mark.envoy

HERE = pathlib.Path(__file__).parent
TABLES = sorted((HERE / "expectations").glob("*.yaml"))
_MANY = 200

WRONG = {
    "outcome": "{url: http://cart.shop:8080/one, expect: {outcome: responded}}",
    "status": "{url: http://cart.shop:8080/teapot, expect: {status: 200}}",
    "flag": "{url: http://cart.shop:8080/one, expect: {flag: UH}}",
    "destination": "{url: http://cart.shop:8080/one, expect: {destination: search.shop}}",
    "path": "{url: http://cart.shop:8080/one, expect: {path: /three}}",
    "host": "{url: http://cart.shop:8080/one, expect: {host: cart.shop}}",
    "request.x-stays": "{url: http://cart.shop:8080/hosted, headers: {x-stays: a}, expect: {request: {x-stays: null}}}",
    "response.retry-after": "{url: http://cart.shop:8080/bytes, expect: {response: {retry-after: 6}}}",
    "location": '{url: http://cart.shop:8080/r1, expect: {location: "http://cart.shop:8080/r1"}}',
}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
async def test_real_envoys_do_what_the_table_expects(table: pathlib.Path, tmp_path: pathlib.Path) -> None:
    compared = await expectation_runs.compare(table, tmp_path)

    assert compared.failing == []
    assert not compared.differences, "\n".join(compared.differences)


async def test_a_wrong_table_is_found_out(tmp_path: pathlib.Path) -> None:
    corpus = HERE.parent / "golden" / "corpus"
    table = tmp_path / "wrong.yaml"
    rows = "".join(f"- {row}\n" for row in WRONG.values())
    table.write_text(
        f"manifests: [{corpus}/base.yaml, {corpus}/networking/vs-rewrite-redirect-respond.yaml]\n"
        f"mesh: {corpus}/mesh.yaml\ndefaults: {{from: front.web}}\ntests:\n{rows}"
    )

    compared = await expectation_runs.compare(table, tmp_path)

    assert len(compared.failing) == compared.asked == len(WRONG)
    assert [each.partition("expected")[0].split(": ")[-2] for each in compared.differences] == list(WRONG)


def test_there_are_as_many_as_promised() -> None:
    assert sum(table.read_text().count("expect: {") for table in TABLES) >= _MANY
