"""What perturbation sequences say of a model: how often its prediction flips from frame to frame."""

from __future__ import annotations

from collections.abc import Iterator

from shiftproof.judging import Candidate, Judge, Judged, Said, column, published, rule
from shiftproof.metrics.wording import figure
from shiftproof.types import Axis, Measurement, NextStep, Standard

SECTION = "perturbation"
FLIPS = 0.10
"""Share of frames on which the prediction may flip."""
TABLE = "imagenet_p_models"


def axes(judged: Judged) -> Iterator[Axis]:
    """MFR among published models where it compares, else flips by a rule."""
    for found in judged.overall("mean_flip_probability"):
        ratios = judged.overall("mean_flip_rate")
        compared = [one for one in ratios if one.about == found.about and one.baseline and one.baseline.alexnet]
        if compared and judged.knows_imagenet:
            known = column(TABLE, "mfr")
            standard = published(known, f"{len(known)} published models on ImageNet-P", worse="above")
            yield Axis("perturbation", "Perturbation (mFR)", compared[0], SECTION, standard)
        else:
            standard = rule(found.metric, weak=FLIPS, good=FLIPS / 4, worse="above")
            yield Axis("perturbation", "Flips under perturbation", found, SECTION, standard)


def candidates(judged: Judged) -> Iterator[Candidate]:
    """Every perturbation at the first difficulty, which compares neighbouring frames as published numbers do."""
    standard = Standard("rule: at most every tenth frame", FLIPS, worse="above")
    for found in judged.numbers("flip_probability", difficulty=1):
        name = str(found.about["perturbation"])
        yield Candidate(found, standard, "perturbations", name, SECTION, _say)


def _say(judged: Judged, found: Measurement) -> Said:
    name = str(found.about["perturbation"])
    sentence = f"Under {name.replace('_', ' ')} the prediction flips on {figure(found.value, 'share')} of frames"
    told = "Look at the sequences of this perturbation alone."
    step = NextStep(told, {"perturbation": {"perturbations": (name,)}}, f"{name}.html")
    return Said(sentence, step, judged.example(found, {"perturbation": name, "difficulty": 1}))


JUDGE = Judge(axes, candidates)
