"""A picture of figures beside their targets: an SVG of bars, written here since that takes less than a library does.

In: figures. Out: for each that has a bound, how much of it is used, on a logarithmic scale around the bound itself.
"""

import math
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from bench.figures import Figure, format_target, format_value

_LINE, _LEFT, _WIDTH = 22, 380, 420
_DECADES = 2.0
"""Shown on either side of the bound."""
_COLOURS = {True: "#2a7f4f", False: "#b3382c"}
_OTHER = "#9a9a9a"


def draw(figures: Sequence[Figure], title: str) -> str:
    """The whole SVG."""
    shown = [figure for figure in figures if figure.bound]
    height = _LINE * (2 * len(shown) + 3)
    text = "\n".join(_parts(shown, title, height))
    size = f'width="{_LEFT + _WIDTH + 260}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">\n{text}\n</svg>\n'


def _parts(figures: Sequence[Figure], title: str, height: int) -> Iterator[str]:
    yield '<rect width="100%" height="100%" fill="white"/>'
    yield _text(10, _LINE, title)
    at = _place(1.0)
    yield f'<line x1="{at:.0f}" x2="{at:.0f}" y1="{1.5 * _LINE}" y2="{height - _LINE}" stroke="black"/>'
    yield _text(at + 4, height - _LINE / 2, "target")
    for number, figure in enumerate(figures):
        y = _LINE * (2 * number + 2.5)
        bound = figure.bound or 1.0
        yield _text(10, y, f"{figure.row}: {figure.name}")
        value = f"{format_value(figure.value, figure.unit)} ({format_target(figure)})"
        yield from _bar(y, figure.value / bound, _COLOURS[bool(figure.is_met)], value)
        if figure.other is not None:
            yield from _bar(y + _LINE * 0.7, figure.other / bound, _OTHER, format_value(figure.other, figure.unit))


def _place(share: float) -> float:
    decades = math.log10(share) if share > 0 else -_DECADES
    return _LEFT + _WIDTH * (max(-_DECADES, min(_DECADES, decades)) + _DECADES) / (2 * _DECADES)


def _bar(y: float, share: float, colour: str, label: str) -> Iterator[str]:
    end = max(_place(share), _LEFT + 2)
    yield f'<rect x="{_LEFT}" y="{y - 10:.0f}" width="{end - _LEFT:.0f}" height="12" fill="{colour}"/>'
    yield _text(end + 6, y, label)


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'
