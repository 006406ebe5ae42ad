"""Augmented copies of a dataset's images, as images of a dataset: they are predicted, stored and resumed as any others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shiftproof.datasets.image_list import ImageList
from shiftproof.randomness import rng_for
from shiftproof.training.recipe import ChosenRecipe, recipe_of
from shiftproof.types import Condition, Dataset, Decoder, Image, ImageSource, Preprocessing, Sample

AS_INPUT = Condition("clean", picture="whole")
"""The condition of augmented pictures: they are cut to the model's input already."""

PIXELS = 1
"""Version of the pixels: raised when augmentations change, so that features of the old copies are not used."""

OTHERS = 4
"""Other pictures that an augmentation may mix in, drawn for each copy."""


@dataclass(frozen=True)
class OtherPictures:
    """Pictures that are opened when they are asked for."""

    sources: tuple[ImageSource, ...]
    preprocessing: Preprocessing

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, place: int) -> Image:
        source = self.sources[place]
        return self.preprocessing.cut(source.decode(source.read(), decoder=self.preprocessing.decoder))


@dataclass(frozen=True)
class AugmentedImage:
    """One augmented copy, cut to the model's input; its bytes are those of the source image and how it is changed."""

    source: ImageSource
    key: str  # the source image's id
    recipes: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]  # names, each with its settings
    copy: int
    seed: int
    others: tuple[tuple[str, ImageSource], ...]  # by id
    preprocessing: Preprocessing

    def stamp(self) -> str | None:
        stamp = self.source.stamp()
        return None if stamp is None else f"{stamp}\0{self._suffix()}"

    def read(self) -> bytes:
        return self.source.read() + self._suffix().encode("utf-8", "surrogateescape")

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        stored = data.removesuffix(self._suffix().encode("utf-8", "surrogateescape"))
        picture = self.preprocessing.cut(self.source.decode(stored, decoder=decoder))
        others = OtherPictures(tuple(source for _, source in self.others), self.preprocessing)
        known = [(name, recipe_of(name), dict(settings)) for name, settings in self.recipes]
        changes = [(name, one.crop, settings) for name, one, settings in known]
        changes += [(name, one.augment, settings) for name, one, settings in known]
        for name, change, settings in changes:
            if change is not None:
                picture = change(picture, rng_for(self.key, f"{name} {self.copy}", self.seed), others, **settings)
        return picture

    def _suffix(self) -> str:
        others = [key for key, _ in self.others]
        parts = (PIXELS, *self.recipes, self.key, self.copy, self.seed, *others, self.preprocessing.describe())
        return "\0".join(["shiftproof augmented copy", *map(str, parts)])


@dataclass(frozen=True)
class CopiesOf:
    """Finds a copy by its id, which begins with that of its image."""

    images: Dataset
    samples: Mapping[str, Sample]
    recipes: tuple[ChosenRecipe, ...]
    seed: int
    preprocessing: Preprocessing

    def __call__(self, copy_id: str) -> AugmentedImage:
        key, _, copy = copy_id.rsplit("/", 2)
        return AugmentedImage(
            self.images.source(self.samples[key]),
            key,
            tuple((one.name, tuple(one.settings.items())) for one in self.recipes),
            int(copy),
            self.seed,
            tuple(self._others(key, copy)),
            self.preprocessing,
        )

    def _others(self, key: str, copy: str) -> Sequence[tuple[str, ImageSource]]:
        if not any(one.recipe.mixes for one in self.recipes):  # so that copies stay the same when images are added
            return []
        samples = self.images.samples
        places = rng_for(key, f"others {copy}", self.seed).integers(len(samples), size=OTHERS)
        return [(samples[place].id, self.images.source(samples[place])) for place in places]


def augmented(
    images: Dataset, recipes: Sequence[ChosenRecipe], preprocessing: Preprocessing, *, copies: int, seed: int
) -> ImageList:
    """Copies of every image as recipes change them; their ids are that of the image, the seed and the copy's number."""
    called = "+".join(one.name for one in recipes)
    samples = [
        Sample(f"{sample.id}/{called}-{seed}/{copy:04d}", sample.labels, sample.facts)
        for sample in images.samples
        for copy in range(copies)
    ]
    by_id = {sample.id: sample for sample in images.samples}
    return ImageList(
        f"{called} of {images.ref.name}",
        samples,
        images.classes,
        CopiesOf(images, by_id, tuple(recipes), seed, preprocessing),
    )
