"""Where models look, on disk: heat maps of chosen images, each made once.

    runs/
      looks/<method>-<key>/       key = model fingerprint (preparation included), method, format
        looks.json                all of that in the open
        <image>.safetensors       the maps of one image, class by class; there whole or not at all

An image is known by its id and the digest of its file, as rows of predictions are.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.chunks import reading, save_chunk
from shiftproof.errors import BadInput, DamagedFile, MissingRuns
from shiftproof.files import check_inside, set_aside, write_whole
from shiftproof.image_sets.class_matching import match_columns
from shiftproof.models.heat_maps import METHODS
from shiftproof.models.looks import HeatMaps
from shiftproof.types import Classes, ModelRef, Run, fingerprint_of

FORMAT = 1

AskedLooks: TypeAlias = Mapping[str, Sequence[int]]
"""Classes to look for in each image, by its id: columns of the model's scores."""


@dataclass(frozen=True)
class LookedAt:
    """Where a model looks in one image for some classes."""

    classes: tuple[int, ...]  # columns of the model's scores
    maps: HeatMaps  # (classes, rows, columns)
    size: tuple[int, int]  # height and width of the image
    window: tuple[float, float, float, float]  # what the maps cover, in its pixels: left, top, right, bottom

    def of_classes(self, classes: Sequence[int]) -> LookedAt:
        """The same for some of the classes, in this order."""
        places = [self.classes.index(one) for one in classes]
        return dataclasses.replace(self, classes=tuple(classes), maps=self.maps[places])


@dataclass(frozen=True)
class Looks:
    """Where a model looks in some images, and how that was found out."""

    method: str
    of: Mapping[str, LookedAt]  # by image id


def load_looks(
    run: Run, asked: AskedLooks, *, root: Path, digests: Mapping[str, str | None], method: str | None = None
) -> Looks:
    """The stored maps, for each image those of its classes in this order; MissingRuns where some were never made.

    Without a method it is the first that has them all.
    """
    most = 0
    for name in METHODS if method is None else [method]:
        folder = LooksFolder(root, run.model, name)
        stored = {key: folder.load(key, digests.get(key) or "") for key in asked}
        found = {
            key: one.of_classes(asked[key])
            for key, one in stored.items()
            if one is not None and set(asked[key]) <= set(one.classes)
        }
        if len(found) == len(asked):
            return Looks(name, found)
        most = max(most, len(found))
    place = run.image_set.location or run.image_set.name
    command = shlex.join(["shiftproof", "run", run.model.name, place, "--studies", "heat-maps", "--store", str(root)])
    raise MissingRuns(
        f"{run.model.name} on {run.image_set.name}: {len(asked) - most} of {len(asked)} images have no heat maps yet",
        call=f'shiftproof.prediction.fill_studies(model, [study], [images], store=Store("{root}"))',
        command=f"{command}, with the same options",
    )


def to_columns(asked: AskedLooks, classes: Classes | None, of_model: Classes | None) -> AskedLooks:
    """Places in the classes that answers were scored among as columns of the model's scores.

    >>> to_columns({"a.png": [1]}, Classes(("dog", "eel")), Classes(("cat", "dog", "eel")))
    {'a.png': [2]}
    """
    if classes is None or of_model is None or classes == of_model:
        return asked
    columns = match_columns(classes, of_model, len(of_model)).columns
    if any(columns[place] < 0 for places in asked.values() for place in places):
        raise BadInput("heat maps are of classes of the model, one at a time; leave out --merge")
    return {key: [columns[place] for place in places] for key, places in asked.items()}


class LooksFolder:
    """The maps of one model by one method."""

    def __init__(self, root: Path, model: ModelRef, method: str) -> None:
        self.method = method
        self._model = model
        self._folder = root / "looks" / f"{method}-{fingerprint_of(model.fingerprint, method, FORMAT)[:16]}"

    def classes_of(self, image_id: str, digest: str) -> set[int]:
        """The classes that were looked for in an image already."""
        found = self.load(image_id, digest)
        return set() if found is None else set(found.classes)

    def load(self, image_id: str, digest: str) -> LookedAt | None:
        """The maps of an image; None where there are none, or they are damaged and were set aside."""
        path = self._path(image_id, digest)
        check_inside(path.parent, path.parents[2])
        try:
            with reading(path) as file:
                about = file.json(file.text("about"), dict)
                size, window = (_numbers(about.get(name), count) for name, count in (("size", 2), ("window", 4)))
                classes, maps = file.array("classes"), file.array("maps")
                if size is None or window is None or classes.ndim != 1 or maps.ndim != 3 or len(maps) != len(classes):
                    raise file.damaged(f"maps of {maps.shape} for classes of {classes.shape}")
        except FileNotFoundError:
            return None
        except DamagedFile as damaged:
            set_aside(path, damaged.reason, "run with --studies heat-maps makes the maps of this image anew")
            return None
        return LookedAt(
            tuple(classes.tolist()), maps, (int(size[0]), int(size[1])), (window[0], window[1], window[2], window[3])
        )

    def save(self, image_id: str, digest: str, looked_at: LookedAt) -> None:
        """Adds the maps of an image to those of other classes that are there."""
        if not (self._folder / "looks.json").exists():
            told = {"format": FORMAT, "model": dataclasses.asdict(self._model), "method": self.method}
            write_whole(self._folder / "looks.json", json.dumps(told, indent=1).encode(), inside=self._folder.parents[1])
        before = self.load(image_id, digest)
        parts = [looked_at] if before is None else [before, looked_at]
        maps = {number: one for part in parts for number, one in zip(part.classes, part.maps, strict=True)}
        arrays: dict[str, NDArray[Any]] = {
            "classes": np.array(list(maps), np.int64),
            "maps": np.stack(list(maps.values())).astype(np.float32),
        }
        about = {"id": image_id, "digest": digest, "size": looked_at.size, "window": looked_at.window}
        save_chunk(self._path(image_id, digest), arrays, {"about": json.dumps(about)})

    def _path(self, image_id: str, digest: str) -> Path:
        return self._folder / f"{fingerprint_of(image_id, digest)}.safetensors"


def _numbers(value: object, count: int) -> list[float] | None:
    """So many numbers, or None where it is something else."""
    fits = isinstance(value, list) and len(value) == count and all(type(one) in (int, float) for one in value)
    return value if fits and isinstance(value, list) else None
