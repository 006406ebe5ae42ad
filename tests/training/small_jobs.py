"""Small trainings that several tests run: pictures of three colours under noise, networks of a few layers."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pillow

from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.options import ModelSettings
from shiftproof.training.job import Job
from shiftproof.training.options import TrainOptions
from shiftproof.training.recipe import ChosenRecipe, Recipe, chosen_recipes
from shiftproof.types import Classes, Dataset, Image, Sample
from toys import COLOURS

NETWORKS = '''
import torch
from torch import nn

class Pooled(nn.Module):
    """Two convolutions without a batch norm, and a linear layer over four classes."""

    def __init__(self, norm=False, drop=0.0):
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6) if norm else nn.Identity()
        self.second = nn.Conv2d(6, 8, 3, stride=2, padding=1)
        self.drop = nn.Dropout(drop)
        self.last = nn.Linear(8, 4)

    def forward(self, images):
        values = torch.relu(self.second(torch.relu(self.norm(self.first(images)))))
        return self.last(self.drop(values.mean(dim=(2, 3))))

def plain():
    torch.manual_seed(5)
    return Pooled()

def normed():
    torch.manual_seed(5)
    return Pooled(norm=True, drop=0.3)

def slow():
    network = normed()
    network.norm.momentum = 0.001
    return network
'''


def noisy_colours(folder: Path, each: int, seed: int = 0, side: int = 12) -> ImageList:
    """Pictures of each colour, hard to see under noise."""
    samples = []
    for label, (name, files) in enumerate(zip(COLOURS, _files_of_noisy_colours(each, seed, side), strict=True)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number, file in enumerate(files):
            (folder / name / f"{number:03}.png").write_bytes(file)
            samples.append(Sample(f"{name}/{number:03}.png", (label,)))
    return ImageList(folder.name, samples, Classes(tuple(COLOURS)), FilesBelow(str(folder)), str(folder))


@cache
def _files_of_noisy_colours(each: int, seed: int, side: int) -> list[list[bytes]]:
    """The files by colour, compressed once a process."""
    rng = np.random.default_rng(seed)
    noise = (
        (rng.integers(0, 200, (side, side, 3)) + 0.2 * np.array(colour) for _ in range(each)) for colour in COLOURS.values()
    )
    return [[_png(pixels.clip(0, 255).astype(np.uint8)) for pixels in pictures] for pictures in noise]


def _png(pixels: Image) -> bytes:
    file = BytesIO()
    Pillow.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def shaken(image: Any, rng: np.random.Generator, others: Any, **_: Any) -> Any:
    """A picture mirrored at random, with some of another."""
    other = others[int(rng.integers(len(others)))]
    mixed = 0.9 * image + 0.1 * other
    return np.asarray(mixed[:, ::-1] if rng.random() < 0.5 else mixed, np.uint8)


SHAKEN = ChosenRecipe("shaken", Recipe("Shaken", "Mirrors and mixes.", augment=shaken), {})


class SmallJobs:
    """Makes jobs on the same pictures, each with an output folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.training, self.validation = noisy_colours(folder / "training", 8), noisy_colours(folder / "validation", 6, 1)
        self.networks = folder / "networks.py"
        self.networks.write_text(NETWORKS)
        self.jobs = 0

    def __call__(
        self,
        recipe: str | tuple[ChosenRecipe, ...] = "baseline",
        *,
        network: str = "plain",
        seed: int = 0,
        outliers: Dataset | None = None,
        training: Dataset | None = None,
        folder: Path | None = None,
        model: str | None = None,
        preprocess: str | None = "squash,size=12",
        **options: Any,
    ) -> Job:
        self.jobs += 1
        said: dict[str, Any] = {"epochs": 3, "batch_size": 5, "learning_rate": 0.1} | options
        recipes = chosen_recipes(recipe) if isinstance(recipe, str) else recipe
        return Job(
            model=model or f"torch:{self.networks}:{network}",
            model_options=ModelSettings(preprocess=preprocess),
            recipes=recipes,
            level="network",
            training=training or self.training,
            validation=self.validation,
            outliers=outliers,
            classes=Classes(tuple(COLOURS)),
            options=TrainOptions(level="network", **said),
            seed=seed,
            folder=folder or self.folder / f"out-{self.jobs}",
            source=network,
            dataset=self.training.ref,
            digest="",
        )
