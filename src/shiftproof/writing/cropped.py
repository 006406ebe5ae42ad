"""A set of crops as files, one folder a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.types import Image, ImageSet, Output
from shiftproof.writing.destination import Plan
from shiftproof.writing.files import FileStorage
from shiftproof.writing.runs import Progress, Written, write_set

ENDINGS: Mapping[Output, str] = {"raw": ".png", "jpeg85": ".JPEG"}
PARTS_A_JOB = 16  # crops; enough that several wait for the disk together


@dataclass(frozen=True)
class Unchanged:
    """Images as they are."""

    def __len__(self) -> int:
        return 1

    def base(self, image: Image) -> Image:
        return image

    def make(self, base: Image, part: int, *, key: str) -> NDArray[np.uint8]:  # noqa: ARG002 a Product
        return base


def write_crops(
    images: ImageSet,
    folder: str | Path,
    *,
    places: Sequence[str],
    settings: Mapping[str, Any],
    information: Mapping[str, Any],
    output: Output = "raw",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Written:
    """Writes what is missing of the images, each at its place; `settings` say how they were chosen and cut."""
    root = Path(folder)
    plan = Plan({"layout": "crops", "output": output, **settings}, "crops", {"final": {}}, ("final",), information)
    return write_set(
        images,
        Unchanged(),
        lambda scratch: FileStorage(root, scratch, ("",), ENDINGS[output], places),
        root=root,
        plan=plan,
        parts_a_job=PARTS_A_JOB,
        workers=workers,
        progress=progress,
    )
