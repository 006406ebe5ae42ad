"""What OOD scores say of a model: whether new classes and its own failures can be told, also once images are shifted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shiftproof.judging import Candidate, Judge, Judged, Said, rule
from shiftproof.metrics.wording import figure
from shiftproof.studies.ood.scores import ALL_OOD
from shiftproof.types import Axis, Measurement, NextStep, Standard

SECTION = "ood"
GOALS = {"failure": ("failure", "Failure detection (AUROC)"), "new-class": ("ood", "New-class detection (AUROC)")}
"""Goals, each with the name and the title of its axis."""
WEAK, GOOD = 0.70, 0.90


def axes(judged: Judged) -> Iterator[Axis]:
    """The first detector's AUROC, the baseline's, on unchanged images: choosing the best would flatter."""
    for goal, (name, title) in GOALS.items():
        cases = _cases(judged, goal)
        for (dataset, shown, _), found in cases.items():
            if dataset == shown:
                standard = rule("auroc", weak=WEAK, good=GOOD, worse="below")
                yield Axis(name, title, found[0], SECTION, standard)


def candidates(judged: Judged) -> Iterator[Candidate]:
    """Every goal on every ID set: a weakness of the model only where even its best detector is weak."""
    standard = Standard("rule: AUROC of the best detector at least 70 %", WEAK, worse="below")
    for goal in GOALS:
        for (_, shown, _), found in _cases(judged, goal).items():
            best = max(found, key=lambda one: one.interval.high if one.interval else one.value)
            yield Candidate(best, standard, f"{goal} detection", shown, SECTION, _say)


def _cases(judged: Judged, goal: str) -> dict[tuple[str, str, str], Sequence[Measurement]]:
    """AUROC of each detector by dataset, ID images and OOD images: all OOD images together where there are several sets."""
    found: dict[tuple[str, str, str], list[Measurement]] = {}
    for one in judged.numbers("auroc", goal=goal):
        found.setdefault((str(one.about["dataset"]), str(one.about["id"]), str(one.about["ood"])), []).append(one)
    pooled = {(dataset, shown) for dataset, shown, ood in found if ood == ALL_OOD}
    return {key: some for key, some in found.items() if key[2] == ALL_OOD or key[:2] not in pooled}


def _say(judged: Judged, found: Measurement) -> Said:
    missed = "new classes" if found.about["goal"] == "new-class" else "its own failures"
    shifted = found.about["id"] != found.about["dataset"]
    when = f" once images are shifted ({found.about['id']})" if shifted else ""
    auroc = figure(found.value, "share")
    sentence = f"Does not notice {missed}{when}: AUROC {auroc} with its best detector, {found.about['ood_detector']}"
    told = "Try detectors that learn from training images: their folder in place of TRAINING_IMAGES."
    step = NextStep(told, {"ood": {"training": "TRAINING_IMAGES"}}, "ood.html")
    return Said(sentence, step, judged.example(found, {"side": "ood"}, "score_percentiles"))


JUDGE = Judge(axes, candidates)
