"""Layouts: how datasets lie on disk. An entry of `catalog.DATASETS` is the function that opens one, with all about it.

Recognition asks every layout of the catalog, those of plug-ins too, and knows none by name.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from glob import has_magic
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar

from shiftproof.catalog import DATASETS
from shiftproof.datasets.listing import inner_root, is_image_name, visible_entries
from shiftproof.datasets.records import WrittenLayout, load_record
from shiftproof.errors import BadInput, UnknownName
from shiftproof.places import is_file, is_folder

if TYPE_CHECKING:
    from shiftproof.datasets.image_list import ImageList

Parameters = ParamSpec("Parameters")
Opened = TypeVar("Opened", bound="ImageList", covariant=True)

COMPRESSED = (".zip", ".tgz", ".gz", ".7z", ".rar", ".zst", ".bz2", ".xz")


class Example(NamedTuple):
    """A small dataset in a layout, which the contract tests write and open.

    Text by the path of its file. An image or a video needs none, an ``.npy`` file its shape, as in ``10 4 5 3``, and a
    ``.parquet`` file the labels of its images.
    """

    files: Mapping[str, str]
    opened: str = ""  # the location below the folder of the files; an archive that is not among them holds them all
    options: Mapping[str, Any] = {}


NO_EXAMPLE = Example({})


@dataclass(frozen=True)
class Published:
    """What a whole copy of a published dataset holds; None where no count is known."""

    name: str  # as studies and models know it
    title: str
    images: int | None = None
    classes: int | None = None
    per_class: int | None = None  # images of each class, where all have as many
    class_list: str | None = None  # the reference table of its wnids
    file_start: str = ""  # how its file names begin
    per_condition: int | None = None  # images under each corruption at each severity, or sequences of each perturbation
    labelled: bool = True  # False: its folders are no labels


@dataclass(frozen=True)
class Folder:
    """A folder as recognition sees it, listed once."""

    location: str  # as it was given
    root: str  # the folder that holds the dataset: one that contains nothing but another folder is stepped into
    folders: tuple[str, ...]
    files: tuple[str, ...]

    @classmethod
    def at(cls, location: str) -> Folder:
        root = inner_root(location)
        folders, files = visible_entries(root)
        return cls(location, root, tuple(folders), tuple(files))

    def has_file(self, *steps: str) -> bool:
        """Whether there is a file of this path below the root."""
        return is_file(os.path.join(self.root, *steps))

    @property
    def holds_only_files(self) -> bool:
        """Whether there are neither folders nor images."""
        return not self.folders and not any(map(is_image_name, self.files))


@dataclass(frozen=True)
class Layout(Generic[Parameters, Opened]):
    """A layout of datasets, called as the function that opens it."""

    open: Callable[Parameters, Opened]
    holds: str = ""  # what lies at the location, for the table of docs/datasets.md
    labels: str = ""  # where the labels come from, for the same
    endings: tuple[str, ...] = ()  # of single files in this layout
    recognise: Callable[[Folder], bool] | None = None  # whether a folder is in this layout; None: it has to be named
    is_fallback: bool = False  # whether any folder that no other layout recognises is in this one
    has_patterns: bool = False  # whether a location may stand for several files, as val-{000..006}.tar does
    written: tuple[WrittenLayout, ...] = ()  # what shiftproof wrote and this one reads, as `records` name it
    published: tuple[Published, ...] = ()  # published datasets that come in it
    example: Example = NO_EXAMPLE
    passes_to: Callable[..., object] | None = field(default=None, repr=False)  # whose options it takes beside its own

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.open.__doc__)

    def __call__(self, *args: Parameters.args, **options: Parameters.kwargs) -> Opened:
        return self.open(*args, **options)

    @cached_property
    def options(self) -> frozenset[str]:
        """What can be said beside the location."""
        functions = [self.open, *([self.passes_to] if self.passes_to else [])]
        parameters = [each for function in functions for each in inspect.signature(function).parameters.values()]
        return frozenset(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)


def layout(**about: Any) -> Callable[[Callable[Parameters, Opened]], Layout[Parameters, Opened]]:
    """Makes a layout of the function below it; the arguments are the fields of `Layout`."""
    return lambda opener: Layout(opener, **about)


def load_layout(name: str) -> Layout[..., ImageList]:
    """A layout of the catalog; a plug-in may also give the bare function, and is then opened by name alone."""
    return _as_layout(DATASETS.load(name))


def _as_layout(entry: Any) -> Layout[..., ImageList]:
    return entry if isinstance(entry, Layout) else Layout(entry)


def layouts() -> Iterator[tuple[str, Layout[..., ImageList]]]:
    """Every layout by name, in the order in which recognition asks them."""
    return DATASETS.loaded(_as_layout)


def published_dataset(name: str) -> Published:
    """What a whole copy of a published dataset holds."""
    known = {published.name: published for _, entry in layouts() for published in entry.published}
    if name not in known:
        raise UnknownName("published dataset", name, known)
    return known[name]


def recognise(location: str) -> str:
    """The name of the layout at a location, by names of files alone; BadInput where there is none."""
    if is_folder(location):
        return _folder_layout(location)
    if is_file(location):
        return _file_layout(location)
    if has_magic(location) or re.search(r"\{.*\}", location):
        for name, entry in layouts():
            if entry.has_patterns and location.endswith(entry.endings):
                return name
    raise BadInput(f"no such file or folder: {location}")


def _file_layout(location: str) -> str:
    lower = location.lower()
    if lower.endswith(COMPRESSED):
        raise BadInput(f"{location} is compressed; unpack it and name the folder (plain .tar files are read as they are)")
    for name, entry in layouts():
        if lower.endswith(entry.endings):
            return name
    if is_image_name(os.path.basename(location)):
        raise BadInput(f"{location} is one image; name the folder it lies in")
    endings = ", ".join(ending for _, entry in layouts() for ending in entry.endings)
    raise BadInput(f"{location} is no dataset: expected a folder, or a file that ends in one of {endings}")


def _folder_layout(location: str) -> str:
    folder = Folder.at(location)
    record = load_record(folder.root)
    fallback = None
    for name, entry in layouts():
        if entry.is_fallback:
            fallback = fallback or name
        elif record is not None:
            if record["layout"] in entry.written:
                return name
        elif entry.recognise is not None and entry.recognise(folder):
            return name
    if fallback is None:
        raise BadInput(f"{location} is in no layout that is known")
    return fallback


def whole_number(option: str, value: int | str, *, least: int | None = None) -> int:
    """The number that an option names, which in a location is text; BadInput where it is none, or too small.

    >>> whole_number("seed", "7")
    7
    """
    try:
        number = int(value)
    except ValueError as problem:
        raise BadInput(f"{option} should be a whole number, got {value!r}") from problem
    if least is not None and number < least:
        raise BadInput(f"{option} should be at least {least}, got {number}")
    return number


def number(option: str, value: float | str) -> float:
    """The number, whole or not, that an option names.

    >>> number("padding", "0.1")
    0.1
    """
    try:
        return float(value)
    except ValueError as problem:
        raise BadInput(f"{option} should be a number, got {value!r}") from problem


def yes_or_no(option: str, value: bool | str) -> bool:
    """The truth value that an option names.

    >>> yes_or_no("square", "True"), yes_or_no("square", "no")
    (True, False)
    """
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in known:
        raise BadInput(f"{option} should be true or false, got {value!r}")
    return known[str(value).lower()]
