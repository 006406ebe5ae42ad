"""Packs the accuracies of public models under natural shifts for the package, each model with its training family.

The sources are tables of pytorch-image-models (`results/results-imagenet*.csv`, joined by model and input size) and of
OpenCLIP (`docs/openclip_results.csv`), as CSV files with the columns named below.

    python tools/make_shift_tables.py timm_imagenet_shifts.csv open_clip_zero_shot_shifts.csv src/shiftproof/reference
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

TIMM_SOURCE = (
    "accuracy in percent of timm models on ImageNet, ReaL, V2 (matched frequency), Sketch, A and R, on A and R among their "
    "200 classes (pytorch-image-models, results tables, Apache-2.0); training families by the names of weights"
)
CLIP_SOURCE = (
    "zero-shot accuracy in percent of OpenCLIP models on ImageNet, V2, Sketch, A and R, on A and R among their 200 classes "
    "(OpenCLIP, results table, MIT)"
)
TIMM_COLUMNS = ("imagenet", "real", "v2", "sketch", "a", "r")
CLIP_COLUMNS = {
    "imagenet": "imagenet_1k",
    "v2": "imagenet_v2",
    "sketch": "imagenet_sketch",
    "a": "imagenet_a",
    "r": "imagenet_r",
}
FAMILIES = {
    # targets from CLIP or training on captioned images, whatever images the weights were pre-trained on
    "image-text (fine-tuned)": r"clip|laion|openai|webli|m30m|m38m|^eva|^beitv2|^beit3",
    "web images": r"jft|ig1b|yfcc|swag|seer",
    # SSLD labels images of ImageNet-22k by a teacher; the teacher of BiT's distilled ResNet-50 learned from ImageNet-21k
    "ImageNet-21k": r"in12k|in21k|in22k|ssld|goog_distilled",
    # flexivit learns from a teacher's outputs too
    "ImageNet-1k (distilled)": r"dist|usi_|^flexivit",
    "ImageNet-1k": r"",
}
"""Training families by what the names of weights contain; the first that fits counts."""
ZERO_SHOT = "image-text (zero-shot)"


def family_of(model: str) -> str:
    """What a model learned from.

    >>> family_of("resnet50.a1_in1k"), family_of("resnext101_32x8d.fb_swsl_ig1b_ft_in1k")
    ('ImageNet-1k', 'web images')
    >>> family_of("vit_base_patch16_clip_224.laion2b_ft_in12k_in1k"), family_of("vit_base_patch16_224.augreg_in21k_ft_in1k")
    ('image-text (fine-tuned)', 'ImageNet-21k')
    """
    return next(family for family, pattern in FAMILIES.items() if re.search(pattern, model))


def timm_rows(source: Path) -> Iterable[Mapping[str, str]]:
    """Every model at every input size that has all numbers."""
    for row in _read(source):
        if all(row[column] for column in TIMM_COLUMNS):
            size = {"model": row["model"], "input_size": row["input_size"], "family": family_of(row["model"])}
            yield {**size, **{column: row[column] for column in TIMM_COLUMNS}}


def clip_rows(source: Path) -> Iterable[Mapping[str, str]]:
    """Every model, named by its architecture and its training data."""
    for row in _read(source):
        percent = {column: f"{100 * float(row[old]):.2f}" for column, old in CLIP_COLUMNS.items()}
        yield {"model": f"{row['name']} ({row['pretrained']})", "family": ZERO_SHOT, **percent}


def _read(source: Path) -> list[dict[str, str]]:
    with source.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, source: str, rows: Iterable[Mapping[str, str]]) -> None:
    """The table, its source in the first line."""
    every = list(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {source}\n")
        table = csv.DictWriter(file, fieldnames=list(every[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(every)
    print(f"{path}: {len(every)} models")


if __name__ == "__main__":
    timm, clip, folder = map(Path, sys.argv[1:])
    write(folder / "timm_imagenet_shifts.csv", TIMM_SOURCE, timm_rows(timm))
    write(folder / "open_clip_zero_shot_shifts.csv", CLIP_SOURCE, clip_rows(clip))
