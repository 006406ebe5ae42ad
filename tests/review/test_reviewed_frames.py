"""What people said of anchors and frames, back on the frames, and what a study makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

import shiftproof as sp
from command import Shiftproof
from film import draw_film
from review.reviewed_projects import judge
from shiftproof.curation.frames import label_anchors, pair_frames
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.records import CARD_TEXT
from shiftproof.errors import BadInput
from shiftproof.review.data_card import Stage, stage_rows, stages_of
from shiftproof.review.database import Database
from shiftproof.review.export import agreed_labels, candidate_images, export, reviewed_frames
from shiftproof.review.summary import summarize
from shiftproof.studies.temporal.study import TemporalStudy
from shiftproof.types import Classifier
from toys import COLOURS, save_colour_network

ANCHOR = 2


@pytest.fixture
def images(tmp_path: Path) -> ImageList:
    film = draw_film(tmp_path / "film", {"blue/a": 5, "green/b": 5, "red/c": 5})
    return open_dataset(film, kind="frames", k=1, anchors=str(ANCHOR))


def facts_of(images: ImageList) -> dict[str, object]:
    return {sample.id: sample.facts["reviewed"] for sample in images.samples}


def test_frames_carry_the_verdict_and_anchors_are_like_themselves(
    images: ImageList, tmp_path: Path, database: Database
) -> None:
    project = pair_frames(images, tmp_path / "pairs").project
    said = {
        "blue/a/001.png": ["similar", "similar"],
        "blue/a/003.png": ["motion", "similar"],
        "green/b/001.png": ["bad anchor", "bad anchor"],
        "red/c/001.png": ["similar"],
        "red/c/003.png": ["similar", "similar"],
    }
    judge(database, said)
    found = reviewed_frames(project, summarize(project, database).verdicts)
    assert facts_of(found) == {
        "blue/a/001.png": "similar",
        "blue/a/002.png": "similar",
        "blue/a/003.png": "motion",
        "green/b/001.png": "bad anchor",
        "green/b/002.png": "bad anchor",
        "green/b/003.png": "bad anchor",
        # of red/c/001.png one of two people has not looked yet
        "red/c/002.png": "similar",
        "red/c/003.png": "similar",
    }
    assert found.classes == images.classes
    labels = {sample.id: sample.labels for sample in images.samples}
    assert all(sample.labels == labels[sample.id] for sample in found.samples)


def test_anchors_and_frames_name_their_clip_wherever_their_pixels_come_from(images: ImageList, tmp_path: Path) -> None:
    project = pair_frames(images, tmp_path / "pairs").project
    for found in (candidate_images(project), candidate_images(project, pixels="project")):
        assert {sample.id: sample.facts["clip"] for sample in found.samples} == {
            sample.id: sample.id.rpartition("/")[0] for sample in images.samples
        }


def test_as_long_as_nobody_has_decided_there_is_nothing_to_tell(
    images: ImageList, tmp_path: Path, database: Database
) -> None:
    project = pair_frames(images, tmp_path / "pairs").project
    with pytest.raises(BadInput, match=r"no frame of .* is decided"):
        reviewed_frames(project, summarize(project, database).verdicts)


def test_the_study_of_frames_tells_reviewed_from_unreviewed(
    images: ImageList, tmp_path: Path, database: Database, colour_model: Classifier
) -> None:
    project = pair_frames(images, tmp_path / "pairs").project
    judge(database, {item.id: ["similar", "similar" if item.facts["offset"] == 1 else "blur"] for item in project.items})
    found = reviewed_frames(project, summarize(project, database).verdicts)
    sp.predict(colour_model, found, store=tmp_path / "runs", workers=0)
    study = TemporalStudy([colour_model], found, largest_k=1)
    results = sp.measure(study, store=tmp_path / "runs", datasets=[found])
    told = [one for one in results.measurements if one.metric == "pm_k_review_accuracy"]
    assert len({tuple(one.about.items()) for one in told}) >= 2, "with and without the frames that were rejected"
    assert all(one.convention["frames rejected in review"].startswith("3, ") for one in told)


@pytest.mark.parametrize("layout", ["manifest", "webdataset"])
def test_frames_are_exported_with_those_that_were_rejected_and_run_tells_both(
    images: ImageList, tmp_path: Path, shiftproof: Shiftproof, layout: str
) -> None:
    project = pair_frames(images, tmp_path / "pairs").project
    database = Database(project.folder / "review.sqlite")
    judge(database, {item.id: ["similar", "similar" if item.facts["offset"] == 1 else "blur"] for item in project.items})
    database.close()
    exported = shiftproof("curate", "export", "pairs", "judged", "--layout", layout, "--rejected-too")
    assert exported.code == 0, exported.err
    words = {sample.facts["offset"]: sample.facts["reviewed"] for sample in open_dataset("judged").samples}
    assert words == {-1: "blur", 0: "similar", 1: "similar"}
    save_colour_network(Path("colours.onnx"))
    Path("classes.txt").write_text("\n".join(sorted(COLOURS)))
    network = ("--preprocess", "unit,resize=squash", "--classes", "classes.txt")
    ran = shiftproof("run", "colours.onnx", "judged", *network, "--studies", "temporal", "--largest-k", "1", "--json")
    told = [one for one in json.loads(ran.out)["findings"] if one.get("metric") == "pm_k_review_accuracy"]
    assert {one["about"]["rejected"] for one in told} == {"left out", "kept"}
    assert all(one["convention"]["frames rejected in review"].startswith("3, ") for one in told)


def test_what_people_said_needs_a_layout_with_a_place_for_it(images: ImageList, tmp_path: Path, database: Database) -> None:
    project = pair_frames(images, tmp_path / "pairs").project
    judge(database, {item.id: ["similar", "similar"] for item in project.items})
    summary = summarize(project, database)
    with pytest.raises(BadInput, match="cannot store votes"):
        export(project, summary, tmp_path / "set", part="decided", layout="vid-robust")


def test_pairs_go_on_from_the_labels_on_which_people_agreed(images: ImageList, tmp_path: Path, database: Database) -> None:
    project = label_anchors(images, tmp_path / "anchors").project
    both, one = {"choice": "good", "labels": ["blue", "red"]}, {"choice": "good", "labels": ["blue"]}
    judge(
        database,
        {
            f"blue/a/{ANCHOR:03}.png": [both, one],
            f"green/b/{ANCHOR:03}.png": ["bad", "bad"],
            f"red/c/{ANCHOR:03}.png": [both, both],
        },
    )
    labels = agreed_labels(project, summarize(project, database).verdicts)
    assert labels == {f"blue/a/{ANCHOR:03}.png": ("blue",), f"red/c/{ANCHOR:03}.png": ("blue", "red")}
    pairs = pair_frames(images, tmp_path / "pairs", labels=labels).project
    assert {item.label for item in pairs.items} == {"blue", "blue|red"}
    found = candidate_images(pairs)
    assert found.classes is not None
    named = {sample.id[:5]: [found.classes.names[label] for label in sample.labels] for sample in found.samples}
    assert named == {"blue/": ["blue"], "red/c": ["blue", "red"]}


def counted(stages: Iterable[Stage]) -> dict[tuple[str, str], int]:
    return {(one.unit, one.stage): one.count for one in stages}


def test_anchors_and_pairs_are_counted_as_reviewed_accepted_and_relabelled(
    images: ImageList, tmp_path: Path, database: Database
) -> None:
    """Of three anchors one is bad; of the other two one gets a class more; of their four pairs three are similar."""
    project = label_anchors(images, tmp_path / "anchors").project
    said = {"blue/a": ["blue"], "red/c": ["blue", "red"]}
    answers = {clip: {"choice": "good", "labels": labels} for clip, labels in said.items()}
    judge(database, {f"{clip}/{ANCHOR:03}.png": [answer, answer] for clip, answer in answers.items()})
    judge(database, {f"green/b/{ANCHOR:03}.png": ["bad", "bad"]})
    summary = summarize(project, database)
    pairs = pair_frames(images, tmp_path / "pairs", labels=agreed_labels(project, summary.verdicts)).project
    answered = Database(tmp_path / "pairs.sqlite")
    judge(answered, {item.id: ["similar", "similar"] for item in pairs.items if item.id != "red/c/001.png"})
    judge(answered, {"red/c/001.png": ["motion", "blur"]})
    exported = export(pairs, summarize(pairs, answered), tmp_path / "set", layout="manifest")
    answered.close()
    assert exported.card["review"].get("stages") == [
        {"unit": "anchor frames", "stage": "reviewed", "count": 3, "share": None},
        {"unit": "anchor frames", "stage": "accepted", "count": 2, "share": 2 / 3},
        {"unit": "anchor frames", "stage": "labels updated", "count": 1, "share": 1 / 2},
        {"unit": "frame pairs", "stage": "reviewed", "count": 4, "share": None},
        {"unit": "frame pairs", "stage": "accepted", "count": 3, "share": 3 / 4},
    ]
    text = (tmp_path / "set" / CARD_TEXT).read_text()
    assert "| anchor frames | labels updated | 1 | 50.0% |" in text
    assert "| frame pairs | reviewed | 4 |  |" in text
    assert counted(stages_of(project, summary.verdicts)) == {
        ("anchor frames", "reviewed"): 3,
        ("anchor frames", "accepted"): 2,
        ("anchor frames", "labels updated"): 1,
    }


def test_a_bad_anchor_is_reviewed_and_not_accepted(images: ImageList, tmp_path: Path, database: Database) -> None:
    project = pair_frames(images, tmp_path / "pairs").project
    said = {item.id: ["similar", "similar"] for item in project.items if not item.id.startswith("green")}
    judge(database, {**said, "green/b/001.png": ["bad anchor", "bad anchor"]})
    assert counted(stages_of(project, summarize(project, database).verdicts)) == {
        ("anchor frames", "reviewed"): 3,
        ("anchor frames", "accepted"): 2,
        ("frame pairs", "reviewed"): 6,
        ("frame pairs", "accepted"): 4,
    }


@pytest.mark.parametrize(
    ("reviewed", "accepted", "updated", "shares"),
    [
        (1314, 1109, None, ["84"]),
        (2467, 2030, 834, ["82", "41"]),
        (26029, 21070, None, ["80.9"]),
        (45631, 36827, None, ["80.7"]),
    ],
)
def test_shares_are_of_the_same_wholes_as_the_papers(
    reviewed: int, accepted: int, updated: int | None, shares: list[str]
) -> None:
    """Table 1 of Shankar et al. (2021): accepted of those reviewed, and updated labels of those accepted."""
    told = [one.share for one in stage_rows("any", reviewed, accepted, updated) if one.share is not None]
    digits = [len(share.partition(".")[2]) for share in shares]
    assert [f"{100 * share:.{places}f}" for share, places in zip(told, digits, strict=True)] == shares


def test_other_projects_are_refused(images: ImageList, tmp_path: Path) -> None:
    pairs, anchors = pair_frames(images, tmp_path / "pairs").project, label_anchors(images, tmp_path / "anchors").project
    with pytest.raises(BadInput, match="not which classes anchors show"):
        agreed_labels(pairs, {})
    with pytest.raises(BadInput, match="not whether frames are like their anchors"):
        reviewed_frames(anchors, {})
