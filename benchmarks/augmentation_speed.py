"""Augmentations of one picture beside torchvision's, timm's and albumentations': one thread, CPU time, 32 and 224 pixels.

    python benchmarks/augmentation_speed.py [--rounds N] [--names augmix,cutout] [--json FIGURES.json]

Rates are images per CPU second. Every round times each implementation once, in a changing order; ours runs twice a round,
and the ratio of those two is the A/A control. All draw from one generator; what a generator for each picture costs, as in
training, is told apart. Peers are given what they like best: Pillow images for torchvision and timm, arrays for
albumentations. First uses (compilation, tables, fractals) are excluded. Peers that are not installed are named.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image as Pillow

from harness import AGAIN, Contestant, cpu_race
from shiftproof import catalog
from shiftproof.models.options import parse_preprocessing
from shiftproof.randomness import rng_for
from shiftproof.training.augmentations.pixmix import fractal
from shiftproof.training.recipe import chosen_recipes, recipe_of
from shiftproof.types import Image

SIDES = (32, 224)
PEERS = ("torchvision.transforms", "timm.data.auto_augment", "albumentations")
AT_LEAST = 0.1  # seconds of a timing, about
WARMING = 20  # calls


def photo(side: int, seed: int = 0) -> Image:
    """Blotches of all sizes, as in a photo, with a little noise."""
    rng = np.random.default_rng(seed)
    image = np.full((side, side, 3), 128.0)
    for sigma in (side / 100, side / 28, side / 7):
        image += 30 * sigma * cv2.GaussianBlur(rng.standard_normal(image.shape), (0, 0), sigma)
    return np.clip(image + rng.normal(0, 3, image.shape), 0, 255).astype(np.uint8)


def installed() -> dict[str, Any]:
    """The peers that can be imported, by the first part of their names."""
    warnings.simplefilter("ignore")
    found = {}
    for name in PEERS:
        try:
            found[name.partition(".")[0]] = importlib.import_module(name)
        except (ImportError, RuntimeError) as missing:
            print(f"{name.partition('.')[0]} takes no part: {missing}")
    return found


def rivals(name: str, side: int, peers: dict[str, Any]) -> Iterator[tuple[str, Callable[[], object]]]:
    """The same augmentation by others, each ready to be called."""
    picture, other = photo(side), photo(side, 1)
    image = Pillow.fromarray(picture)
    if tv := peers.get("torchvision"):
        crop = tv.RandomCrop(side, padding=side // 8) if side <= 64 else tv.RandomResizedCrop(side)
        made = {
            "baseline": lambda: tv.Compose([crop, tv.RandomHorizontalFlip()]),
            "augmix": lambda: tv.AugMix(severity=3, all_ops=False),
            "randaugment": tv.RandAugment,
            "trivialaugment": tv.TrivialAugmentWide,
        }
        if name in made:
            yield "torchvision", _called(made[name](), image)
    if timm := peers.get("timm"):
        parameters = {"translate_const": side // 3, "img_mean": (124, 116, 104)}
        if name == "augmix":
            yield "timm", _called(timm.augment_and_mix_transform("augmix-m3-w3", parameters), image)
            yield "timm, blended", _called(timm.augment_and_mix_transform("augmix-m3-w3-b1", parameters), image)
        if name == "randaugment":
            yield "timm", _called(timm.rand_augment_transform("rand-m9-n2", parameters), image)
    if al := peers.get("albumentations"):
        padded, resized = [al.Pad(side // 8), al.RandomCrop(side, side)], [al.RandomResizedCrop((side, side))]
        made = {
            "baseline": lambda: al.Compose([*(padded if side <= 64 else resized), al.HorizontalFlip()]),
            "cutout": lambda: al.CoarseDropout((1, 1), (0.5, 0.5), (0.5, 0.5), p=1),
            "noise": lambda: al.GaussNoise((0.025, 0.4), p=0.5),
            "stylized": lambda: partial(al.FDA(beta_limit=(0.5, 0.5), metadata_key="others", p=0.5), others=[other]),
            "clahe": lambda: al.CLAHE((2, 2), p=1),
        }
        if name in made:
            transform = made[name]()
            yield "albumentations", lambda: transform(image=picture)


def _called(transform: Callable[[Any], object], image: Pillow.Image) -> Callable[[], object]:
    return lambda: transform(image)


def ours(name: str, side: int) -> Callable[[], object] | None:
    """The augmentation, or the preprocessing, of a recipe; None where it has neither."""
    (chosen,) = chosen_recipes(name)
    picture, others, rng = photo(side), (photo(side, 1),), np.random.default_rng(0)
    if name == "pixmix":
        for number in range(int(chosen.settings["fractals"])):
            fractal(number)
    change = chosen.recipe.augment or chosen.recipe.crop
    if change is not None:
        return lambda: change(picture, rng, others, **chosen.settings)
    if chosen.recipe.preprocess is not None:
        kept = chosen.recipe.preprocess(parse_preprocessing("bytes,size=any,dtype=uint8,layout=nhwc"), **chosen.settings)
        return lambda: kept.from_picture(picture)
    return None


def repeated(call: Callable[[], object], times: int) -> Contestant:
    def work() -> None:
        for _ in range(times):
            call()

    return Contestant(work, times)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of augmentations beside other libraries'.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--names", default=",".join(name for name in catalog.RECIPES.built_in if _of_a_picture(name)))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    peers, figures, keys = installed(), {}, itertools.count()
    cpu_race({"a generator of its own": _timed(lambda: rng_for(str(next(keys)), "augmix"))}, "image", rounds=options.rounds)
    for name, side in itertools.product(options.names.split(","), SIDES):
        own = ours(name, side)
        if own is None:
            continue
        contestants = {"ours": own, **dict(rivals(name, side, peers))}
        print(f"\n{name}, {side} x {side}")
        multiples = cpu_race({who: _timed(call) for who, call in contestants.items()}, "image", rounds=options.rounds)
        figures[f"{name}/{side}"] = multiples
    slower = {
        f"{where} beside {who}": 1 / multiple
        for where, multiples in figures.items()
        for who, multiple in multiples.items()
        if multiple < 1 and who not in ("ours", AGAIN.format("ours"))
    }
    print("\nnone is slower than a peer" if not slower else f"\nslower than a peer: {slower}")
    if options.json:
        options.json.write_text(json.dumps({"augmentation_speed": figures}, indent=1) + "\n")


def _of_a_picture(name: str) -> bool:
    recipe = recipe_of(name)
    return bool(recipe.augment or recipe.crop or recipe.preprocess)


def _timed(call: Callable[[], object]) -> Contestant:
    """As many calls as fill the least time, after some that are not timed."""
    for _ in range(WARMING):
        call()
    started = time.process_time()
    for _ in range(WARMING):
        call()
    spent = max(time.process_time() - started, 1e-6)
    return repeated(call, max(WARMING, int(WARMING * AT_LEAST / spent)))


if __name__ == "__main__":
    main()
