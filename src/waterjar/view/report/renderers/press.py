"""A small press: text, tables and figures set on A4 pages of a matplotlib PDF, from top to bottom."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from waterjar.view.numbers import shorten
from waterjar.view.style import drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 595.0, 842.0
"""A4, in points."""
MARGIN = 50.0
_LEADING = 1.38
_MOST = 1500
"""Signs of one text; who needs more finds it in another format."""


@dataclass(frozen=True)
class Place:
    """Where a matplotlib figure stands on its page, in points; the page is `scale` times A4."""

    scale: float = 1.0
    left: float = 0.0
    bottom: float = 0.0
    width: float = WIDTH
    height: float = HEIGHT

    def at(self, x: float, y: float) -> tuple[float, float]:
        """A point of the A4 page in the coordinates of the figure."""
        return (x * self.scale - self.left) / self.width, (y * self.scale - self.bottom) / self.height

    @property
    def box(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The page around the figure, in inches from the figure's corner."""
        right, top = WIDTH * self.scale - self.left, HEIGHT * self.scale - self.bottom
        return (-self.left / 72, -self.bottom / 72), (right / 72, top / 72)


Mark = Callable[["Figure", Place], None]
"""Something that will be drawn on a page, once it is known which figure the page is cut around."""


class Press:
    """Keeps the page and the place on it; `pages` is a matplotlib PdfPages.

    A page holds at most one figure of somebody else's. Text and lines are kept until the page is turned, and are then
    drawn into that figure, outside its edges; or into an empty one.
    """

    def __init__(self, pages: Any) -> None:
        self.pages = pages
        self.marks: list[Mark] = []
        self.guest: Figure | None = None
        self.place = Place()
        self.y = HEIGHT - MARGIN
        self.waiting: list[tuple[str, float]] = []

    def turn(self) -> None:
        """Finish the page, if something is on it."""
        from matplotlib.transforms import Bbox  # noqa: PLC0415 - an extra

        if self.marks or self.guest is not None:
            page = self.guest or _new_page()
            for mark in self.marks:
                mark(page, self.place)
            self.pages.savefig(page, bbox_inches=Bbox(self.place.box))
        self.marks, self.guest, self.place, self.y = [], None, Place(), HEIGHT - MARGIN

    def gap(self, points: float) -> None:
        """Leave some space."""
        self.y -= points

    def _room(self, points: float) -> None:
        """Turn the page where not enough is left of it."""
        if self.y - points < MARGIN and self.y < HEIGHT - MARGIN:
            self.turn()

    def words(
        self,
        text: str,
        *,
        size: float = 9.5,
        weight: str = "normal",
        family: str = "sans-serif",
        colour: str = "#1B1F24",
        indent: float = 0.0,
        bar: bool = False,
        gap: float = 4.0,
        most: int = _MOST,
    ) -> None:
        """A paragraph; `bar` draws a line beside it."""
        self._head(3 * size * _LEADING)
        self._paragraph(
            text, size=size, weight=weight, family=family, colour=colour, indent=indent, bar=bar, gap=gap, most=most
        )

    def _paragraph(
        self,
        text: str,
        *,
        size: float,
        weight: str = "normal",
        family: str = "sans-serif",
        colour: str = "#1B1F24",
        indent: float = 0.0,
        bar: bool = False,
        gap: float = 4.0,
        most: int = _MOST,
    ) -> None:
        step = size * _LEADING
        lines = wrap(shorten(text, most), WIDTH - 2 * MARGIN - indent, size, weight, family)
        for line in lines:
            self._room(step)
            self.y -= step
            self._text(MARGIN + indent, self.y, line, size, weight, colour, family=family)
            if bar:
                self._line((MARGIN + 1, self.y - 3), (MARGIN + 1, self.y + step - 3), colour, 2.5)
        self.y -= gap

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: set[int]) -> None:
        """A table over the width of the page; the header is set again on every page."""
        size = 7.0 if len(columns) < 8 else 6.0
        widths = _widths(columns, rows, size, WIDTH - 2 * MARGIN)
        step = size * _LEADING

        def lines_of(row: Sequence[str], weight: str) -> list[list[str]]:
            cells = [shorten(cell, 160).split("\n") for cell in row]
            return [
                [line for part in cell for line in wrap(part, width - 6, size, weight)]
                for cell, width in zip(cells, widths, strict=True)
            ]

        def put(lines: list[list[str]], weight: str) -> None:
            x = MARGIN
            for i, (cell, width) in enumerate(zip(lines, widths, strict=True)):
                for j, line in enumerate(cell):
                    at = x + width - 3 if i in numeric else x + 3
                    align = "right" if i in numeric else "left"
                    self._text(at, self.y - (j + 1) * step, line, size, weight, align=align)
                x += width
            self.y -= max(len(cell) for cell in lines) * step + 3

        header = lines_of(columns, "bold")
        needed = max(len(cell) for cell in header) * step
        self._head(needed + 4 * step)
        self._room(needed + 4 * step)
        put(header, "bold")
        self._rule()
        for row in rows:
            lines = lines_of(row, "normal")
            before = self.marks
            self._room(max(len(cell) for cell in lines) * step + 3)
            if self.marks is not before:
                put(header, "bold")
                self._rule()
            put(lines, "normal")
            self._rule("#D8DEE4")
        self.y -= 4

    def heading(self, text: str, size: float) -> None:
        """A heading: it waits for what follows, and goes where that goes."""
        self.waiting.append((text, size))

    def _head(self, room: float) -> None:
        """Set the headings that wait, with `room` for what follows on the same page."""
        waiting, self.waiting = self.waiting, []
        for i, (text, size) in enumerate(waiting):
            below = sum(size * _LEADING + 8 for _, size in waiting[i:])
            self._room(below + room)
            self.y -= 6 if self.y < HEIGHT - MARGIN else 0
            self._paragraph(text, size=size, weight="bold", most=200)

    def figure(self, made: Figure, title: str, caption: str) -> None:
        """A figure as it was laid out, below what is on the page or on a new one; what follows goes on below it.

        A figure that is too large for A4 gets a page that is larger in the same proportion: it prints as A4.
        """
        made.draw_without_rendering()  # its own layout, before the page is cut around it
        made.set_layout_engine("none")
        for legend in made.legends:  # at the edges of the figure, not at those of the page
            legend.set_bbox_to_anchor((0, 0, 1, 1), transform=made.transFigure)
        width, height = (72 * float(side) for side in made.get_size_inches())
        scale = max(1.0, width / (WIDTH - 2 * MARGIN), height / (0.78 * HEIGHT))
        self.heading(title, 11)
        head = sum(size * _LEADING + 10 for _, size in self.waiting)
        if self.guest is not None or self.y - head - height / scale - 36 < MARGIN:
            self.turn()
        self._head(0)
        self.guest = made
        self.place = Place(scale, (WIDTH * scale - width) / 2, self.y * scale - height, width, height)
        self.y -= height / scale + 6
        self.words(caption, size=8, colour="#57606A")

    def _text(
        self, x: float, y: float, text: str, size: float, weight: str, colour: str = "#1B1F24", *, align: str = "left",
        family: str = "sans-serif",
    ) -> None:  # fmt: skip
        def mark(page: Figure, place: Place) -> None:
            look: dict[str, Any] = {"size": size * place.scale, "weight": weight, "color": colour, "family": family}
            at = place.at(x, y)
            made = page.text(*at, text, ha=align, va="baseline", parse_math=False, **look)
            made.set_in_layout(False)

        self.marks.append(mark)

    def _rule(self, colour: str = "#57606A") -> None:
        self._line((MARGIN, self.y + 1), (WIDTH - MARGIN, self.y + 1), colour, 0.5)
        self.y -= 1

    def _line(self, start: tuple[float, float], end: tuple[float, float], colour: str, width: float) -> None:
        from matplotlib.lines import Line2D  # noqa: PLC0415 - an extra

        def mark(page: Figure, place: Place) -> None:
            xs, ys = zip(place.at(*start), place.at(*end), strict=True)
            line = Line2D(xs, ys, color=colour, linewidth=width * place.scale, transform=page.transFigure)
            line.set_in_layout(False)
            page.add_artist(line)

        self.marks.append(mark)


def _new_page() -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    page = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
    page.set_layout_engine("none")
    FigureCanvasAgg(page)
    return page


@functools.cache
def _advance(sign: str, weight: str, family: str) -> float:
    """The width of a sign in a font of size 1."""
    from matplotlib.font_manager import FontProperties, findfont, get_font  # noqa: PLC0415

    font = get_font(findfont(FontProperties(family=[family], weight=weight)))
    font.set_size(100.0, 72)
    return float(font.load_char(ord(sign)).linearHoriAdvance) / 65536 / 100


def _extent(text: str, size: float, weight: str, family: str) -> float:
    """The width of a text in points, without kerning: a touch too wide rather than too narrow."""
    return size * sum(_advance(sign, weight, family) for sign in text)


def wrap(text: str, width: float, size: float, weight: str = "normal", family: str = "sans-serif") -> list[str]:
    """Text in lines that fit a width in points; what has no glyph is shown as a box, and a long word is broken."""
    lines: list[str] = []
    line = ""
    for word in drawn(text).replace(r"\$", "$").split(" "):
        tried = f"{line} {word}" if line else word
        if _extent(tried, size, weight, family) <= width:
            line = tried
            continue
        if line:
            lines.append(line)
        rest = word
        while _extent(rest, size, weight, family) > width and len(rest) > 1:
            fits = max(1, int(len(rest) * width / _extent(rest, size, weight, family)) - 1)
            lines.append(rest[:fits])
            rest = rest[fits:]
        line = rest
    return [*lines, line]


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]], size: float, total: float) -> list[float]:
    """Widths of columns: as wide as their text, shrunk where that is too much, the widest most."""
    natural = []
    for i, column in enumerate(columns):
        texts = [part for row in (columns, *rows) for part in shorten(row[i], 160).split("\n")] or [column]
        natural.append(min(260.0, max(_extent(drawn(text), size, "bold", "sans-serif") for text in texts) + 8))
    over = sum(natural) - total
    while over > 0.5:
        widest = max(natural)
        big = [i for i, width in enumerate(natural) if width > widest - 1]
        step = min(over / len(big), 4.0)
        for i in big:
            natural[i] -= step
        over = sum(natural) - total
    return [width * total / sum(natural) for width in natural] if sum(natural) < 0.6 * total else natural
