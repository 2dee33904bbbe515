"""What is concluded from samples: medians, quantiles, and whether a target is met."""

import pytest

from bench.figures import Figure, Target, beside, format_value, lines, percentile, quantile, together


def a_figure(*samples: float, row: str = "a row", name: str = "CPU", target: Target | None = None, **more) -> Figure:
    return Figure(row=row, name=name, unit="CPU s", samples=samples, target=target, **more)


@pytest.mark.parametrize(
    ("values", "share", "found"),
    [
        ([5.0], 0.99, 5.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([1.0, 2.0, 3.0, 4.0], 0.5, 2.0),
        ([float(n) for n in range(1, 101)], 0.99, 99.0),
        ([float(n) for n in range(1, 1001)], 0.99, 990.0),
        ([float(n) for n in range(1, 11)], 0.99, 10.0),
        ([1.0, 2.0], 0.0, 1.0),
    ],
)
def test_percentile_is_a_value_that_was_seen(values, share, found):
    assert percentile(values, share) == found


@pytest.mark.parametrize(
    ("buckets", "share", "found"),
    [
        ([(0.01, 0.0), (0.05, 100.0), (float("inf"), 100.0)], 0.5, 0.03),
        ([(0.01, 99.0), (0.05, 100.0), (float("inf"), 100.0)], 0.99, 0.01),
        ([(0.01, 90.0), (0.05, 90.0), (float("inf"), 100.0)], 0.99, 0.05),
        ([(0.01, 0.0), (float("inf"), 0.0)], 0.99, 0.0),
    ],
)
def test_quantile_of_a_histogram_is_spread_within_its_bucket(buckets, share, found):
    assert quantile(buckets, share) == pytest.approx(found)


def test_runs_are_put_together_by_row_and_figure_and_the_median_counts():
    other = a_figure(2.0, row="another row")
    turns = [[a_figure(3.0), other], [a_figure(9.0, note="slow"), a_figure(1.0, name="p99")], [a_figure(4.0)]]
    cpu, late, last = together(turns)
    assert (cpu.samples, cpu.value, cpu.note) == ((3.0, 9.0, 4.0), 4.0, "slow")
    assert late.samples == (1.0,)
    assert last == other


@pytest.mark.parametrize(
    ("target", "others", "met"),
    [
        (None, (), None),
        (Target(most=2.0), (), True),
        (Target(most=1.9), (), False),
        (Target(exactly=2.0), (), True),
        (Target(exactly=3.0), (), False),
        (Target(share=1 / 8), (), None),
        (Target(share=1 / 8), (16.0,), True),
        (Target(share=1 / 8), (15.9,), False),
        (Target(share=1 / 8, most=1.0), (16.0,), True),
        (Target(share=1 / 8, most=1.0), (), False),
    ],
)
def test_a_share_of_the_other_counts_before_a_bound(target, others, met):
    assert a_figure(1.0, 2.0, 3.0, target=target, others=others).is_met is met


def test_the_other_control_plane_is_set_beside_the_same_rows():
    ours = [a_figure(1.0), a_figure(1.0, row="only ours")]
    theirs = [a_figure(8.0), a_figure(2.0, row="only theirs")]
    assert [figure.other for figure in beside(ours, theirs)] == [8.0, None]


def test_the_table_has_a_column_for_the_other_only_where_there_is_one():
    figures = [a_figure(1.0, target=Target(share=1 / 8)), a_figure(0.5, name="p99", note="why")]
    alone = "\n".join(lines(figures, "title"))
    assert "ratio" not in alone
    assert "≤ 1/8 of the other's" in alone
    assert "NOT MET" not in alone
    both = list(lines(beside(figures, [a_figure(4.0)]), "title"))
    assert both[0] == "title"
    assert both[2].split() == [
        "a",
        "row",
        "CPU",
        "1.00",
        "CPU",
        "s",
        "4.00",
        "CPU",
        "s",
        "0.250",
        *("≤", "0.500", "CPU", "s", "NOT", "MET"),
    ]
    assert both[3].split() == ["p99", "0.500", "CPU", "s"]
    assert both[4].strip() == "why"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1234.0, "", "1,234"),
        (0.0, "%", "0 %"),
        (0.25, "s", "0.250 s"),
        (12.345, "s", "12.35 s"),
        (377.7, "KB", "378 KB"),
    ],
)
def test_figures_are_as_precise_as_they_deserve(value, unit, text):
    assert format_value(value, unit) == text
