"""The frames of perturbation sequences as an image set, made from the images of another set when they are read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from shiftproof.corruptions.editions import Fit
from shiftproof.corruptions.sequences import Frames, parameters_of, perturb
from shiftproof.errors import BadInput
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.options import whole_number
from shiftproof.image_sets.picture_sizes import edition_for
from shiftproof.image_sets.views import spread_over
from shiftproof.types import Classes, Decoder, Image, ImageSet, ImageSource, Sample

PIXELS = 2
"""Raised whenever a sequence comes out otherwise than before, so that stored answers to the old frames are not used."""


class Recipe(NamedTuple):
    """What makes a sequence out of an image."""

    perturbation: str
    level: int
    edition: str
    seed: int

    @property
    def folder(self) -> str:
        """What the published sets call the folder of these sequences."""
        return self.perturbation if self.level == 1 else f"{self.perturbation}_{self.level}"

    def suffix(self, key: str, frame: int) -> str:
        """What tells one frame from all others that could be made of the same image."""
        return "\0".join(["shiftproof sequence", str(PIXELS), *map(str, self), key, str(frame)])


@dataclass(frozen=True, slots=True)
class FrameImage:
    """One frame; its bytes are those of the image it is made from, and what makes it."""

    source: ImageSource
    recipe: Recipe
    key: str
    frame: int

    def stamp(self) -> str | None:
        stamp = self.source.stamp()
        return None if stamp is None else f"{stamp}\0{self.recipe.suffix(self.key, self.frame)}"

    def read(self) -> bytes:
        return self.source.read() + self._suffix()

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        stored = data.removesuffix(self._suffix())

        def make() -> Frames:
            image = self.source.decode(stored, decoder=decoder)
            recipe = self.recipe
            return perturb(image, recipe.perturbation, recipe.level, seed=recipe.seed, key=self.key, edition=recipe.edition)

        frames = RECENT.get((repr(self.source), stored, self.recipe, self.key, decoder), make)
        return np.array(frames[self.frame])

    def _suffix(self) -> bytes:
        return self.recipe.suffix(self.key, self.frame).encode("utf-8", "surrogateescape")


class Recent:
    """The last few sequences, each made once, whichever thread asks first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, Future[Frames]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Frames]) -> Frames:
        """What `make` makes, or made when it was last asked under this key."""
        with self._lock:
            asked = key in self._kept
            sequence = self._kept.setdefault(key, Future())
            self._kept.move_to_end(key)
            while len(self._kept) > self.most:
                self._kept.popitem(last=False)
        if not asked:
            try:
                sequence.set_result(make())
            except BaseException as problem:
                with self._lock:
                    self._kept.pop(key, None)
                sequence.set_exception(problem)
        return sequence.result()


RECENT = Recent(4)


@dataclass(frozen=True)
class FramesOf:
    """Finds a frame by its id, behind the image it is made from."""

    images: ImageSet
    recipe: Recipe
    samples: Mapping[str, Sample]

    def __call__(self, frame_id: str) -> FrameImage:
        key, _, frame = frame_id.rsplit("/", 2)
        return FrameImage(self.images.source(self.samples[key]), self.recipe, key, int(frame))


@dataclass(frozen=True)
class Sequences(ImageList):
    """The frames of sequences of an edition, and why that one where nobody named it."""

    edition: str | None = None
    fit: Fit | None = None


def perturbed(
    images: ImageSet,
    perturbation: str,
    *,
    level: int = 1,
    edition: str | None = None,
    seed: int = 0,
    limit: int | None = None,
    name: str | None = None,
    fit: Fit | None = None,
) -> Sequences:
    """The frames of a perturbation sequence of every image, or of `limit` images evenly spread over the set.

    Without an `edition` it is that of the `fit`, or the one made for the size of these images.

    A frame's id is that of its image, the folder of the published set and its number, as in ``cat/a.png/tilt/07``. It has
    the labels and facts of its image, and the facts `sequence` (the image's id), `frame`, `perturbation` and `level`.
    """
    if edition is None:
        fit = fit or edition_for(images)
        edition = fit.edition
    else:
        fit = None
    frames = int(parameters_of(perturbation, level, edition)["frames"])
    recipe = Recipe(perturbation, level, edition, seed)
    chosen = {sample.id: sample for sample in spread_over(images.samples, limit)}
    samples = [frame_of(sample, recipe, frame) for sample in chosen.values() for frame in range(frames)]
    notes = (f"{frames} frames of {edition} for each of {len(chosen):,} images",)
    return Sequences(
        name or f"{recipe.folder} of {images.ref.name}",
        samples,
        images.classes,
        FramesOf(images, recipe, chosen),
        location=location_of(images, recipe, limit),
        notes=notes,
        credits=getattr(images, "credits", ()),
        edition=edition,
        fit=fit,
    )


def frame_of(sample: Sample, recipe: Recipe, frame: int) -> Sample:
    """One frame of the sequence made from an image."""
    facts = {
        **sample.facts,
        "sequence": sample.id,
        "frame": frame,
        "perturbation": recipe.perturbation,
        "level": recipe.level,
    }
    # two digits, so that ids sort like frames
    return Sample(f"{sample.id}/{recipe.folder}/{frame:02d}", sample.labels, facts)


def location_of(images: ImageSet, recipe: Recipe, limit: int | None) -> str | None:
    """What opens the frames again, where the images themselves can be opened again."""
    if images.ref.location is None:
        return None
    options = recipe._asdict() | ({} if limit is None else {"limit": limit})
    return f"perturbed:{images.ref.location}?" + "&".join(
        f"{option}={quote(str(value))}" for option, value in options.items()
    )


def open_perturbed(
    location: str,
    *,
    perturbation: str | None = None,
    level: int | str = 1,
    edition: str | None = None,
    seed: int | str = 0,
    limit: int | str | None = None,
    name: str | None = None,
    classes: Classes | None = None,
) -> Sequences:
    """The frames of a perturbation sequence of the images at a location."""
    from shiftproof.image_sets import open_images

    if perturbation is None:
        raise BadInput(f"say which perturbation, as in perturbed:{location}?perturbation=tilt")
    return perturbed(
        open_images(location, classes=classes),
        perturbation,
        level=whole_number("level", level),
        edition=edition,
        seed=whole_number("seed", seed),
        limit=None if limit is None else whole_number("limit", limit),
        name=name,
    )
