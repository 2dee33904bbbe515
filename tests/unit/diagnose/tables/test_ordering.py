"""Rows come in the order that Go's unstable sort gives them."""

from hypothesis import given
from hypothesis import strategies as st

from mizzen.diagnose.tables.ordering import sort_like_go

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers()), max_size=400)


def by_first(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[0]


@given(PAIRS)
def test_the_result_is_sorted_and_complete(pairs: list[tuple[int, int]]) -> None:
    ordered = sort_like_go(pairs, by_first)

    assert [first for first, _ in ordered] == sorted(first for first, _ in pairs)
    assert sorted(ordered) == sorted(pairs)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers()), max_size=12))
def test_up_to_twelve_equal_items_keep_their_order(pairs: list[tuple[int, int]]) -> None:
    assert sort_like_go(pairs, by_first) == sorted(pairs, key=lambda pair: pair[0])


def test_more_than_twelve_equal_items_are_shuffled_as_go_shuffles_them() -> None:
    """The filter chains of the recorded `cart-sidecar-ingress` listener on 15006, by destination, descending."""
    chains = ["n", *"ppppp", *"aaabbccdd"]
    numbered = [("npdcba".index(letter), index) for index, letter in enumerate(chains)]

    ordered = sort_like_go(numbered, by_first)

    assert [index for _, index in ordered] == [0, 1, 2, 3, 4, 5, 14, 13, 11, 12, 9, 10, 8, 7, 6]


def test_long_runs_of_every_shape_are_sorted() -> None:
    """Ascending, descending, alternating and organ-pipe inputs take the repairing, reversing and scattering paths."""
    shapes = [
        list(range(500)),
        list(range(500, 0, -1)),
        [i % 2 for i in range(500)],
        [*range(250), *range(250, 0, -1)],
        [(i * 7919) % 501 for i in range(500)],
        [*range(499), 0],
    ]
    for shape in shapes:
        assert sort_like_go(shape, lambda a, b: a < b) == sorted(shape)


def test_a_comparison_that_leaves_pairs_unordered_ends() -> None:
    names = ["8080", "catalog", "80", "ledger", "443"] * 8

    def less(a: str, b: str) -> bool:
        return a.isdigit() and b.isdigit() and int(a) < int(b)

    assert sorted(sort_like_go(names, less)) == sorted(names)
    assert sort_like_go(["8080", "catalog", "80"], less) == ["8080", "catalog", "80"]
