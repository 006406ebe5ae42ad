"""The parts of a page, ready for the templates: sections, and in them charts, tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import ClassVar, TypeAlias

from shiftproof.reports.charts import LegendEntry, Spec
from shiftproof.types import DrawnBox


@dataclass(frozen=True)
class Cell:
    """One cell: what it says, and what it is sorted by. A share with its CI is also drawn as a small bar."""

    text: str
    order: float | str = ""
    below: str = ""
    mark: str = ""  # a sign that sets this cell apart from the others of its column
    bar: tuple[float, float, float] | None = None  # low, value, high as shares of the bar


@dataclass(frozen=True)
class Column:
    title: str
    numeric: bool = False
    over: str = ""  # a heading that stands once over all neighbours that share it
    exact: bool = True  # whether what its cells are sorted by is their number; of a CI it is one end alone


@dataclass(frozen=True)
class Table:
    """Rows that sort by any column; long ones can be filtered, and a folded one is opened by a click."""

    kind: ClassVar[str] = "table"
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    folded: bool = False

    @property
    def headings(self) -> list[tuple[str, int]]:
        """What stands over the columns, and over how many; empty where nothing does."""
        over = [(heading, len(list(columns))) for heading, columns in groupby(column.over for column in self.columns)]
        return over if any(heading for heading, _ in over) else []


@dataclass(frozen=True)
class Chart:
    """A chart, and its data as a table; the description in the specification is what a screen reader says."""

    kind: ClassVar[str] = "chart"
    title: str
    spec: Spec
    figures: Table
    note: str = ""
    half: bool = False  # two of these stand side by side where there is room


@dataclass(frozen=True)
class Panel:
    """One of many small drawings on the same axes."""

    title: str
    spec: Spec


@dataclass(frozen=True)
class Panels:
    """Small drawings side by side, under one legend and with one table of their data."""

    kind: ClassVar[str] = "panels"
    title: str
    panels: Sequence[Panel]
    legend: Sequence[LegendEntry]
    figures: Table
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A thumbnail as a ``data:`` address, or the reason why there is none; a page holds equal ones once."""

    id: str
    caption: str
    address: str
    reason: str = ""
    boxes: Sequence[DrawnBox] = ()


@dataclass(frozen=True)
class Pictures:
    """Thumbnails; `abreast` neighbours belong together and stay side by side."""

    kind: ClassVar[str] = "pictures"
    title: str
    pictures: Sequence[Picture]
    note: str = ""
    abreast: int = 1
    whole: bool = False  # shown whole and larger even where no boxes are drawn on them

    @property
    def boxed(self) -> bool:
        """Whether boxes are drawn on any, so that they are shown whole and larger."""
        return self.whole or any(picture.boxes for picture in self.pictures)


@dataclass(frozen=True)
class SheetRow:
    title: str
    pictures: Sequence[Picture | None]  # one for each column; None where there is nothing to show


@dataclass(frozen=True)
class Sheet:
    """A contact sheet of one photo: a row for each corruption, a column for each severity."""

    kind: ClassVar[str] = "sheet"
    title: str
    unchanged: Picture | None
    columns: Sequence[str]
    rows: Sequence[SheetRow]
    note: str = ""


@dataclass(frozen=True)
class Frame:
    """A frame of a video, its offset from the anchor, and whether the prediction is correct."""

    picture: Picture
    offset: int
    correct: bool


@dataclass(frozen=True)
class Filmstrip:
    """Frames in the order of time in one row, which scrolls sideways where there is no room for all."""

    kind: ClassVar[str] = "filmstrip"
    title: str
    frames: Sequence[Frame]
    note: str = ""


@dataclass(frozen=True)
class Prose:
    """Sentences worth reading before the charts, such as a verdict."""

    kind: ClassVar[str] = "prose"
    sentences: Sequence[str]


@dataclass(frozen=True)
class Heading:
    """Which model and dataset the parts below it are about, where there are several."""

    kind: ClassVar[str] = "heading"
    title: str


@dataclass(frozen=True)
class Definitions:
    """Names and their values, one line each."""

    kind: ClassVar[str] = "definitions"
    title: str
    entries: Mapping[str, str | Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Code:
    """Text to be read letter by letter, such as a command."""

    kind: ClassVar[str] = "code"
    title: str
    text: str


@dataclass(frozen=True)
class Folded:
    """Parts for those who want to know more, opened by a click; their charts are drawn then."""

    kind: ClassVar[str] = "folded"
    title: str
    parts: Sequence[Part]
    note: str = ""


@dataclass(frozen=True)
class SideBySide:
    """The same part of each of some models, in columns."""

    kind: ClassVar[str] = "side-by-side"
    models: Sequence[str]
    parts: Sequence[Part]

    @property
    def title(self) -> str:
        """That of the first part there is, without the name of its model."""
        titled = ((getattr(part, "title", ""), model) for part, model in zip(self.parts, self.models, strict=True))
        return next((title.removesuffix(f": {model}") for title, model in titled if title), "")


Part: TypeAlias = (
    Table | Chart | Panels | Pictures | Sheet | Filmstrip | Prose | Heading | Definitions | Code | Folded | SideBySide
)


MOST_NAMED = 7
"""Titles of details that a closed section names."""


@dataclass(frozen=True)
class Section:
    """One study, or one thing worth knowing about it; `key` is its place in the page's address.

    A reader meets its answer and what is `main`; a click opens the rest.
    """

    key: str
    title: str
    lead: str  # what is measured, for those who open it
    details: Sequence[Part]
    main: Sequence[Part] = ()
    answer: Sequence[str] = ()  # a sentence, or one for each of a few models

    @property
    def parts(self) -> list[Part]:
        """Every part, those of several models one by one."""
        found: list[Part] = []
        for part in (*self.main, *self.details):
            found += part.parts if isinstance(part, SideBySide) else [part]
        return found

    @property
    def inside(self) -> str:
        """The titles of what a click opens, or the first of them and how many more."""
        titled = (getattr(part, "title", "") for part in self.details if not isinstance(part, Heading))
        titles = list(dict.fromkeys(filter(None, titled)))
        more = [f"{len(titles) - MOST_NAMED} more"] if len(titles) > MOST_NAMED else []
        return " · ".join([*titles[:MOST_NAMED], *more])
