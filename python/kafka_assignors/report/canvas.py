"""Drawing for the page: matplotlib figures as SVG that turn dark with the page.

matplotlib is imported at the first drawing. In the SVG the colours of `COLOURS` become variables with a value for light
and one for dark pages. People with red-green blindness can distinguish them.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from kafka_assignors.printable import escaped
from kafka_assignors.report.svg import small

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

__all__ = ["COLOURS", "OWNERS", "Picture", "compact", "draw", "drawn_text"]

COLOURS = {
    "ink": ("#1f2429", "#e6ebf0"),
    "muted": ("#5a636d", "#9aa4ae"),
    "grid": ("#d5dbe1", "#343c45"),
    "surface": ("#fdfdfe", "#15191e"),
    "blue": ("#0072b3", "#58b4ea"),
    "pale": ("#9dc9e6", "#2f6285"),
    "orange": ("#c95a00", "#f5954a"),
    "green": ("#00805e", "#35c296"),
}
"""The colours: name, colour on a light page, colour on a dark one."""

OWNERS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#999999", "#b2df8a", "#8a6fc4")
"""The colours of members, in turn, for light and for dark pages. Each member has letters too."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the page.

    Attributes:
        svg: the picture.
        alt: its content in words, for people who do not see it.
        caption: the text below it.
        width: in CSS pixels.
        height: in CSS pixels.
    """

    svg: str
    alt: str
    caption: str
    width: int
    height: int

    @property
    def uri(self) -> str:
        """The picture as a data URL."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()


def colour(name: str) -> str:
    """A colour of `COLOURS` for matplotlib."""
    return COLOURS[name][0]


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    font = FT2Font(font_manager.findfont("DejaVu Sans"))
    return frozenset(font.get_charmap())


def drawn_text(name: str) -> str:
    """A name with escapes for characters that the font of the pictures lacks."""
    plain = escaped(name)
    glyphs = _glyphs()
    return "".join(each if ord(each) in glyphs else each.encode("unicode_escape").decode() for each in plain)


def compact(number: float) -> str:
    """A number with three significant digits, and a letter for thousands, millions and so on.

    >>> [compact(each) for each in (0, 950, 1_200, 38_000, 2_500_000, 0.25)]
    ['0', '950', '1.2k', '38k', '2.5M', '0.25']
    """
    for unit, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= unit * 0.9995:
            return f"{number / unit:.3g}{sign}" if abs(number) < 999.5 * unit else f"{number / unit:,.0f}{sign}"
    return f"{number:.3g}"


def draw(paint: Callable[[Figure], None], *, width: float, height: float, alt: str, caption: str, salt: str) -> Picture:
    """Draws a figure.

    Args:
        paint: adds the axes to the figure.
        width: in inches, of 96 CSS pixels.
        height: in inches.
        alt: see `Picture`.
        caption: see `Picture`.
        salt: makes the ids in the SVG unique on the page, and the same in every run.

    matplotlib must be installed: see `kafka_assignors.report.page.check_libraries`.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    ink, muted, grid, surface = (colour(name) for name in ("ink", "muted", "grid", "surface"))
    settings: dict[str, Any] = {
        "svg.fonttype": "path",
        "svg.hashsalt": salt,
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "text.color": ink,
        "text.parse_math": False,
        "axes.edgecolor": muted,
        "axes.labelcolor": muted,
        "axes.titlecolor": ink,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": False,
        "axes.axisbelow": True,
        "axes.unicode_minus": False,
        "grid.color": grid,
        "grid.linewidth": 0.8,
        "xtick.color": muted,
        "ytick.color": muted,
        "xtick.labelcolor": muted,
        "ytick.labelcolor": ink,
        "legend.frameon": False,
        "legend.labelcolor": ink,
        "figure.facecolor": surface,
    }
    context: Any = matplotlib.rc_context
    with context(settings):
        figure = Figure(figsize=(width, height), layout="constrained")
        # The layout measures texts as this canvas draws them.
        FigureCanvasSVG(figure)
        paint(figure)
        # With a layout engine, `savefig` draws the figure twice, the first time only for the layout.
        layout = figure.get_layout_engine()
        assert layout is not None
        layout.execute(figure)
        figure.set_layout_engine(None)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, facecolor="none", dpi=96)
    return Picture(_themed(small(file.getvalue())), alt, caption, round(width * 96), round(height * 96))


def _themed(svg: str) -> str:
    """The picture with variables for colours, whose values the page sets."""
    for name, (light, _) in COLOURS.items():
        svg = svg.replace(light, f"var(--{name})")

    def values(which: int) -> str:
        return "".join(f"--{name}:{pair[which]};" for name, pair in COLOURS.items())

    style = f"<style>:root{{{values(0)}}}@media(prefers-color-scheme:dark){{:root{{{values(1)}}}}}</style>"
    start = svg.index(">", svg.index("<svg ")) + 1
    # The XML declaration and the document type before it do not belong in a page.
    return svg[svg.index("<svg ") : start] + style + svg[start:]
