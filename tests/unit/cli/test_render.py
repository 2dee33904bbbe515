"""Tables follow the elastic tab stops of Go's tabwriter; JSON and YAML print as istioctl's."""

from mizzen.cli import render
from mizzen.diagnose.table import Table


def test_a_column_is_as_wide_as_its_longest_cell_and_the_padding() -> None:
    table = Table(columns=("NAME", "PORT"), rows=(("a", "1"), ("longer", "22")), padding=2)

    assert render.render_table(table) == "NAME    PORT\na       1\nlonger  22\n"


def test_an_empty_last_cell_keeps_the_padding_before_it() -> None:
    table = Table(columns=("A", "B"), rows=(("x", ""),), padding=5)

    assert render.render_table(table) == "A     B\nx     \n"


def test_a_line_without_a_column_ends_the_column() -> None:
    table = Table(rows=(("wide cell", "1"), ("alone",), ("a", "2")), padding=1)

    assert render.render_table(table) == "wide cell 1\nalone\na 2\n"


def test_a_width_is_never_below_the_minimum() -> None:
    table = Table(rows=(("a", "b"),), padding=1, min_width=6)

    assert render.render_table(table) == "a     b\n"


def test_widths_count_characters_not_bytes() -> None:
    table = Table(rows=(("가나", "x"), ("abc", "y")), padding=1)

    assert render.render_table(table) == "가나  x\nabc y\n"


def test_no_rows_and_no_header_print_nothing() -> None:
    assert render.render_table(Table()) == ""


def test_json_indents_by_four_and_keeps_text_as_it_is() -> None:
    assert render.render_json({"name": "장바구니"}) == '{\n    "name": "장바구니"\n}\n'


def test_yaml_sorts_keys_and_never_wraps() -> None:
    long = "word " * 50

    assert render.render_yaml({"b": 1, "a": long}) == f"a: '{long}'\nb: 1\n"


def test_documents_quote_what_kubernetes_would_not_read_as_text() -> None:
    values = {"a": "y", "b": "N", "c": "true", "d": "1:20", "e": "1", "f": "null", "g": "plain"}
    assert render.render_document(values) == "a: 'y'\nb: 'N'\nc: 'true'\nd: '1:20'\ne: '1'\nf: 'null'\ng: plain\n"
