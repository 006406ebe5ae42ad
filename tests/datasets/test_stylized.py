"""Stylised copies beside the photos that they were made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shiftproof.datasets import open_dataset
from shiftproof.datasets.clusters import Clustering
from shiftproof.errors import BadInput


def test_a_copy_has_the_label_and_the_cluster_of_its_photo(tmp_path: Path, draw: Callable[..., Path]) -> None:
    for path in ("photos/cat/a.png", "photos/dog/b.png", "photos/dog/c.png"):
        draw(tmp_path / path)
    for path in ("sin/cat/a.jpg", "sin/dog/b-stylized-waves.png", "sin/dog/b-stylized-fire.png", "sin/dog/stranger.png"):
        draw(tmp_path / path)
    both = open_dataset(f"stylized:{tmp_path / 'photos'}?copies={tmp_path / 'sin'}")
    names = {sample.id: both.classes.names[sample.labels[0]] for sample in both.samples if both.classes}
    assert names == {
        "cat/a.png": "cat",
        "dog/b.png": "dog",
        "dog/c.png": "dog",
        "stylized/cat/a.jpg": "cat",
        "stylized/dog/b-stylized-fire.png": "dog",
        "stylized/dog/b-stylized-waves.png": "dog",
    }
    clusters = Clustering().of(both.samples)
    assert clusters is not None
    assert clusters.keys == ("cat/a.png", "dog/b.png", "dog/c.png", "cat/a.png", "dog/b.png", "dog/b.png")
    assert both.notes[-1] == "copies of no image of the dataset, left out: 1"
    copy = next(sample for sample in both.samples if sample.id == "stylized/cat/a.jpg")
    assert both.source(copy).read() == (tmp_path / "sin/cat/a.jpg").read_bytes()


def test_copies_of_nothing_are_refused(tmp_path: Path, draw: Callable[..., Path]) -> None:
    draw(tmp_path / "photos/cat/a.png")
    draw(tmp_path / "sin/cat/z.png")
    with pytest.raises(BadInput, match="copies have the paths of their photos"):
        open_dataset(f"stylized:{tmp_path / 'photos'}?copies={tmp_path / 'sin'}")
    with pytest.raises(BadInput, match="say where the stylised copies are"):
        open_dataset(f"stylized:{tmp_path / 'photos'}")
