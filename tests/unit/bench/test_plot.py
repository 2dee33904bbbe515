"""The picture of figures and targets."""

from xml.etree import ElementTree

from bench.figures import Figure, Target
from bench.plot import draw

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_end_where_the_share_of_the_bound_lies():
    bound = Target(most=10.0)
    figures = [
        Figure(row="a", name="at <it>", samples=(10.0,), target=bound, others=(100.0,)),
        Figure(row="a", name="below", samples=(1.0,), target=bound),
        Figure(row="a", name="nothing", samples=(0.0,), target=bound),
        Figure(row="a", name="no bound", samples=(1.0,)),
    ]
    picture = ElementTree.fromstring(draw(figures, "50 & more"))
    texts = [each.text or "" for each in picture.iter(f"{SVG}text")]
    assert "50 & more" in texts
    assert "a: at <it>" in texts
    assert not any("no bound" in text for text in texts)
    line = float(next(picture.iter(f"{SVG}line")).attrib["x1"])
    at, other, below, nothing = [each for each in picture.iter(f"{SVG}rect") if "x" in each.attrib]

    def end(bar: ElementTree.Element) -> float:
        return float(bar.attrib["x"]) + float(bar.attrib["width"])

    assert end(at) == line
    assert end(other) > line > end(below) > end(nothing) > float(nothing.attrib["x"])
    assert at.attrib["fill"] == below.attrib["fill"] != other.attrib["fill"]
