"""YouTube-BoundingBoxes: a table of boxes, and frames extracted from its videos."""

from __future__ import annotations

import csv
import os
import string
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from shiftproof.datasets.boxed.boxes import BoxedImage, Object, boxed_list, cornered_box, keys_of, numbers_from, upright_size
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.labels import places_of
from shiftproof.datasets.layout import Example, layout
from shiftproof.datasets.listing import folder_name, list_images
from shiftproof.errors import BadInput, listed
from shiftproof.places import absolute, as_path, local_file
from shiftproof.types import Classes, Fact

COLUMNS = (
    "youtube_id", "timestamp_ms", "class_id", "class_name", "object_id", "object_presence", "xmin", "xmax", "ymin", "ymax"
)  # fmt: skip
FRAME = "{youtube_id}/{timestamp_ms}.jpg"
"""Default path of a frame; the published dataset has no frames, only the names of videos."""

PRESENT = "present"


@layout(
    holds="frames of videos, and a table of YouTube-BoundingBoxes",
    labels="the classes of the objects present",
    example=Example(
        {"AAA/1000.jpg": "", "boxes.csv": "AAA,1000,7,cat,0,present,0.25,0.5,0.5,1.0\n"}, options={"table": "boxes.csv"}
    ),
)
def open_youtube_bb(
    location: str,
    *,
    table: str | Path | None = None,
    frame: str = FRAME,
    name: str | None = None,
    classes: Classes | None = None,
) -> ImageList:
    """The frames in a folder that are in a detection table of YouTube-BoundingBoxes, with the objects present in them.

    `frame` is the pattern of their paths, made of the table's columns. The facts are `sequence`, which is the video, and
    `timestamp_ms`.
    """
    if table is None:
        raise BadInput(f"say which table, as in youtube-bb:{location}?table=yt_bb_detection_validation.csv")
    _check_pattern(frame)
    root = absolute(location)
    there = set(list_images(root).ids())
    rows: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    names: dict[str, str] = {}
    missing: set[str] = set()
    for row in _rows(as_path(table)):
        names[row["class_id"]] = row["class_name"]
        image_id = frame.format(**row)
        if image_id in there:
            rows[image_id].append(row)
        else:
            missing.add(image_id)
    if not rows:
        raise BadInput(
            f"none of the {len(missing):,} frames of {table} is below {location}, such as {min(missing, default='')}"
        )
    boxed = [_boxed(image_id, own, upright_size(os.path.join(root, image_id)), table) for image_id, own in rows.items()]
    notes = (f"{len(missing):,} frames of the table are not there: {listed(sorted(missing), most=3)}",) if missing else ()
    ordered = Classes(tuple(dict.fromkeys(names[key] for key in sorted(names, key=lambda key: (len(key), key)))))
    found, places = places_of(keys_of(boxed), classes or ordered)
    own_name = name or folder_name(location)
    return boxed_list(boxed, FilesBelow(root), name=own_name, classes=found, places=places, notes=notes)


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    """The rows of the table, which may have a heading or none."""
    try:
        with Path(local_file(str(path))).open(encoding="utf-8-sig", newline="") as file:
            for number, cells in enumerate(csv.reader(file), 1):
                if len(cells) != len(COLUMNS):
                    raise BadInput(f"{path}, row {number}: expected the {len(COLUMNS)} columns {', '.join(COLUMNS)}")
                if number > 1 or cells[0] != COLUMNS[0]:
                    yield dict(zip(COLUMNS, cells, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise BadInput(f"{path} cannot be read as a table: {problem}") from problem


def _boxed(image_id: str, rows: list[Mapping[str, str]], size: tuple[int, int] | None, table: str | Path) -> BoxedImage:
    """A frame with its objects; corners are shares of the frame, so one that cannot be read has none."""
    first = rows[0]
    time = first["timestamp_ms"]
    facts: dict[str, Fact] = {
        "sequence": first["youtube_id"],
        "timestamp_ms": int(time) if time.isdecimal() and len(time) < 19 else time,
    }
    present = [row for row in rows if row["object_presence"] == PRESENT] if size else []
    try:
        objects = [_object(row, size or (0, 0), f"{table}, {image_id}") for row in present]
    except BadInput as problem:
        return BoxedImage(image_id, size=size, facts=facts, broken=str(problem))
    return BoxedImage(image_id, objects, size, facts)


def _object(row: Mapping[str, str], size: tuple[int, int], where: str) -> Object:
    left, right, top, bottom = numbers_from([row[side] for side in ("xmin", "xmax", "ymin", "ymax")], where)
    cornered_box((left, top, right, bottom), where)
    width, height = size
    return Object(row["class_name"], (left * width, top * height, right * width, bottom * height))


def _check_pattern(frame: str) -> None:
    try:
        used = {field for _, field, _, _ in string.Formatter().parse(frame) if field is not None}
    except ValueError as problem:
        raise BadInput(f"frame should be a pattern such as {FRAME}, got {frame!r}") from problem
    if not used or not used <= set(COLUMNS):
        raise BadInput(f"frame should be a pattern such as {FRAME} of the columns {', '.join(COLUMNS[:5])}, got {frame!r}")
