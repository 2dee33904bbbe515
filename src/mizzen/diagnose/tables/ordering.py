"""The order in which istioctl's tables list rows that its comparison calls equal.

istioctl sorts with Go's `sort.Slice`, which is not stable: equal rows of a listener with more than twelve filter
chains come out shuffled, always the same way. Operators diff and grep these tables, so `sort_like_go` repeats the
algorithm (pattern-defeating quicksort with Go's thresholds) step by step; golden case `cart-sidecar-ingress` shows it.
In: items and a `less` that need not be a strict order (routes compare only where both names are numbers). Out: a list.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

_INSERTION_LIMIT = 12
"""Ranges up to this length are sorted by insertion."""
_NINTHER_FROM = 50
"""From this length the pivot is a median of medians, and nearly sorted ranges are repaired in place."""
_MAX_REPAIRS = 5
_DESCENDING_SWAPS = 12
"""So many swaps while choosing a pivot mean that the range descends throughout."""
_UINT64 = (1 << 64) - 1


def sort_like_go(items: Iterable[T], less: Callable[[T, T], bool]) -> list[T]:
    """The items in the order that Go's `sort.Slice` gives them under `less`."""
    work = _Sort(list(items), less)
    work.sort(0, len(work.data), len(work.data).bit_length())
    return work.data


class _Sort(Generic[T]):
    """One list being sorted in place. Ranges are half open; indices are absolute."""

    def __init__(self, data: list[T], less: Callable[[T, T], bool]) -> None:
        self.data = data
        self._less_items = less

    def _less(self, i: int, j: int) -> bool:
        return self._less_items(self.data[i], self.data[j])

    def _swap(self, i: int, j: int) -> None:
        self.data[i], self.data[j] = self.data[j], self.data[i]

    def sort(self, low: int, high: int, bad_choices_left: int) -> None:
        """Quicksort that recurses into the smaller part and loops over the larger one."""
        balanced = partitioned = True
        while high - low > _INSERTION_LIMIT:
            if bad_choices_left == 0:
                self._heap_sort(low, high)
                return
            if not balanced:
                self._break_patterns(low, high)
                bad_choices_left -= 1
            pivot, ascending = self._choose_pivot(low, high)
            if balanced and partitioned and ascending and self._repair(low, high):
                return
            if low > 0 and not self._less(low - 1, pivot):
                low = self._split_equal(low, high, pivot)
                continue
            length = high - low
            middle, partitioned = self._split(low, high, pivot)
            balanced = min(middle - low, high - middle) >= length // 8
            if middle - low < high - middle:
                self.sort(low, middle, bad_choices_left)
                low = middle + 1
            else:
                self.sort(middle + 1, high, bad_choices_left)
                high = middle
        self._insertion_sort(low, high)

    def _insertion_sort(self, low: int, high: int) -> None:
        for start in range(low + 1, high):
            self._sink(start, low)

    def _sink(self, start: int, low: int) -> None:
        """Move the item at `start` down while it is less than the one before it."""
        while start > low and self._less(start, start - 1):
            self._swap(start, start - 1)
            start -= 1

    def _choose_pivot(self, low: int, high: int) -> tuple[int, bool]:
        """The pivot's index and whether the range seems to ascend; a descending range is turned round first."""
        length = high - low
        swaps = [0]
        first, second, third = (low + length // 4 * quarter for quarter in (1, 2, 3))
        if length >= _NINTHER_FROM:
            first, second, third = (self._median(i - 1, i, i + 1, swaps) for i in (first, second, third))
        pivot = self._median(first, second, third, swaps)
        if swaps[0] == _DESCENDING_SWAPS:
            self.data[low:high] = self.data[low:high][::-1]
            return high - 1 - (pivot - low), True
        return pivot, swaps[0] == 0

    def _median(self, a: int, b: int, c: int, swaps: list[int]) -> int:
        a, b = self._ordered(a, b, swaps)
        b, c = self._ordered(b, c, swaps)
        a, b = self._ordered(a, b, swaps)
        return b

    def _ordered(self, a: int, b: int, swaps: list[int]) -> tuple[int, int]:
        if self._less(b, a):
            swaps[0] += 1
            return b, a
        return a, b

    def _split(self, low: int, high: int, pivot: int) -> tuple[int, bool]:
        """Put what is less than the pivot before it; say where it came to lie and whether all lay right already."""
        self._swap(low, pivot)
        left, right, untouched = low + 1, high - 1, True
        while True:
            while left <= right and self._less(left, low):
                left += 1
            while left <= right and not self._less(right, low):
                right -= 1
            if left > right:
                break
            self._swap(left, right)
            left, right, untouched = left + 1, right - 1, False
        self._swap(right, low)
        return right, untouched

    def _split_equal(self, low: int, high: int, pivot: int) -> int:
        """Put what equals the pivot first; say where the greater ones begin. Nothing in the range is less than it."""
        self._swap(low, pivot)
        left, right = low + 1, high - 1
        while True:
            while left <= right and not self._less(low, left):
                left += 1
            while left <= right and self._less(low, right):
                right -= 1
            if left > right:
                return left
            self._swap(left, right)
            left, right = left + 1, right - 1

    def _repair(self, low: int, high: int) -> bool:
        """Sort a nearly sorted range by a few shifts; false when that did not finish it."""
        at = low + 1
        for _ in range(_MAX_REPAIRS):
            while at < high and not self._less(at, at - 1):
                at += 1
            if at == high:
                return True
            if high - low < _NINTHER_FROM:
                return False
            self._swap(at, at - 1)
            if at - low >= 2:
                self._sink(at - 1, 0)
            if high - at >= 2:
                self._float(at + 1, high)
        return False

    def _float(self, start: int, high: int) -> None:
        while start < high and self._less(start, start - 1):
            self._swap(start, start - 1)
            start += 1

    def _break_patterns(self, low: int, high: int) -> None:
        """Scatter three items around the middle by Go's fixed xorshift, so that one bad pattern cannot recur."""
        length = high - low
        random, mask = length, (1 << length.bit_length()) - 1
        middle = low + length // 4 * 2 - 1
        for offset in (-1, 0, 1):
            random ^= random << 13 & _UINT64
            random ^= random >> 7
            random ^= random << 17 & _UINT64
            other = random & mask
            self._swap(middle + offset, low + (other - length if other >= length else other))

    def _heap_sort(self, low: int, high: int) -> None:
        length = high - low
        for root in range((length - 1) // 2, -1, -1):
            self._sift_down(root, length, low)
        for end in range(length - 1, -1, -1):
            self._swap(low, low + end)
            self._sift_down(0, end, low)

    def _sift_down(self, root: int, end: int, first: int) -> None:
        while (child := 2 * root + 1) < end:
            if child + 1 < end and self._less(first + child, first + child + 1):
                child += 1
            if not self._less(first + root, first + child):
                return
            self._swap(first + root, first + child)
            root = child
