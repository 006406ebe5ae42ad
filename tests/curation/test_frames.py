"""Frames before people: pairs with their anchors, and anchors whose classes nobody knows yet."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from film import draw_film
from shiftproof.curation.frames import VOCABULARIES, label_anchors, pair_choices, pair_frames
from shiftproof.curation.project import Item, Project, load_project
from shiftproof.curation.screens import PAIR
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.video.released import REASONS
from shiftproof.errors import BadInput
from shiftproof.types import Classes


@pytest.fixture
def film(tmp_path: Path) -> Path:
    return draw_film(tmp_path / "film", {"cat/a": 9, "cat/b": 9, "dog/c": 9})


@pytest.fixture
def images(film: Path) -> ImageList:
    return open_dataset(film, kind="frames", k=2)


def anchors_in(project: Project) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in project.items:
        found.setdefault(str(item.group), []).append(item)
    return found


def test_every_frame_around_an_anchor_is_shown_beside_it(images: ImageList, tmp_path: Path) -> None:
    made = pair_frames(images, tmp_path / "pairs")
    project = load_project(tmp_path / "pairs")
    assert project == made.project
    assert (project.screen_name, len(project.items)) == ("pair", 12)
    by_anchor = anchors_in(project)
    assert len(by_anchor) == 3, "one random anchor of each clip"
    for anchor, items in by_anchor.items():
        assert {item.images[0] for item in items} == {items[0].images[0]}
        assert sorted(int(str(item.facts["offset"])) for item in items) == [-2, -1, 1, 2]
        assert {item.label for item in items} == {anchor.split("/")[0]}
        for item in items:
            shown = (project.folder / "images" / item.images[1]).read_bytes()
            assert shown == images.find(str(item.facts["id"])).read()
    assert {one.key: len(one.references) for one in project.classes} == {"cat": 2, "dog": 1}


def test_people_are_asked_the_two_questions_of_the_paper(images: ImageList, tmp_path: Path) -> None:
    """Shankar et al. (2021): is the pair labelled correctly, and is it similar; if not, why."""
    screen = pair_frames(images, tmp_path / "pairs").project.screen
    assert "labelled correctly" in screen.question
    assert "similar" in screen.question
    reasons = [choice.title for choice in screen.choices if choice.title.startswith("Dissimilar")]
    for title, words in zip(reasons, ("significant motion", "background change", "blur change", "other"), strict=True):
        assert words in title
    assert "unsure" in {choice.name for choice in screen.choices}


def test_another_seed_draws_other_anchors_and_the_same_seed_the_same(film: Path, tmp_path: Path) -> None:
    drawn = [
        set(anchors_in(pair_frames(open_dataset(film, kind="frames", k=2, seed=seed), tmp_path / f"{turn}").project))
        for turn, seed in enumerate((0, 0, 1, 2))
    ]
    assert drawn[0] == drawn[1]
    assert len({frozenset(one) for one in drawn}) > 1


def test_frames_that_cannot_be_read_go_and_with_an_anchor_all_around_it(film: Path, tmp_path: Path) -> None:
    images = open_dataset(film, kind="frames", k=2, anchors=[4])
    (film / "cat" / "a" / "004.png").write_bytes(b"no picture")
    (film / "dog" / "c" / "005.png").write_bytes(b"no picture")
    made = pair_frames(images, tmp_path / "pairs")
    assert [(step.name, step.left) for step in made.choice.steps] == [
        ("start", 12),
        ("can be read beside their anchors", 7),
    ]
    rows = {row["id"]: row for row in csv.DictReader((tmp_path / "pairs" / "frames.csv").read_text().splitlines())}
    assert len(rows) == 12
    assert rows["cat/a/003.png"]["reason"].startswith("its anchor cannot be read: ")
    assert rows["dog/c/005.png"]["reason"]
    assert (rows["dog/c/003.png"]["step"], rows["dog/c/003.png"]["reason"]) == ("kept", "")


def test_a_second_time_no_frame_is_opened_again(images: ImageList, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = pair_frames(images, tmp_path / "pairs")
    monkeypatch.setattr("shiftproof.curation.pictures.decoded", lambda _: "opened again")
    again = pair_frames(images, tmp_path / "pairs")
    assert again.project.items == first.project.items


def test_labels_that_people_gave_replace_those_of_the_clips(film: Path, tmp_path: Path) -> None:
    images = open_dataset(film, kind="frames", k=1, anchors=[4])
    labels = {"cat/a/004.png": ["cat", "dog"], "dog/c/004.png": ["dog"]}
    made = pair_frames(images, tmp_path / "pairs", labels=labels)
    by_anchor = anchors_in(made.project)
    assert {anchor: items[0].label for anchor, items in by_anchor.items()} == {
        "cat/a/004.png": "cat|dog",
        "dog/c/004.png": "dog",
    }
    assert {one.key: one.name for one in made.project.classes} == {"cat|dog": "cat and dog", "dog": "dog"}
    assert {gone.reason for gone in made.choice.removed} == {"its anchor was not kept"}


def test_people_read_the_word_for_a_class_that_only_has_a_wnid(tmp_path: Path) -> None:
    film = draw_film(tmp_path / "film", {"n02834778/a": 5, "n02123045/b": 5})
    images = open_dataset(film, kind="frames", k=1, anchors="2")
    anchors = {sample.id: ["n02834778", "n02123045"] for sample in images.samples if sample.facts["offset"] == 0}
    alone, together = pair_frames(images, tmp_path / "a"), pair_frames(images, tmp_path / "b", labels=anchors)
    assert {one.name for one in alone.project.classes} == {"bicycle", "tabby"}
    assert {one.name for one in together.project.classes} == {"bicycle and tabby"}


def test_anchors_alone_are_asked_for_their_classes(film: Path, tmp_path: Path) -> None:
    images = open_dataset(film, kind="frames", k=2, anchors=[4])
    project = label_anchors(images, tmp_path / "anchors", classes=Classes(("cat", "dog", "eel"))).project
    assert [(item.id, item.label) for item in project.items] == [
        ("cat/a/004.png", "cat"),
        ("cat/b/004.png", "cat"),
        ("dog/c/004.png", "dog"),
    ]
    assert [one.key for one in project.classes] == ["cat", "dog", "eel"]
    assert load_project(tmp_path / "anchors") == project


def test_what_has_no_anchors_or_no_classes_is_refused(tmp_path: Path, film: Path) -> None:
    with pytest.raises(BadInput, match="no dataset of frames around anchors"):
        pair_frames(open_dataset(film / "cat" / "a", kind="folder"), tmp_path / "pairs")
    with pytest.raises(BadInput, match="no classes to choose among"):
        label_anchors(open_dataset(film / "cat" / "a", kind="frames"), tmp_path / "anchors")


@pytest.mark.parametrize("vocabulary", [*VOCABULARIES, "rain:w,night:n"])
def test_every_vocabulary_makes_a_screen_with_the_other_answers_to_a_pair(
    vocabulary: str, images: ImageList, tmp_path: Path
) -> None:
    pair_frames(images, tmp_path / "pairs", reasons=vocabulary)
    screen = load_project(tmp_path / "pairs").screen
    assert screen.choices == pair_choices(vocabulary)
    assert {"similar", "mislabelled", "unsure", "bad anchor"} < {choice.name for choice in screen.choices}
    assert screen.closing == {"bad anchor"}
    assert (screen == PAIR) == (vocabulary == "paper")


def test_the_released_words_are_those_of_the_release() -> None:
    assert {choice.name for choice in VOCABULARIES["released"]} < set(REASONS)


@pytest.mark.parametrize("reasons", ["rain", "rain:", ":w", "rain:wet", ""])
def test_reasons_need_a_key_each(reasons: str) -> None:
    with pytest.raises(BadInput, match="words with a key each"):
        pair_choices(reasons)


@pytest.mark.parametrize("reasons", ["rain:s", "rain:z", "rain:w,night:w"])
def test_a_key_that_is_taken_is_refused(reasons: str, images: ImageList, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a key of its own"):
        pair_frames(images, tmp_path / "pairs", reasons=reasons)


@pytest.mark.real
def test_real_clips_and_a_released_frame_set_become_pairs(real_data: Path, tmp_path: Path) -> None:
    cockatoo = open_dataset(real_data / "video" / "cockatoo.mp4", k=3, anchors=[50, 200])
    made = pair_frames(cockatoo, tmp_path / "clip")
    assert [step.left for step in made.choice.steps] == [12, 12]
    assert len(list((tmp_path / "clip" / "images").glob("*.jpg"))) == 14
    released = open_dataset(real_data / "pmk" / "vid_robust_examples", kind="frames", anchors=[442])
    pairs = pair_frames(released, tmp_path / "released").project
    assert sorted(int(str(item.facts["offset"])) for item in pairs.items) == [*range(-10, 0), *range(1, 11)]
