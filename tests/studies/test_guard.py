"""A guard accepts or abstains as its record says, survives its folder, and refuses what it cannot judge in a sentence."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ood.made_up import CLASSES, FEATURES, inside, outside
from ood.test_detector_contract import FOR_FEW_IMAGES
from shiftproof.bench.watched import scores_from
from shiftproof.errors import BadInput, NotKept
from shiftproof.metrics.likelihood import fit_temperature
from shiftproof.ood import ready
from shiftproof.ood.kept import keep_detector
from shiftproof.studies.guard.card import card_of
from shiftproof.studies.guard.findings import findings_of
from shiftproof.studies.guard.guard import (
    ARRAYS,
    RECORD,
    Guard,
    GuardedModel,
    GuardRecord,
    Point,
    load_guard,
    save_guard,
    sealed,
)
from shiftproof.studies.guard.making import (
    between_scores,
    calibration_of,
    coverages_of,
    largest_difference,
    needed_of,
    sets_of,
)
from shiftproof.studies.guard.section import EVIDENCE
from shiftproof.studies.guard.watching import LOG, Observation, Watch, WatchLog, from_score, observed, scores_in
from shiftproof.studies.threshold.expected import Expected, Share, UsedImages
from shiftproof.types import Curve, Outputs, Predictions

SOME = Share(0.05, 0.02, 0.09, 240)


def a_guard(name: str = "mahalanobis", *, gives: str = "logits") -> Guard:
    """A guard whose threshold is the 95th percentile of scores of images that the network knows."""
    known = inside(240, seed=11)
    if gives == "probabilities":
        known = as_probabilities(known)
    detector = ready(name, inside(600), parameters=FOR_FEW_IMAGES.get(name))
    features, head = needed_of(detector, known)
    scores = np.sort(detector(known))
    expected = Expected("on made-up images", SOME, SOME, 0.1, {"made-up": {"false_alarms": SOME}})
    calibration = calibration_of(known)
    record = GuardRecord(
        model=GuardedModel("made-up", "1c0ffee1", known.gives, CLASSES, FEATURES if features else 0, "not declared"),
        detector=keep_detector(detector).plain,
        goal="new-class",
        false_alarm_cost=1.0,
        miss_cost=1.0,
        ood_share=0.2,
        points=(
            Point("FPR at most 5 %", float(scores[228] + scores[227]) / 2, expected),
            Point("never", math.inf, expected),
        ),
        calibration=calibration,
        promised=0.9,
        least_probability=sets_of(known, calibration.temperature, 0.9),
        coverage=coverages_of(known, {"noisy": outside()}, "made-up", 0.9),
        datasets=(UsedImages("made-up", "ab", 240, 0),),
        notes=("a | note",),
        made="2026-01-01",
        versions={"shiftproof": "0"},
    )
    return Guard(record, detector, scores.astype(np.float64), head)


def as_probabilities(predictions: Predictions) -> Predictions:
    powers = np.exp(predictions.need_logits() - predictions.need_logits().max(axis=1, keepdims=True))
    return dataclasses.replace(predictions, gives="probabilities", logits=powers / powers.sum(axis=1, keepdims=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    guard = a_guard()
    save_guard(guard, tmp_path / "guard", card=card_of(guard.record, len(guard.reference)))
    return tmp_path / "guard"


@pytest.mark.parametrize("name", ["msp", "mahalanobis", "knn", "ash_s", "vim+msp"])
def test_a_guard_says_the_same_after_its_folder(name: str, tmp_path: Path) -> None:
    guard = a_guard(name)
    again = load_guard(save_guard(guard, tmp_path / "guard").folder or "")
    known, other = inside(50, seed=12), outside(50)
    for images in (known, other):
        before, after = (one.check(images.need_logits(), images.features) for one in (guard, again))
        for ours, theirs in zip(before, after, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(before.ood_score, guard.detector(images))
    assert guard.check(known.need_logits(), known.features).accept.mean() > 0.8
    assert guard.check(other.need_logits(), other.features).accept.mean() < 0.4
    assert json.loads(again.record.to_json()) == json.loads((tmp_path / "guard" / RECORD).read_text())


def test_reasons_and_probabilities_are_those_of_each_image() -> None:
    guard, images = a_guard("msp"), inside(6, seed=2)
    logits = images.need_logits().copy()
    logits[3:] = 20 * np.eye(CLASSES)[3:6]
    logits[0], logits[1, 3], logits[2] = 0, math.nan, math.inf
    found = guard.check(logits)
    assert found.reason.tolist() == ["ood_score", "not_finite", "not_finite", "accepted", "accepted", "accepted"]
    assert found.accept.tolist() == [False, False, False, True, True, True]
    assert np.isnan(found.ood_score[1:3]).all()
    assert np.isnan(found.calibrated_probability[1:3]).all()
    assert found.predicted.tolist() == [0, -1, -1, 3, 4, 5]
    scaled = logits[3].astype(float) / guard.record.calibration.temperature
    assert found.calibrated_probability[3] == pytest.approx(1 / np.exp(scaled - scaled.max()).sum())


def test_one_image_no_image_and_lists_are_taken() -> None:
    guard, images = a_guard("energy"), inside(3)
    whole = guard.check(images.need_logits())
    alone = guard.check(images.need_logits()[1])
    assert alone.ood_score == pytest.approx(whole.ood_score[[1]])
    assert guard.check(images.need_logits().tolist()).accept.tolist() == whole.accept.tolist()
    assert len(guard.check(np.zeros((0, CLASSES))).accept) == 0


def test_a_model_that_gives_probabilities_is_calibrated_by_their_logarithms() -> None:
    plain, given = a_guard("msp"), a_guard("msp", gives="probabilities")
    assert given.record.calibration.temperature == pytest.approx(plain.record.calibration.temperature, rel=1e-5)
    images = inside(20, seed=4)
    ours = plain.check(images.need_logits())
    theirs = given.check(as_probabilities(images).need_logits())
    np.testing.assert_allclose(ours.calibrated_probability, theirs.calibrated_probability, rtol=1e-4)


@pytest.mark.parametrize(
    ("logits", "features", "told"),
    [
        (np.zeros((2, 5)), np.zeros((2, FEATURES)), "logits should be (images, 12), since made-up has 12 classes"),
        (np.zeros((2, CLASSES)), None, "mahalanobis reads features"),
        (np.zeros((2, CLASSES)), np.zeros((2, 7)), "features should be (images, 48)"),
        (np.zeros((2, CLASSES)), np.zeros((3, FEATURES)), "logits are of 2 images and features of 3"),
        (np.zeros((2, CLASSES, 1)), np.zeros((2, FEATURES)), "got shape (2, 12, 1)"),
        ([["a"] * CLASSES], np.zeros((1, FEATURES)), "should be an array of numbers"),
    ],
)
def test_what_does_not_fit_the_model_is_refused_in_a_sentence(logits: object, features: object, told: str) -> None:
    with pytest.raises(BadInput) as said:
        a_guard().check(logits, features)  # type: ignore[arg-type]
    assert told in str(said.value)


def test_another_threshold_is_chosen_by_its_name() -> None:
    guard, images = a_guard("msp"), outside()
    assert guard.at("never").check(images.need_logits()).accept.all()
    assert not guard.check(images.need_logits()).accept.all()
    with pytest.raises(BadInput, match="it has FPR at most 5 %, never"):
        guard.at("FPR at most 1 %")


def test_a_detector_of_another_output_is_refused_by_its_name() -> None:
    images = dataclasses.replace(inside(10), extra=np.full((10, 1), 0.5))
    with pytest.raises(NotKept, match="confidence reads a further output of the model"):
        needed_of(ready("confidence"), images)


def test_temperature_and_coverage_are_worked_out_again() -> None:
    known = inside(240, seed=11)
    assert calibration_of(known).temperature == fit_temperature(known.labels, known.need_logits())
    (clean,) = coverages_of(known, {}, "made-up", 0.9)
    assert 0.8 < clean.covered.value <= 1
    assert clean.covered.images == 240
    # the same photos with another class as their label: sets that hold the old one miss the new one
    moved = dataclasses.replace(known, labels=(known.labels + 6) % CLASSES)
    _, shifted = coverages_of(known, {"moved": moved}, "made-up", 0.9)
    assert shifted.covered.value < 0.5
    assert shifted.accuracy == 0
    with pytest.raises(BadInput, match="either needs 20"):
        calibration_of(inside(30))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda folder: (folder / RECORD).unlink(), "holds no finished guard"),
        (lambda folder: (folder / ARRAYS).unlink(), "cannot be read"),
        (lambda folder: flip(folder / ARRAYS, -3), "is not the file that guard.json was written with"),
        (lambda folder: flip(folder / RECORD, 40), "is damaged, or was changed after it was written"),
        (lambda folder: (folder / RECORD).write_text("[]"), "no format number"),
        (lambda folder: (folder / RECORD).write_text("{"), "is not JSON"),
        (lambda folder: edit(folder, format=99), "written by a newer shiftproof"),
        (lambda folder: edit(folder, points=[]), "damaged"),
        (lambda folder: edit(folder, detector={"name": "os.system"}), "damaged"),
        (lambda folder: edit(folder, calibration={}), "damaged"),
        (lambda folder: edit(folder, least_probability="a"), "damaged"),
        (lambda folder: edit(folder, files={}), "is not the file"),
        (lambda folder: edit(folder, model={**told_of(folder)["model"], "classes": 0}), "damaged"),
        (lambda folder: edit(folder, model={**told_of(folder)["model"], "features": 47}), "damaged"),
        (lambda folder: edit(folder, model={**told_of(folder)["model"], "gives": "scores"}), "damaged"),
    ],
)
def test_a_folder_that_is_not_whole_is_refused_in_a_sentence(folder: Path, change: object, told: str) -> None:
    change(folder)  # type: ignore[operator]
    with pytest.raises(BadInput) as said:
        load_guard(folder)
    assert told in str(said.value)


def told_of(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / RECORD).read_text())
    return told


def edit(folder: Path, **changes: object) -> None:
    """As somebody would who knows what is written: the digest is right."""
    (folder / RECORD).write_text(json.dumps(sealed({**told_of(folder), **changes})))


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0x10
    path.write_bytes(data)


def test_what_is_written_over_a_guard_is_no_guard_until_it_is_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shiftproof.studies.guard import guard as module

    def killed(path: Path, data: bytes) -> None:
        if path.name == ARRAYS:
            raise KeyboardInterrupt
        path.write_bytes(data)

    monkeypatch.setattr(module, "write_whole", killed)
    with pytest.raises(KeyboardInterrupt):
        save_guard(a_guard("msp"), folder)
    with pytest.raises(BadInput, match="holds no finished guard"):
        load_guard(folder)


def test_a_guard_is_used_with_numpy_alone(folder: Path) -> None:
    code = (
        "import sys, numpy as np, shiftproof as sp\n"
        f"guard = sp.load_guard({str(folder)!r})\n"
        f"guard.check(np.zeros((2, {CLASSES})), np.zeros((2, {FEATURES})))\n"
        "print(*({'scipy', 'PIL', 'cv2', 'onnx', 'onnxruntime', 'torch', 'jinja2', 'rich', 'click'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


def test_the_card_says_what_was_promised_and_measured(folder: Path) -> None:
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "# Guard of made-up" in card
    assert "| made-up | 90.0\u202f% |" in card
    assert "a | note" in card


def test_a_watch_goes_on_from_its_log_as_if_never_stopped(folder: Path, tmp_path: Path) -> None:
    guard = load_guard(folder)
    generator = np.random.default_rng(1)
    scores = [*generator.choice(guard.reference, 150), *(generator.choice(guard.reference, 150) * 3)]
    stream = [from_score(guard, f"{number}", float(score)) for number, score in enumerate(scores)]
    once = Watch(guard)
    once.add(stream)
    for start in range(0, 300, 70):
        watch = Watch(guard)
        log = WatchLog(tmp_path / "watch", watch)
        assert log.resume() == start
        log.append(stream[start : start + 70])
        with log.path.open("ab") as file:  # a kill cuts the next line off
            file.write(b'{"id": "cut o')
    assert watch.to_json() == once.to_json()
    assert watch.alarm is not None
    assert 150 < watch.alarm < 250
    assert abs((watch.began or 0) - 151) < 20
    lines = [json.loads(line) for line in (tmp_path / "watch" / LOG).read_bytes().splitlines()[1:-1]]
    assert [line["evidence"] for line in lines] == once.test.history
    windows = list(once.windows())
    assert [one.images for one in windows] == [100, 100, 100]
    assert sum(round(one.abstained.value * one.images) for one in windows) == once.reasons["ood_score"]


def test_a_log_of_another_guard_or_of_something_else_is_refused(folder: Path, tmp_path: Path) -> None:
    guard = load_guard(folder)
    log = WatchLog(tmp_path, Watch(guard))
    log.resume()
    log.append([from_score(guard, "a", 1.0)])
    with pytest.raises(BadInput, match="begun with another guard or threshold"):
        WatchLog(tmp_path, Watch(guard.at("never"))).resume()
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + b'{"id": 3}\n')
    with pytest.raises(BadInput, match=r"line 3 of .* is damaged"):
        WatchLog(tmp_path, Watch(guard)).resume()
    log.path.write_bytes(b"7\n")
    with pytest.raises(BadInput, match="is not a log of shiftproof watch"):
        WatchLog(tmp_path, Watch(guard)).resume()


def test_images_without_a_number_are_abstained_on_and_take_no_part_in_the_test(folder: Path) -> None:
    guard, images = load_guard(folder), inside(5)
    logits = images.need_logits().copy()
    logits[2] = np.nan
    seen = observed(guard, list("abcde"), logits, images.features)
    assert seen[2] == Observation("c", None, False, "not_finite")
    assert seen[0].entropy == pytest.approx(entropy(logits[0] / guard.record.calibration.temperature), rel=1e-5)
    watch = Watch(guard)
    lines = watch.add(seen)
    assert len(watch.test.ranks) == 4
    assert lines[2]["rank"] is None
    assert lines[2]["evidence"] == lines[1]["evidence"]


def entropy(logits: np.ndarray[tuple[int], np.dtype[np.floating]]) -> float:
    shares = np.exp(logits.astype(float) - logits.max())
    shares /= shares.sum()
    return float(-(shares * np.log(shares)).sum())


def test_scores_from_elsewhere_are_read_row_by_row() -> None:
    guard = a_guard("msp")
    rows = [{"ood_score": "-0.9", "id": "x", "calibrated_probability": "0.8"}, {"ood_score": None}, -1.0]
    found = list(scores_in(rows, guard, "here"))
    assert [one.id for one in found] == ["x", "2", "3"]
    assert [one.ood_score for one in found] == [-0.9, None, -1.0]
    assert found[0].calibrated_probability == 0.8
    with pytest.raises(BadInput, match="row 1 of here has no number called ood_score"):
        list(scores_in([{"score": 1}], guard, "here"))
    with pytest.raises(BadInput, match="row 1 of here has a number that is too large"):
        list(scores_in([{"ood_score": 10**400}], guard, "here"))


def test_a_threshold_keeps_the_rate_that_it_was_chosen_for() -> None:
    negatives = np.arange(100.0)
    fresh = np.arange(10_001) / 100  # images of the same kind that it was not chosen on
    shipped = between_scores(99.0, negatives)
    assert 99 - 1e-3 < shipped < 99
    assert (fresh >= shipped).mean() == (fresh >= 99).mean()
    assert between_scores(2.0, np.array([2 - 1e-8, 2.0])) == pytest.approx(2 - 5e-9, abs=1e-12)
    assert between_scores(math.inf, negatives) == math.inf


def test_a_threshold_beside_saturated_scores_stays_above_them() -> None:
    above = float(np.nextafter(-1, 0))
    assert between_scores(above, np.array([-1, above, -0.9])) == above


@pytest.mark.parametrize("output", ["ood_score", "calibrated_probability"])
def test_a_difference_that_is_no_number_is_not_passed_over(output: str) -> None:
    guard, logits = a_guard("msp"), inside(4).need_logits()
    found = guard.check(logits)
    by_graph = {name: getattr(found, name).copy() for name in ("ood_score", "calibrated_probability", "accept")}
    assert largest_difference(guard, Outputs(logits), by_graph) == 0
    by_graph[output][2] = math.nan
    assert math.isnan(largest_difference(guard, Outputs(logits), by_graph))


def test_the_curve_of_evidence_counts_images_as_the_alarm_does() -> None:
    guard = a_guard("msp")
    watch = Watch(guard)
    stream = [from_score(guard, "none", math.nan)] * 50 + [from_score(guard, "far", 9.0)] * 30
    watch.add(stream)
    curves = [one for one in findings_of(watch, {}, None) if isinstance(one, Curve) and one.name == EVIDENCE]
    evidence, level = curves
    assert evidence.x == (0, *range(51, 81))
    crossed = next(x for x, y in zip(evidence.x, evidence.y, strict=True) if y >= level.y[0])
    assert watch.alarm == crossed
    assert watch.tested[0] == 51


@pytest.mark.parametrize(
    ("name", "text", "ids", "told"),
    [
        ("a.jsonl", '{"id": "a", "ood_score": 1}\n{"id": "b", "ood_score": 2}', "ab", False),
        ("a.jsonl", '{"id": "a", "ood_score": 1}\n{"id": "b", "ood_sc', "a", True),
        ("a.jsonl", "1.5\n2", "1", True),  # perhaps of 27
        ("a.jsonl", '{"id": "a", "ood_score": 1}\n  ', "a", False),
        ("a.csv", "id,ood_score\na,-0.5\nb,-0.", "a", True),
        ("a.csv", "id,ood_score\r\na,-0.5\r\n\r\nb,-0.25\r\n", "ab", False),
        ("a.csv", "id,ood_score\na,-0.5\nb,-0.25\n", "ab", False),
        ("a.csv", 'ood_score,id\n-0.5,a\n-0.25,"b\n', "a", True),  # a quoted cell goes on behind the line break
        ("a.csv", "id,ood_sc", "", True),
        ("a.csv", "id,ood_score\n", "", False),
        ("a.csv", "", "", False),
    ],
)
def test_a_row_that_may_be_half_written_is_left_and_told(tmp_path: Path, name: str, text: str, ids: str, told: bool) -> None:
    path, said = tmp_path / name, list[str]()
    path.write_bytes(text.encode())
    assert [one.id for one in scores_from(str(path), a_guard("msp"), said.append)] == list(ids)
    assert ["if it is whole, end it with a line break" in one for one in said] == [True] * told


def test_half_a_letter_at_the_end_of_a_table_is_left_too(tmp_path: Path) -> None:
    path, said = tmp_path / "a.csv", list[str]()
    path.write_bytes("ood_score,id\n-0.5,a\n-0.25,é".encode()[:-1])
    assert [one.id for one in scores_from(str(path), a_guard("msp"), said.append)] == ["a"]
    assert len(said) == 1


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.jsonl", b'{"ood_score": 1' + b"0" * 400 + b"}\n", "row 1 of .* has a number that is too large"),
        ("a.csv", b"ood_score\n" + b"1" * 131_073 + b"\n", "is no table of scores, at line 2: field larger than"),
        ("a.npy", b"PK\x05\x06" + bytes(18), "is no array of scores"),  # an empty zip
        ("a.npy", b"PK\x03\x04", "is no array of scores"),
    ],
)
def test_files_of_scores_that_cannot_be_read_are_told_in_a_sentence(
    tmp_path: Path, name: str, data: bytes, told: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(BadInput, match=told):
        list(scores_from(str(tmp_path / name), a_guard("msp"), print))
