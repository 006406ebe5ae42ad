"""Planted label errors and a planted slice among real photos, through a real network."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof.datasets.image_list import some_of
from shiftproof.datasets.subsets import View
from shiftproof.types import Measurement

pytestmark = pytest.mark.real


@pytest.mark.parametrize("seed", range(3))
def test_of_five_in_a_hundred_wrong_labels_nearly_all_are_among_the_first_tenth(
    seed: int, real_data: Path, real_runs: Path
) -> None:
    photos = some_of(sp.open_dataset(real_data / "ilsvrc-sample-1000"), 300)  # some that other tests predict
    samples, generator = [*photos.samples], np.random.default_rng(seed)
    rows = generator.choice(len(samples), 15, replace=False).tolist()
    for row in rows:
        label = (samples[row].labels[0] + int(generator.integers(1, 1000))) % 1000
        samples[row] = dataclasses.replace(samples[row], labels=(label,))
    found = sp.find_label_errors("lite:0", View(photos, photos.classes, samples, "planted"), store=real_runs)
    first = {str(row["id"]) for row in found.images[: found.suspects]}
    assert found.suspects == 30
    assert len(first & {samples[row].id for row in rows}) >= 14


def test_photos_of_a_dirty_lens_are_found_by_their_sharpness(real_data: Path, real_runs: Path, tmp_path: Path) -> None:
    photos = sp.open_dataset(real_data / "ilsvrc-sample-1000").samples[::8]
    for place, sample in enumerate(photos):
        photo = real_data / "ilsvrc-sample-1000" / sample.id
        if place % 5:
            copyfile(photo, tmp_path / sample.id)
            continue
        with Pillow.open(photo) as opened:
            picture = opened.convert("RGB")
        picture.reduce(10).resize(picture.size, Pillow.Resampling.BICUBIC).save(tmp_path / sample.id, quality=95)
    results = sp.slices("lite:0", tmp_path, store=real_runs, manifest=tmp_path / "sliced.jsonl")
    gaps = [one for one in results.findings if isinstance(one, Measurement) and one.metric == "slice_gap"]
    assert "sharpness" in str(gaps[0].about["slice"])
    assert gaps[0].ends is not None
    assert gaps[0].ends[0] > 0.2
    name = str(gaps[0].about["slice"])
    inside = [one.id for one in sp.open_dataset(tmp_path / "sliced.jsonl").samples if one.facts[name] == "yes"]
    blurred = {sample.id for sample in photos[::5]}
    assert len(blurred & {*inside}) > 0.8 * len(inside)
