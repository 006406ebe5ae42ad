"""The study of perturbation sequences, on answers small enough for paper and beside the slow walk over frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shiftproof
from shiftproof.corruptions import IMAGENET_P
from shiftproof.errors import BadInput, UnknownName
from shiftproof.metrics import flip_probability, sequence_top5_distance, sequence_zipf_distance
from shiftproof.metrics.accuracy import to_top5
from shiftproof.studies.corruption.cells import alexnet_flips
from shiftproof.studies.perturbation.study import PerturbationStudy
from shiftproof.types import DatasetRef, Gallery, Measurement, ModelRef, Predictions, Seen
from studies.contracts import findings_of, skipped_by

MODEL, BASE = ModelRef("model", "1"), ModelRef("base", "2")
FRAMES = DatasetRef("frames", "3")

# the first class in every frame, by image
TILT = {"a": [0, 0, 1, 0, 0, 0], "b": [2, 2, 2, 2, 2, 2]}
NOISE = {"a": [0, 3, 3, 0, 0, 0], "b": [2, 2, 2, 2, 2, 4]}


def frames_of(predictions_of: Any, *parts: tuple[str, int, dict[str, list[int]]], **options: Any) -> Predictions:
    """Predictions of all frames of some perturbations, their rows mixed."""
    rows = [
        (perturbation, level, sequence, frame, answer)
        for perturbation, level, answers in parts
        for sequence, frames in answers.items()
        for frame, answer in enumerate(frames)
    ]
    rows = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))]
    facts = dict(zip(("perturbation", "level", "sequence", "frame"), list(zip(*rows, strict=True))[:4], strict=True))
    ids = [f"{sequence}/{perturbation}_{level}/{frame:02d}" for perturbation, level, sequence, frame, _ in rows]
    found: Predictions = predictions_of([-1] * len(rows), [row[4] for row in rows], ids=ids, facts=facts, **options)
    return found


def numbers(findings: Any, metric: str) -> dict[Any, Any]:
    found = [one for one in findings if isinstance(one, Measurement) and one.metric == metric]
    return {(one.about.get("perturbation"), one.about.get("difficulty")): pytest.approx(one.value) for one in found}


def test_flips_are_as_on_paper_by_step_and_for_noise_by_level(predictions_of: Any) -> None:
    answers = frames_of(predictions_of, ("tilt", 1, TILT), ("shot_noise", 1, NOISE), ("shot_noise", 3, TILT))
    found = findings_of(PerturbationStudy([MODEL], FRAMES), lambda run: answers)
    assert numbers(found, "flip_probability") == {
        ("tilt", 1): (2 / 5) / 2,  # to 1 and back, and never
        ("tilt", 2): (2 / 4) / 2,  # frames 0 and 2, 2 and 4
        ("tilt", 3): (1 / 3) / 2,  # frames 2 and 5
        ("shot_noise", 1): (2 / 5 + 1 / 5) / 2,  # each frame with the first
        ("shot_noise", 3): (1 / 5) / 2,
    }
    assert numbers(found, "mean_flip_probability") == {(None, None): 0.25, (None, 2): 0.25, (None, 3): (1 / 6 + 1 / 10) / 2}
    assert {one.images for one in found if isinstance(one, Measurement)} == {2}


def test_the_numbers_say_what_was_compared_and_averaged(predictions_of: Any) -> None:
    answers = frames_of(predictions_of, ("tilt", 1, TILT), ("shot_noise", 1, NOISE), ("shear", 1, NOISE))
    found: list[Any] = findings_of(PerturbationStudy([MODEL], FRAMES), lambda run: answers)
    numbers = [one for one in found if isinstance(one, Measurement)]
    told = {(one.metric, one.about.get("perturbation"), one.about.get("difficulty")): one.convention for one in numbers}
    assert told["flip_probability", "tilt", 2]["compared"] == "each with the frame 2 before"
    assert told["flip_probability", "shot_noise", 1]["compared"] == "each with the first, noise of level 1"
    # shear is one of the four for validation, so no mean counts it
    assert told["mean_flip_probability", None, None]["perturbations"] == "shot_noise, tilt"
    assert told["flip_probability", "tilt", 1]["frames"] == "6"


def test_a_mean_over_unseen_perturbations_stands_beside_the_published_one(predictions_of: Any) -> None:
    answers = frames_of(predictions_of, ("tilt", 1, TILT), ("shot_noise", 1, NOISE))

    class Load:
        def __call__(self, run: Any) -> Any:
            return answers

        def seen(self, run: Any) -> Seen:
            return Seen(augmentations=("poisson noise",))

    found: list[Any] = findings_of(PerturbationStudy([MODEL], FRAMES), Load())
    assert numbers(found, "mean_flip_probability") == {(None, None): 0.25, (None, 2): 0.25, (None, 3): (1 / 3) / 2}
    assert numbers(found, "unseen_mean_flip_probability") == {(None, None): 0.2}  # of tilt alone, where noise counts too
    told = [one.convention.get("seen in training") for one in found if getattr(one, "metric", "") == "mean_flip_probability"]
    assert told == ["shot_noise", None, None]


def walk(seed: int, *, classes: int = 9) -> Any:
    """Scores that wander, (sequences, frames, classes)."""
    return np.cumsum(np.random.default_rng(seed).normal(scale=0.4, size=(25, 12, classes)), axis=1)


def stored(scores: dict[tuple[str, int], Any]) -> Predictions:
    """The rows of all sequences as they are stored, with all scores."""
    logits = np.concatenate([one.reshape(-1, one.shape[2]) for one in scores.values()])
    facts: dict[str, list[Any]] = {"perturbation": [], "level": [], "sequence": [], "frame": []}
    for (perturbation, level), one in scores.items():
        for sequence in range(one.shape[0]):
            for frame in range(one.shape[1]):
                for fact, value in zip(facts, (perturbation, level, f"{sequence:02d}.png", frame), strict=True):
                    facts[fact].append(value)
    ids = tuple("/".join(map(str, row)) for row in zip(*facts.values(), strict=True))
    return Predictions(
        ids,
        np.full((len(ids), 1), -1),
        "logits",
        to_top5(logits, "logits"),
        logits=logits,
        facts={fact: tuple(values) for fact, values in facts.items()},
    )


def test_distances_and_their_ratios_to_a_baseline_are_those_of_the_metrics() -> None:
    scores = {
        "model": {("tilt", 1): walk(0), ("gaussian_noise", 2): walk(1)},
        "base": {("tilt", 1): walk(2), ("gaussian_noise", 2): walk(3)},
    }
    answers = {name: stored(tables) for name, tables in scores.items()}
    study = PerturbationStudy([MODEL], FRAMES, baseline=BASE, zipf=True)
    assert study.keep == "logits"
    found = findings_of(study, lambda run: answers[run.model.name])

    def expected(name: str, measure: Any) -> dict[Any, float]:
        tables = scores[name]
        tilt = {("tilt", step): measure(tables["tilt", 1], step=step) for step in (1, 2, 3)}
        return {**tilt, ("gaussian_noise", 2): measure(tables["gaussian_noise", 2], against="first")}

    def flips(logits: Any, **rule: Any) -> float:
        return flip_probability(logits.argmax(axis=2), **rule)

    def distance(logits: Any, **rule: Any) -> float:
        ranks = np.argsort(-logits, axis=2, kind="stable")[:, :, :5]
        return float(sequence_top5_distance(ranks, **rule).mean())

    def zipf(logits: Any, **rule: Any) -> float:
        return float(sequence_zipf_distance(logits, **rule).mean())

    for metric, ratio, measure in [
        ("flip_probability", "flip_rate", flips),
        ("top5_distance", "top5_distance_ratio", distance),
        ("zipf_distance", None, zipf),
    ]:
        own, other = expected("model", measure), expected("base", measure)
        assert numbers(found, metric) == own
        if ratio:
            assert numbers(found, ratio) == {cell: own[cell] / other[cell] for cell in own}
            assert numbers(found, f"mean_{ratio}") == {
                (None, None): own["tilt", 1] / other["tilt", 1],
                (None, 2): np.mean([own[cell] / other[cell] for cell in (("tilt", 2), ("gaussian_noise", 2))]),
                (None, 3): own["tilt", 3] / other["tilt", 3],
            }


def test_the_baseline_beside_itself_is_one_by_definition() -> None:
    answers = stored({("tilt", 1): walk(0), ("scale", 1): walk(1)})
    found = findings_of(PerturbationStudy([BASE], FRAMES, baseline=BASE), lambda run: answers)
    ratios = [one for one in found if isinstance(one, Measurement) and one.metric in ("flip_rate", "mean_flip_rate")]
    assert len(ratios) == 2 * 3 + 3
    assert all(one.value == 1 and one.ends is None for one in ratios)


def test_alexnet_is_the_baseline_only_of_the_published_videos(predictions_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = frames_of(predictions_of, ("tilt", 1, TILT), ("scale", 1, NOISE))

    def found(**options: Any) -> tuple[dict[Any, Any], list[str]]:
        study = PerturbationStudy([MODEL], FRAMES, **options)
        return numbers(findings_of(study, lambda run: answers), "flip_rate"), skipped_by(study, lambda run: answers)

    rates, reasons = found()
    assert rates == {}
    assert any("give --baseline MODEL" in reason for reason in reasons)
    # a few of the videos are not those that the published numbers are of
    assert found(published="imagenet-p") == (rates, reasons)
    monkeypatch.setattr("shiftproof.studies.perturbation.study.LIKE_IMAGENET_P", 2)
    rates, reasons = found(published="imagenet-p")
    assert rates == {("tilt", 1): 0.2 / 0.0705, ("scale", 1): 0.5 * (2 / 5 + 1 / 5) / 0.23531}
    assert all("top-5 distance is not public" in reason for reason in reasons)
    assert len(reasons) == 1
    study = PerturbationStudy([MODEL], FRAMES, baseline="alexnet")
    told = next(one for one in findings_of(study, lambda run: answers) if getattr(one, "metric", "") == "mean_flip_rate")
    assert isinstance(told, Measurement)
    assert "of other images" in told.convention["baseline"]
    assert numbers(findings_of(study, lambda run: answers), "top5_distance_ratio") == {}
    assert told.convention["perturbations"] == "tilt, scale"


def test_alexnets_flip_probabilities_are_the_published_ones() -> None:
    flips = alexnet_flips()
    assert list(flips) == [*IMAGENET_P, "speckle_noise", "gaussian_blur", "spatter", "shear"]
    assert np.mean([flips[name] for name in IMAGENET_P]) == pytest.approx(0.140463, abs=1e-9)
    assert [flips[name] for name in flips if name not in IMAGENET_P] == [0.18649, 0.02775, 0.05053, 0.10658]


def test_several_sets_are_measured_together_under_one_name(predictions_of: Any) -> None:
    sets = [DatasetRef("tilt of photos", "4"), DatasetRef("scale of photos", "5")]
    answers = {
        sets[0]: frames_of(predictions_of, ("tilt", 1, TILT)),
        sets[1]: frames_of(predictions_of, ("scale", 1, NOISE)),
    }
    together = frames_of(predictions_of, ("tilt", 1, TILT), ("scale", 1, NOISE))
    apart = PerturbationStudy([MODEL], datasets=sets, name="frames")
    assert [(run.dataset, run.condition.picture) for run in apart.runs()] == [(images, "whole") for images in sets]
    one, other = (
        [repr(found) for found in findings_of(study, load) if isinstance(found, Measurement)]
        for study, load in [
            (apart, lambda run: answers[run.dataset]),
            (PerturbationStudy([MODEL], FRAMES), lambda run: together),
        ]
    )
    assert one == other
    galleries = [found for found in findings_of(apart, lambda run: answers[run.dataset]) if isinstance(found, Gallery)]
    assert {gallery.dataset for gallery in galleries} == set(sets)


def test_the_least_stable_photos_are_those_with_most_flips(predictions_of: Any) -> None:
    answers = frames_of(predictions_of, ("tilt", 1, TILT), ("shot_noise", 1, NOISE))
    gallery = next(
        one for one in findings_of(PerturbationStudy([MODEL], FRAMES), lambda run: answers) if isinstance(one, Gallery)
    )
    assert [(item.id, item.caption) for item in gallery.items] == [
        ("a/shot_noise_1/00", "shot_noise: differs from the first frame in 2 of 5"),
        ("a/tilt_1/00", "tilt: flips in 2 of 5"),
        ("b/shot_noise_1/00", "shot_noise: differs from the first frame in 1 of 5"),
    ]


def test_a_sequence_with_a_missing_frame_is_left_out_with_its_image_and_counted(predictions_of: Any) -> None:
    whole = frames_of(predictions_of, ("tilt", 1, {**TILT, "c": [0, 1, 0, 1, 0, 1]}), ("scale", 1, {**NOISE, "c": [0] * 6}))
    answers = whole.take(np.array([key != "c/tilt_1/03" for key in whole.ids]))
    found: list[Any] = findings_of(PerturbationStudy([MODEL], FRAMES), lambda run: answers)
    assert numbers(found, "flip_probability")["tilt", 1] == 0.2
    assert {one.images for one in found if isinstance(one, Measurement)} == {2}
    assert found[0].convention["sequences left out"] == "1, because frames are missing"
    assert found[0].convention["images left out"] == "1, because some of their sequences are missing"


def test_a_baseline_that_never_flips_is_told_and_not_divided_by(predictions_of: Any) -> None:
    still = {name: [0] * 6 for name in TILT}
    answers = {
        "model": frames_of(predictions_of, ("tilt", 1, TILT), ("scale", 1, TILT)),
        "base": frames_of(predictions_of, ("tilt", 1, still), ("scale", 1, TILT)),
    }
    study = PerturbationStudy([MODEL], FRAMES, baseline=BASE)
    found = findings_of(study, lambda run: answers[run.model.name])
    assert set(numbers(found, "flip_rate")) == {("scale", 1), ("scale", 2), ("scale", 3)}
    assert numbers(found, "mean_flip_rate") == {}
    assert any("base never flips under tilt" in reason for reason in skipped_by(study, lambda run: answers[run.model.name]))


def test_sequences_too_short_for_a_step_are_told(predictions_of: Any) -> None:
    short = {name: frames[:3] for name, frames in TILT.items()}
    answers = frames_of(predictions_of, ("tilt", 1, short))
    study = PerturbationStudy([MODEL], FRAMES)
    assert set(numbers(findings_of(study, lambda run: answers), "flip_probability")) == {("tilt", 1), ("tilt", 2)}
    assert any("too short for tilt at difficulty 3" in reason for reason in skipped_by(study, lambda run: answers))


def test_images_that_are_no_frames_give_a_reason(predictions_of: Any) -> None:
    answers = predictions_of([0, 1], [0, 1])
    study = PerturbationStudy([MODEL], FRAMES)
    assert findings_of(study, lambda run: answers) == []
    assert any("needs sequences" in reason for reason in skipped_by(study, lambda run: answers))


def test_slips_are_told_at_once() -> None:
    with pytest.raises(BadInput, match="dataset"):
        PerturbationStudy([MODEL])
    with pytest.raises(UnknownName, match="alexnet"):
        PerturbationStudy([MODEL], FRAMES, baseline="alexnett")


def test_the_study_is_a_public_name() -> None:
    assert shiftproof.PerturbationStudy is PerturbationStudy
