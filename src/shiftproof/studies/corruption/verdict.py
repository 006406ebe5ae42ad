"""What corruptions say of a model: how much accuracy they take, and whether its confidence follows."""

from __future__ import annotations

from collections.abc import Iterator

from shiftproof.judging import Candidate, Judge, Judged, Said, column, published, rule
from shiftproof.metrics.wording import points
from shiftproof.types import Axis, Measurement, NextStep, Standard

SECTION = "corruption"
A_STEP = 0.05
"""Accuracy that each step of severity may take."""
OVERCONFIDENT = 0.05
"""How far mean confidence may lie above accuracy, as on clean images."""
TABLE = "imagenet_c_models"


def axes(judged: Judged) -> Iterator[Axis]:
    """MCE among published models where it compares, else what corruptions take by a rule."""
    for found in judged.overall("relative_corrupted_error"):
        ratios = judged.overall("mean_corruption_error")
        compared = [one for one in ratios if one.about == found.about and one.baseline and one.baseline.alexnet]
        if compared and judged.knows_imagenet:
            known = column(TABLE, "mce")
            standard = published(known, f"{len(known)} published models on ImageNet-C", worse="above")
            yield Axis("corruption", "Corruption (mCE)", compared[0], SECTION, standard)
        else:
            allowed = A_STEP * _mean_severity(judged, found)
            standard = rule(found.metric, weak=allowed, good=allowed / 2, worse="above", why="5 points a step of severity")
            yield Axis("corruption", "Accuracy lost to corruptions", found, SECTION, standard)


def _mean_severity(judged: Judged, found: Measurement) -> float:
    cells = judged.numbers("corrupted_error", dataset=found.about["dataset"])
    severities = {int(one.about["severity"]) for one in cells}
    return sum(severities) / len(severities) if severities else 3.0


def candidates(judged: Judged) -> Iterator[Candidate]:
    """Every cell, or where only some images were run in each, every corruption."""
    cells = judged.numbers("corruption_loss")
    for found in cells:
        severity = int(found.about["severity"])
        told = "rule: at most 5 points for each step of severity"
        standard = Standard(told, A_STEP * severity, worse="above")
        yield Candidate(found, standard, "corruptions", _name(found), SECTION, _loss)
    for found in judged.numbers("corruption_mean_loss") if not cells else ():
        mean = _mean_severity(judged, found)
        told = "rule: at most 5 points for each step of severity, on average"
        standard = Standard(told, A_STEP * mean, worse="above")
        yield Candidate(found, standard, "corruptions", _name(found), SECTION, _loss)
    standard = Standard("rule: mean confidence at most 5 points above accuracy", OVERCONFIDENT, worse="above")
    for found in judged.numbers("corrupted_overconfidence"):
        kind = "corruptions with overconfidence"
        yield Candidate(found, standard, kind, _name(found), SECTION, _too_sure)


def _name(found: Measurement) -> str:
    return str(found.about["corruption"]).replace("_", " ")


def _where(found: Measurement) -> str:
    return f"{_name(found)} at severity {found.about['severity']}" if "severity" in found.about else _name(found)


def _shows(found: Measurement) -> dict[str, str | int]:
    return {key: found.about[key] for key in ("corruption", "severity") if key in found.about}


def _loss(judged: Judged, found: Measurement) -> Said:
    where = _where(found)
    sentence = f"{where[:1].upper()}{where[1:]} takes {points(found.value)} of accuracy"
    name = str(found.about["corruption"])
    told = f"Look closer at {_name(found)}: its error by severity, and the photos it costs."
    step = NextStep(told, {"corruption": {"corruptions": (name,)}}, f"{name}.html")
    return Said(sentence, step, judged.example(found, _shows(found)))


def _too_sure(judged: Judged, found: Measurement) -> Said:
    sentence = f"Over-confident by {points(found.value)} under {_where(found)}"
    shifted = f"{found.about['corruption']}:{found.about['severity']}"
    told = "Do not act on its confidence for such images: see how well failures are detected under it."
    step = NextStep(told, {"ood": {"shifted": (shifted,)}}, "failures.html")
    return Said(sentence, step, judged.example(found, _shows(found)))


JUDGE = Judge(axes, candidates)
