"""What `mizzen test` recorded over golden inputs, asked of real Envoys that hold what is compiled of them."""

import pathlib

import expectation_runs
import pytest

pytestmark = pytest.mark.envoy

TABLES = sorted((pathlib.Path(__file__).parent / "expectations").glob("*.yaml"))
_MANY = 200


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
async def test_real_envoys_do_what_the_table_expects(table: pathlib.Path, tmp_path: pathlib.Path) -> None:
    _, differences = await expectation_runs.compare(table, tmp_path)

    assert not differences, "\n".join(differences)


def test_there_are_as_many_as_promised() -> None:
    assert sum(table.read_text().count("expect: {") for table in TABLES) >= _MANY
