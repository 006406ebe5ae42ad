"""Published numbers and class lists as small CSV files; the first line of each names its source."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shiftproof.types import Classes


@cache
def load_table(name: str) -> tuple[dict[str, str], ...]:
    """Rows of one published table."""
    text = files(__name__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def source_of(name: str) -> str:
    """Where a table comes from, in a sentence."""
    text = files(__name__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return text.splitlines()[0].lstrip("# ")


@cache
def ilsvrc_classes() -> Classes:
    """The 1000 classes of ILSVRC-2012, each under its first name."""
    from shiftproof.types import Classes  # works are cited without numpy

    rows = load_table("ilsvrc2012_classes")
    return Classes(tuple(row["names"].partition(",")[0] for row in rows), tuple(row["wnid"] for row in rows))


@cache
def ilsvrc_all_names() -> tuple[tuple[str, ...], ...]:
    """Every name of each of the 1000 classes, in order."""
    return tuple(tuple(name.strip() for name in row["names"].split(",")) for row in load_table("ilsvrc2012_classes"))


@cache
def readable_names() -> Mapping[str, str]:
    """A name for every wnid we know one for."""
    outside = {row["wnid"]: row["name"].replace("_", " ") for row in load_table("imagenet_ood_classes")}
    ilsvrc = ilsvrc_classes()
    return outside | dict(zip(ilsvrc.keys, ilsvrc.names, strict=True))


def wnids_of(name: str) -> tuple[str, ...]:
    """The wnids of a published class list, e.g. ``imagenet_a_classes``."""
    return tuple(row["wnid"] for row in load_table(name))
