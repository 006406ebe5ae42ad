"""What people kept, as files: the very images they saw, with a card that says how they came to be there."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image as Pillow

from command import Shiftproof
from review.reviewed_projects import judge, photo_project
from shiftproof.curation.options import Layout
from shiftproof.curation.pictures import add_pictures
from shiftproof.curation.project import Item, Project, ReviewClass, save_project
from shiftproof.curation.provenance import origin
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.records import CARD_TEXT
from shiftproof.errors import BadInput
from shiftproof.review.database import Database
from shiftproof.review.export import candidate_images, export, kept_images, kept_items
from shiftproof.review.summary import Summary, summarize
from shiftproof.writing.layouts import LAYOUTS

KEEP = ["keep", "keep"]
REJECT: list[str | Mapping[str, Any]] = ["reject", {"choice": "reject", "reasons": ["drawing"]}]
DISPUTED = ["keep", "unsure"]


@pytest.fixture
def photos(draw_photos: Callable[..., Path]) -> ImageList:
    return open_dataset(draw_photos(3))


@pytest.fixture
def project(tmp_path: Path, photos: ImageList) -> Project:
    return photo_project(tmp_path / "project", photos)


@pytest.fixture
def summary(project: Project, database: Database) -> Summary:
    """Of every class the first is kept, the second rejected and the third disputed."""
    ids = [item.id for item in project.items]
    judge(
        database,
        {
            **dict.fromkeys(ids[0::3], KEEP),
            **dict.fromkeys(ids[1::3], REJECT),
            **dict.fromkeys(ids[2::3], DISPUTED),
        },
    )
    return summarize(project, database)


def kept_ids(project: Project) -> list[str]:
    return sorted(item.id for item in project.items[0::3])


def test_only_what_was_kept_is_exported_with_its_own_bytes(project: Project, summary: Summary, tmp_path: Path) -> None:
    exported = export(project, summary, tmp_path / "set", layout="manifest")
    again = open_dataset(exported.location)
    assert [sample.id for sample in again.samples] == kept_ids(project)
    assert again.classes is not None
    for sample in again.samples:
        assert again.classes.names[sample.labels[0]] == sample.id.split("/")[0]
        assert again.source(sample).read() == (tmp_path / "photos" / sample.id).read_bytes()


def test_before_the_review_everything_asked_is_there(project: Project, summary: Summary, tmp_path: Path) -> None:
    exported = export(project, summary, tmp_path / "set", layout="manifest", part="asked")
    assert {sample.id for sample in open_dataset(exported.location).samples} == {item.id for item in project.items}
    assert exported.card["holds"] == "all under review"


def test_the_card_says_how_the_set_came_about(project: Project, summary: Summary, tmp_path: Path) -> None:
    card = export(project, summary, tmp_path / "set").card
    kept = len(kept_ids(project))
    assert json.loads((tmp_path / "set" / "data-card.json").read_text()) == card
    assert (card["images"], card["revision"], card["layout"]) == (kept, 1, "folder")
    assert {one["key"]: one["images"] for one in card["classes"]} == {one.key: 1 for one in project.classes}
    assert card["models"] == [{"name": "lite0", "fingerprint": "f00d"}]
    assert card["sources"] == [{"name": "photos", "fingerprint": "cafe", "licence": "drawn by a test"}]
    review = card["review"]
    assert review["outcomes"] == {"kept": kept, "rejected": 2 * kept, "open": 0}
    assert (review["people"], review["votes"]) == (2, 6 * kept)
    assert review["reasons"] == {"drawing": kept, "unsure": kept}
    assert review["agreement"]["percent"] == pytest.approx(2 / 3)  # all agree on the first two of three
    assert card["changes"] is None


def test_the_card_names_no_reviewer_and_no_place(project: Project, summary: Summary, tmp_path: Path) -> None:
    export(project, summary, tmp_path / "set")
    for name in ("data-card.json", "data-card.md"):
        text = (tmp_path / "set" / name).read_text()
        assert "Ada" not in text
        assert str(tmp_path) not in text
        assert "drawn by a test" in text


def test_names_in_the_card_are_names_and_nothing_else(project: Project, summary: Summary, tmp_path: Path) -> None:
    nasty = "<script>alert(1)</script>|`[a](b)\n\n# Another"
    making = dataclasses.replace(
        project.making, command=nasty, models=({"name": nasty, "fingerprint": nasty},), choices={nasty: nasty}
    )
    classes = tuple(ReviewClass(one.key, nasty) for one in project.classes)
    strange = dataclasses.replace(project, title=nasty, making=making, classes=classes)
    export(strange, summary, tmp_path / "set")
    lines = (tmp_path / "set" / CARD_TEXT).read_text().splitlines()
    assert [line for line in lines if line.startswith("# ")] == [lines[0]]
    assert lines[0] == r"# &lt;script>alert(1)&lt;/script>\|\`\[a](b)  # Another"
    assert [line for line in lines if "<script" in line] == [line for line in lines if line.startswith("    ")]


def test_the_same_review_gives_the_same_bytes(project: Project, summary: Summary, tmp_path: Path) -> None:
    for name in ("one", "two"):
        export(project, summary, tmp_path / name, layout="webdataset")
    assert (tmp_path / "one" / "SHA256SUMS").read_bytes() == (tmp_path / "two" / "SHA256SUMS").read_bytes()


def test_of_each_class_no_more_than_its_target_is_kept(tmp_path: Path, photos: ImageList, database: Database) -> None:
    project = photo_project(tmp_path / "project", photos, target=2)
    judge(database, {item.id: KEEP for item in project.items})
    kept = kept_items(project, summarize(project, database).verdicts)
    assert [item.id for item in kept] == [item.id for place, item in enumerate(project.items) if place % 3 < 2]


def test_an_image_that_changed_since_it_was_judged_is_refused(project: Project, summary: Summary, tmp_path: Path) -> None:
    changed = tmp_path / "photos" / kept_ids(project)[0]
    Pillow.fromarray(np.zeros((24, 32, 3), np.uint8)).save(changed)
    with pytest.raises(BadInput, match="has changed since it was reviewed"):
        export(project, summary, tmp_path / "set")
    exported = export(project, summary, tmp_path / "set", pixels="project")
    assert exported.card["images"] == len(kept_ids(project))


def test_sources_that_are_gone_are_told(project: Project, summary: Summary, tmp_path: Path) -> None:
    (tmp_path / "photos" / kept_ids(project)[0]).unlink()
    with pytest.raises(BadInput, match="no longer holds"):
        export(project, summary, tmp_path / "set")
    (tmp_path / "photos").rename(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="cannot be opened: no such file or folder"):
        export(project, summary, tmp_path / "set")
    assert not (tmp_path / "set").exists()


def test_nothing_kept_is_no_set(project: Project, database: Database, tmp_path: Path) -> None:
    judge(database, {item.id: REJECT for item in project.items})
    with pytest.raises(BadInput, match="nothing of Hard photos was kept"):
        export(project, summarize(project, database), tmp_path / "set")


def test_boxes_that_people_drew_are_in_the_pixels_of_the_source(
    tmp_path: Path, photos: ImageList, database: Database
) -> None:
    project = photo_project(tmp_path / "project", photos, screen="extreme-points", first=2)
    first = {"choice": "box", "points": [[0.25, 0.5], [0.5, 0.25], [0.75, 0.5], [0.5, 0.75]]}
    second = {"choice": "box", "points": [[0.5, 0.5], [0.5, 0.5], [1.0, 0.5], [0.75, 1.0]]}
    judge(database, {project.items[0].id: [first, first], project.items[1].id: [second, second]})
    exported = export(project, summarize(project, database), tmp_path / "set", layout="coco")
    again = open_dataset(exported.location)
    assert again.truths is not None
    assert again.truths.boxes.tolist() == [[8, 6, 24, 18], [16, 12, 32, 24]]  # of 32 x 24 pixels
    assert {tuple(sample.labels) for sample in again.samples} == {(0,)}


def test_frames_that_people_found_similar_are_there_around_their_anchors(
    tmp_path: Path, photos: ImageList, database: Database
) -> None:
    clip = tmp_path / "clips" / "cat" / "a"
    clip.mkdir(parents=True)
    for number, sample in enumerate(photos.samples[:5]):
        (clip / f"{number:06}.png").write_bytes(photos.source(sample).read())
    frames = open_dataset(tmp_path / "clips", kind="frames", k=2, anchors="2")
    project = pair_project(tmp_path / "project", frames)
    said = {item.id: ["similar", "similar"] for item in project.items}
    said[project.items[0].id] = ["blur", "blur"]
    judge(database, said)
    exported = export(project, summarize(project, database), tmp_path / "set", layout="vid-robust")
    again = open_dataset(exported.location)
    kept = {Path(item.id).stem for item in project.items[1:]} | {"000002"}
    assert {Path(sample.id).stem for sample in again.samples} == kept
    assert {sample.facts["anchor"] for sample in again.samples} == {"val/a/000002.png"}


def pair_project(folder: Path, frames: ImageList) -> Project:
    names = add_pictures(folder, {sample.id: frames.source(sample) for sample in frames.samples}).names
    anchors = [sample for sample in frames.samples if sample.facts["offset"] == 0]
    project = Project(
        folder,
        "Frames",
        "pair",
        tuple(
            Item(sample.id, (names[anchor.id], names[sample.id]), "cat", group=anchor.id, facts=origin(frames, sample))
            for anchor in anchors
            for sample in frames.samples
            if sample.facts["anchor"] == anchor.id and sample is not anchor
        ),
    )
    save_project(project)
    return project


def test_labels_and_failure_modes_are_those_that_more_than_half_saw(
    tmp_path: Path, photos: ImageList, database: Database
) -> None:
    project = photo_project(tmp_path / "labels", photos, screen="anchor-labels", first=1)
    both, one = ({"choice": "good", "labels": keys} for keys in (["blue", "red"], ["red"]))
    judge(database, {project.items[0].id: [both, one, both]})
    kept = kept_images(project, summarize(project, database).verdicts)
    assert kept.classes is not None
    assert [kept.classes.names[label] for label in kept.samples[0].labels] == ["blue", "red"]


def test_failure_modes_become_a_fact(tmp_path: Path, photos: ImageList, database: Database) -> None:
    project = photo_project(tmp_path / "modes", photos, screen="failure-modes", first=1)
    answers: list[dict[str, Any]] = [
        {"choice": "background", "tags": ["background", "pose"]},
        {"choice": "background", "tags": ["background"]},
        {"choice": "pose", "tags": ["pose", "size"]},
    ]
    judge(database, {project.items[0].id: answers})
    summary = summarize(project, database)
    assert kept_images(project, summary.verdicts).samples[0].facts["failure_modes"] == "background|pose"
    assert export(project, summary, tmp_path / "set").card["review"]["failure_modes"] == {"background": 1, "pose": 1}


def test_two_images_of_one_name_from_different_sets_are_told(
    tmp_path: Path, project: Project, draw_photos: Callable[..., Path]
) -> None:
    other = open_dataset(draw_photos(3, "others"))
    first = project.items[0]
    twin = dataclasses.replace(first, id="twin", facts={"source": other.location, "id": first.id}, images=first.images)
    add_pictures(project.folder, {"twin": other.source(other.samples[0])})
    mixed = dataclasses.replace(project, items=(first, twin))
    with pytest.raises(BadInput, match="two images of Hard photos are called"):
        candidate_images(mixed)


def test_the_command_ends_with_what_opens_the_set(shiftproof: Shiftproof, tmp_path: Path, photos: ImageList) -> None:
    project = photo_project(tmp_path / "project", photos)
    database = Database(project.folder / "review.sqlite")
    judge(database, {item.id: KEEP for item in project.items[:4]})
    database.close()
    said = shiftproof("curate", "export", "project", "set", "--layout", "manifest")
    assert said.code == 0, said.err
    assert said.out == "set\n"
    assert "items have no verdict yet" in said.err
    assert len(open_dataset("set").samples) == 4
    again = json.loads(shiftproof("curate", "export", "project", "set", "--layout", "manifest", "--json").out)
    assert (again["written"], again["location"], again["card"]["images"]) == (0, "set", 4)


def test_the_command_offers_every_layout() -> None:
    assert set(get_args(Layout)) == set(LAYOUTS)
