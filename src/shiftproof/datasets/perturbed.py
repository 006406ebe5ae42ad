"""Perturbation sequences of the images of another dataset, made when they are read; and the edition for its images."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import numpy as np

from shiftproof.corruptions.editions import Fit, fitting_edition
from shiftproof.corruptions.entry import check_kernels
from shiftproof.datasets.boxed.boxes import upright_size
from shiftproof.datasets.image_list import FileImage, ImageList, origin_of, spread_over
from shiftproof.datasets.layout import Example, layout, whole_number
from shiftproof.errors import BadInput, UnreadableImage, listed
from shiftproof.types import Classes, Dataset, Decoder, Image, ImageSource, Sample

if TYPE_CHECKING:
    from shiftproof.corruptions.sequences import Frames

SAMPLED = 15
"""Images whose size is read, spread evenly over the dataset."""


def edition_for(
    images: Dataset | None, preprocessings: Iterable[tuple[str, Mapping[str, object]]] = (), *, picture: str | None = None
) -> Fit:
    """The edition for these images and models, each with its name and preprocessing.

    Models compare only under one edition: the smallest input decides, and the fit says which models would have another
    edition by themselves. `picture` is what is corrupted: by default the edition's crop, so that images and inputs count;
    with ``model-size`` only the inputs count, with ``image`` and ``whole`` only the images.
    """
    known = ((name, input_side(preprocessing)) for name, preprocessing in preprocessings)
    sides = [(name, side) for name, side in known if side is not None and picture not in ("image", "whole")]
    from_pictures = images is not None and not (picture == "model-size" and sides)
    pictures = shorter_side_of(images) if images is not None and from_pictures else None
    fit = fitting_edition(pictures, min(side for _, side in sides) if sides else None)
    return fit._replace(apart=_apart(fit.edition, [(name, fitting_edition(pictures, side).edition) for name, side in sides]))


def _apart(edition: str, alone: Sequence[tuple[str, str]]) -> str | None:
    """The warning where models by themselves have other editions; None where all have this one.

    >>> _apart("cifar-32", [("small", "cifar-32"), ("large", "cifar-32")]) is None
    True
    """
    names: dict[str, list[str]] = {}
    for name, own in alone:
        names.setdefault(own, []).append(name)
    if set(names) <= {edition}:
        return None
    told = "; ".join(f"{own} is for {listed(some)}" for own, some in names.items())
    return (
        f"these models have inputs of different editions: {told}. Numbers compare only under one edition, and all of these "
        f"are of {edition}, which suits the smallest input; name another with --edition"
    )


def shorter_side_of(images: Dataset) -> int | None:
    """The median shorter side of some images, of files by their headers; None where none can be read."""
    sides = [side for sample in spread_over(images.samples, SAMPLED) if (side := _shorter_side(images.source(sample)))]
    return round(float(np.median(sides))) if sides else None


def input_side(preprocessing: Mapping[str, object]) -> int | None:
    """The shorter side of a model's input, by the description of its preprocessing; None where any size will do.

    >>> input_side({"size": "224x320"}), input_side({"size": "any"})
    (224, None)
    """
    sides = str(preprocessing.get("size", "")).split("x")
    return min(map(int, sides)) if all(side.isdecimal() for side in sides) else None


def _shorter_side(source: ImageSource) -> int | None:
    try:
        if isinstance(source, FileImage):
            size = upright_size(source.path)
            return min(size) if size else None
        return int(min(source.decode(source.read()).shape[:2]))
    except (OSError, UnreadableImage):
        return None


PIXELS = 2
"""Version of the pixels: raised when sequences change, so that predictions on the old frames are not used."""


class Recipe(NamedTuple):
    """The parameters of a sequence."""

    perturbation: str
    level: int
    edition: str
    seed: int

    @property
    def folder(self) -> str:
        """The folder of these sequences in ImageNet-P."""
        return self.perturbation if self.level == 1 else f"{self.perturbation}_{self.level}"

    def suffix(self, key: str, frame: int) -> str:
        """What distinguishes a frame from all others that are made from the same image."""
        return "\0".join(["shiftproof sequence", str(PIXELS), *map(str, self), key, str(frame)])


@dataclass(frozen=True, slots=True)
class FrameImage:
    """One frame; its bytes are those of the source image and the recipe."""

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

        from shiftproof.corruptions.sequences import perturb  # only where it is needed: it loads OpenCV

        def make() -> Frames:
            image = self.source.decode(stored, decoder=decoder)
            recipe = self.recipe
            return perturb(image, recipe.perturbation, recipe.level, seed=recipe.seed, key=self.key, edition=recipe.edition)

        frames = RECENT.get((repr(self.source), stored, self.recipe, self.key, decoder), make)
        return np.array(frames[self.frame])

    def _suffix(self) -> bytes:
        return self.recipe.suffix(self.key, self.frame).encode("utf-8", "surrogateescape")


class Recent:
    """A thread-safe cache of the last few sequences; each is made once."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, Future[Frames]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Frames]) -> Frames:
        """The cached sequence of a key, or what `make` returns."""
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
    """Finds a frame by its id, which begins with that of its image."""

    images: Dataset
    recipe: Recipe
    samples: Mapping[str, Sample]

    def __call__(self, frame_id: str) -> FrameImage:
        key, _, frame = frame_id.rsplit("/", 2)
        return FrameImage(self.images.source(self.samples[key]), self.recipe, key, int(frame))


@dataclass(frozen=True)
class PerturbedDataset(ImageList):
    """Frames of perturbation sequences, with their edition and, where it was not named, why it fits."""

    edition: str | None = None
    fit: Fit | None = None


def perturbed(
    images: Dataset,
    perturbation: str,
    *,
    level: int = 1,
    edition: str | None = None,
    seed: int = 0,
    limit: int | None = None,
    name: str | None = None,
    fit: Fit | None = None,
) -> PerturbedDataset:
    """The frames of a perturbation sequence of every image, or of `limit` images evenly spread over the dataset.

    Without an `edition` it is that of the `fit`, or the one made for the size of these images.

    A frame's id is that of its image, the folder of ImageNet-P and its number, as in ``cat/a.png/tilt/07``. It has
    the labels and facts of its image, and the facts `sequence` (the image's id), `frame`, `perturbation` and `level`.
    """
    check_kernels(f"perturbation {perturbation!r}")
    if edition is None:
        fit = fit or edition_for(images)
        edition = fit.edition
    else:
        fit = None
    from shiftproof.corruptions.sequences import parameters_of

    frames = int(parameters_of(perturbation, level, edition)["frames"])
    recipe = Recipe(perturbation, level, edition, seed)
    chosen = {sample.id: sample for sample in spread_over(images.samples, limit)}
    samples = [frame_of(sample, recipe, frame) for sample in chosen.values() for frame in range(frames)]
    notes = (f"{frames} frames of {edition} for each of {len(chosen):,} images",)
    return PerturbedDataset(
        name or f"{recipe.folder} of {images.ref.name}",
        samples,
        images.classes,
        FramesOf(images, recipe, chosen),
        location=location_of(images, recipe, limit),
        notes=notes,
        credits=images.credits,
        origin=origin_of(images),
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


def location_of(images: Dataset, recipe: Recipe, limit: int | None) -> str | None:
    """The location that opens the frames again; None where the images have none."""
    if images.ref.location is None:
        return None
    options = recipe._asdict() | ({} if limit is None else {"limit": limit})
    return f"perturbed:{images.ref.location}?" + "&".join(
        f"{option}={quote(str(value))}" for option, value in options.items()
    )


@layout(
    holds="any other dataset; the frames of a perturbation sequence of each image are the images",
    labels="those of the image",
    example=Example({"cat/a.png": ""}, options={"perturbation": "rotate", "edition": "cifar-32"}),
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
) -> PerturbedDataset:
    """The frames of a perturbation sequence of the images at a location."""
    from shiftproof.datasets import open_dataset

    if perturbation is None:
        raise BadInput(f"say which perturbation, as in perturbed:{location}?perturbation=tilt")
    return perturbed(
        open_dataset(location, classes=classes),
        perturbation,
        level=whole_number("level", level),
        edition=edition,
        seed=whole_number("seed", seed),
        limit=None if limit is None else whole_number("limit", limit),
        name=name,
    )
