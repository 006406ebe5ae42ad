"""Croissant metadata of every layout, as the format's own library reads it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from review.reviewed_projects import judge, photo_project
from review.test_export import pair_project
from shiftproof.datasets import open_dataset
from shiftproof.review.database import Database
from shiftproof.review.export import Exported, export
from shiftproof.review.summary import summarize
from shiftproof.writing.layouts import LAYOUTS

WNIDS = {"blue": "n01440764", "green": "n01443537", "red": "n02084071"}
BOX = {"choice": "box", "points": [[0.25, 0.5], [0.5, 0.25], [0.75, 0.5], [0.5, 0.75]]}


@pytest.fixture
def exported(tmp_path: Path, draw_photos: Callable[..., Path], database: Database) -> Callable[..., Exported]:
    """Of three photos a class two are kept, with their boxes or as frames where the layout has them."""

    def write(layout: str) -> Exported:
        photos = draw_photos(3)
        for colour, wnid in WNIDS.items():
            (photos / colour).rename(photos / wnid)
        images = open_dataset(photos)
        if layout == "vid-robust":
            clip = tmp_path / "clips" / "cat" / "a"
            clip.mkdir(parents=True)
            for number, sample in enumerate(images.samples[:5]):
                (clip / f"{number:06}.png").write_bytes(images.source(sample).read())
            project = pair_project(tmp_path / "project", open_dataset(tmp_path / "clips", kind="frames", k=2, anchors="2"))
            judge(database, {item.id: ["similar", "similar"] for item in project.items})
        elif layout == "coco":
            project = photo_project(tmp_path / "project", images, screen="extreme-points")
            judge(database, {item.id: [BOX, BOX] for item in project.items})
        else:
            project = photo_project(tmp_path / "project", images, instructions="Keep what is\nclear.")
            answers = [["keep", "keep"], ["reject", "reject"], ["keep", "keep"]]
            judge(database, {item.id: answers[place % 3] for place, item in enumerate(project.items)})
        return export(project, summarize(project, database), tmp_path / "set", layout=layout)

    return write


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its own libraries
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_mlcroissant_accepts_and_reads_every_layout(
    exported: Callable[..., Exported], tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    # archives are unpacked into a cache by their name, which is the same in every export
    monkeypatch.setattr("mlcroissant._src.operation_graph.operations.extract.EXTRACT_PATH", as_etils(tmp_path / "unpacked"))
    written = exported(layout)
    path = tmp_path / "set" / "croissant.json"
    dataset = mlcroissant.Dataset(jsonld=path)
    assert not dataset.metadata.ctx.issues.errors
    told = [re.findall(r'Property "[^"]*/(\w+)"', text) for text in dataset.metadata.ctx.issues.warnings]
    assert {name for names in told for name in names} <= {"citeAs", "datePublished", "license"}  # which nobody has told
    records = list(dataset.records("images"))
    assert len(records) == written.card["images"] > 0
    assert {record["images/image"].size for record in records} == {(32, 24)}
    if LAYOUTS[layout].class_in_path:
        assert {record["images/label"].decode() for record in records} == set(WNIDS.values())
    if layout in ("manifest", "imagenet-o"):
        rows = list(dataset.records("manifest"))
        column = "manifest/label" if layout == "manifest" else "manifest/folder"
        assert {row[column].decode() for row in rows} == set(WNIDS.values())
        assert all((tmp_path / "set" / row["manifest/path"].decode()).is_file() for row in rows)
    classes = {row["classes/key"]: row["classes/images"] for row in dataset.records("classes")}
    assert classes == {one["key"]: one["images"] for one in written.card["classes"]}


def as_etils(path: Path) -> Any:
    from etils import epath

    return epath.Path(path)


def test_metadata_says_what_the_review_found(exported: Callable[..., Exported], tmp_path: Path) -> None:
    written = exported("imagenet-a")
    told = json.loads((tmp_path / "set" / "croissant.json").read_text(encoding="utf-8"))
    assert told["conformsTo"] == ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]
    assert told["license"] == ["drawn by a test"]
    assert told["version"] == "1.0.0"
    assert "wrong: 12" in told["rai:dataCollection"]
    assert "Percent agreement of first votes: 100.0%." in told["rai:dataAnnotationAnalysis"]
    assert "Outcomes: 6 kept, 3 rejected, 0 open." in told["rai:dataAnnotationAnalysis"]
    assert told["rai:machineAnnotationTools"] == ["lite0 (f00d)"]
    assert told["rai:annotationsPerItem"] == "18 votes on 9 items"
    assert "Instructions: Keep what is\nclear." in told["rai:dataAnnotationProtocol"]
    assert "Images a class: 2 to 2, in 3 classes." in told["rai:dataBiases"]
    assert "rai:hasSyntheticData" not in told  # nobody has told
    assert written.card["images"] == 6

    files = {one["@id"]: one for one in told["distribution"] if one["@type"] == "cr:FileObject"}
    for name, one in files.items():
        assert one["sha256"] == hashlib.sha256((tmp_path / "set" / name).read_bytes()).hexdigest()
    checked = (tmp_path / "set" / "SHA256SUMS").read_text()
    assert hashlib.sha256((tmp_path / "set" / "croissant.json").read_bytes()).hexdigest() in checked


def test_the_same_review_gives_the_same_metadata_and_opens_without_a_note(
    exported: Callable[..., Exported], tmp_path: Path
) -> None:
    exported("folder")
    text = (tmp_path / "set" / "croissant.json").read_bytes()
    assert open_dataset(tmp_path / "set").notes == ()
    assert b"unfinished" not in text
    assert str(tmp_path).encode() not in text
