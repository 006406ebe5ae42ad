"""Findings as the OOD study gives them, measured on scores drawn at random: what is told must hang together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shiftproof.types import Curve, DatasetRef, Finding, Gallery, GalleryItem, Interval, Measurement

Scores = NDArray[np.floating]

PHOTOS = DatasetRef("photos", "f00d", "/photos")
CLOTHES = DatasetRef("clothing", "c107", "/clothing")
INSIDE, TOOLS, POOLED = "photos", "tools", "all OOD"
SHIFTED = {"fog 3": 0.6, "zoom blur 4": 1.4, "gaussian noise 5": 1.1}
OUTSIDE = {"clothing": 300, TOOLS: 200}
DETECTORS = {  # what new classes, mistakes and new styles add to the score
    "msp": (1.1, 1.5, 0.5),
    "max_logit": (1.3, 1.1, 0.7),
    "energy": (1.3, 1.0, 0.8),
    "entropy": (1.15, 1.45, 0.55),
    "gradnorm": (0.8, 0.5, 0.9),
    "max_cosine": (1.2, 1.1, 0.8),
    "ash_b": (1.2, 0.9, 0.8),
    "react": (0.6, 0.4, 0.9),
    "mahalanobis": (0.7, 0.2, 1.8),
    "relative_mahalanobis": (1.3, 0.7, 0.9),
    "vim": (1.6, 0.8, 1.5),
    "knn": (0.5, 0.1, 1.9),
}
BASELINE = "msp"
HOW = {"positive": "ood", "preset": "authors"}


@dataclass(frozen=True)
class Drawn:
    """Scores of one model: a row for each detector, the same images for all."""

    model: str
    detectors: Sequence[str]
    images: int = 600
    seed: int = 5

    @cached_property
    def correct(self) -> NDArray[np.bool_]:
        return np.random.default_rng(self.seed).random(self.images) < 0.76

    @cached_property
    def groups(self) -> Mapping[str, Mapping[str, Scores]]:
        """By detector, then by set."""
        rng = np.random.default_rng(self.seed + 1)
        common = {name: rng.normal(size=size) for name, size in self._sizes().items()}
        found = {}
        for place, name in enumerate(self.detectors):
            new, wrong, style = DETECTORS.get(name, (0.3 + 0.05 * place, 0.5, 0.8))
            id_set = wrong * ~self.correct
            pull: dict[str, Scores | float] = {INSIDE: id_set, "clothing": new * 1.1, TOOLS: new * 0.9}
            pull |= {shift: id_set + style * by for shift, by in SHIFTED.items()}
            found[name] = {
                key: 0.8 * common[key] + rng.normal(scale=0.6, size=len(common[key])) + pull[key] for key in common
            }
            found[name][POOLED] = np.concatenate([found[name][ood_set] for ood_set in OUTSIDE])
        return found

    def _sizes(self) -> dict[str, int]:
        return {INSIDE: self.images, **dict.fromkeys(SHIFTED, self.images), **OUTSIDE}


def auroc(id_set: Scores, ood_set: Scores) -> float:
    return float((ood_set[:, None] > id_set[None, :]).mean())


def interval(value: float, id_set: int, ood_set: int) -> tuple[float, float]:
    """Hanley and McNeil's, which needs nothing but the counts."""
    first, second = value / (2 - value), 2 * value**2 / (1 + value)
    variance = (
        (value * (1 - value) + (ood_set - 1) * (first - value**2) + (id_set - 1) * (second - value**2)) / id_set / ood_set
    )
    half = 1.96 * math.sqrt(max(variance, 1e-12))
    return value - half, min(1.0, value + half)


def ood_findings(model: str = "lite0", detectors: Sequence[str] = tuple(DETECTORS), *, seed: int = 5) -> Iterator[Finding]:
    """Everything of one model."""
    drawn = Drawn(model, detectors, seed=seed)
    yield from _separations(drawn)
    yield from _analyses(drawn)
    yield from _random_networks(drawn)
    yield from _curves(drawn)
    yield from _galleries(drawn)


def _measured(
    drawn: Drawn,
    metric: str,
    value: float,
    about: Mapping[str, str | int],
    sides: tuple[int, int] | None = None,
    convention: Mapping[str, str] | None = None,
) -> Measurement:
    """A number of so many ID and OOD images, with an interval where these are given."""
    told = {**HOW, **(convention or {})}
    if "ood_detector" in about:
        told["parameters"] = "temperature 1" if about["ood_detector"] == "energy" else "none"
    where = {"model": drawn.model, "dataset": INSIDE, **about}
    count = sum(sides) if sides else drawn.images
    return Measurement(
        metric, value, where, count, told, Interval(*interval(value, *sides), method="DeLong") if sides else None
    )


def _cases(drawn: Drawn, detector: str) -> Iterator[tuple[dict[str, str], Scores, Scores]]:
    groups = drawn.groups[detector]
    for id_set in (INSIDE, *SHIFTED):
        right, wrong = groups[id_set][drawn.correct], groups[id_set][~drawn.correct]
        for ood_set in (*OUTSIDE, POOLED):
            yield {"goal": "new-class", "id": id_set, "ood": ood_set}, groups[id_set], groups[ood_set]
            yield {"goal": "failure", "id": id_set, "ood": ood_set}, right, np.concatenate([wrong, groups[ood_set]])
        yield {"goal": "failure", "id": id_set, "ood": "mistakes alone"}, right, wrong


def _separations(drawn: Drawn) -> Iterator[Finding]:
    reached: dict[tuple[str, ...], dict[str, Measurement]] = {}
    for detector in drawn.detectors:
        for case, id_set, ood_set in _cases(drawn, detector):
            about, sides = {"ood_detector": detector, **case}, (len(id_set), len(ood_set))
            counts = {"id": f"{len(id_set):,} images", "ood": f"{len(ood_set):,} images"}
            value = auroc(id_set, ood_set)
            found = _measured(drawn, "auroc", value, about, sides, counts)
            reached.setdefault(tuple(case.values()), {})[detector] = found
            yield found
            yield _measured(drawn, "aupr_out", value**1.5, about)
            yield _measured(drawn, "aupr_in", value**0.5, about)
            yield _measured(drawn, "fpr_at_tpr", 1 - value**2, about, sides, {"tpr": "95 %"})
            yield _measured(drawn, "fpr_in_at_tpr", 1 - value**3, about, sides, {"tpr": "95 %"})
            if case["goal"] == "failure":
                yield _measured(drawn, "aurc", 0.5 * (1 - value), about)
                yield _measured(drawn, "e_aurc", 0.3 * (1 - value), about)
                yield _measured(drawn, "augrc", 0.2 * (1 - value), about)
                yield _measured(drawn, "coverage_at_risk", value**3, {**about, "risk": "5 %"})
    for found_by in reached.values():
        best = max(found_by, key=lambda name: found_by[name].value)
        for detector, versus in [
            (one, other) for other in dict.fromkeys((BASELINE, best)) for one in found_by if one != other
        ]:
            yield from _difference(found_by[detector], found_by[versus], versus)


def _difference(one: Measurement, other: Measurement, versus: str) -> Iterator[Measurement]:
    assert one.ends is not None
    gap, half = one.value - other.value, (one.ends[1] - one.ends[0]) / 2.5
    about = {**one.about, "versus": versus}
    yield Measurement("auroc_difference", gap, about, one.images, one.convention, Interval(gap - half, gap + half))
    p_value = math.erfc(abs(gap) / half * 1.96 / math.sqrt(2))
    yield Measurement("auroc_difference_p", p_value, about, one.images, {**one.convention, "correction": "Holm"})


def _analyses(drawn: Drawn) -> Iterator[Finding]:
    for id_set in (INSIDE, *SHIFTED):
        yield _measured(drawn, "id_accuracy", float(drawn.correct.mean()), {"id": id_set})
    for detector in drawn.detectors:
        groups = drawn.groups[detector]
        for id_set in (INSIDE, *SHIFTED):
            right, wrong = groups[id_set][drawn.correct], groups[id_set][~drawn.correct]
            about = {"ood_detector": detector, "id": id_set}
            yield _measured(drawn, "auroc_correct_wrong", auroc(right, wrong), about, (len(right), len(wrong)))
            for ood_set in (*OUTSIDE, POOLED):
                scores, where = groups[ood_set], {**about, "ood": ood_set}
                yield _measured(drawn, "auroc_correct_id", auroc(right, scores), where, (len(right), len(scores)))
                yield _measured(drawn, "auroc_misclassified_id", auroc(wrong, scores), where, (len(wrong), len(scores)))
                discarded = float((right >= np.quantile(scores, 0.25)).mean())
                yield _measured(
                    drawn, "correct_discarded", discarded, {**where, "rejected": "75 %"}, (len(right), len(scores))
                )
        for ood_set in (*OUTSIDE, POOLED):
            for group in ("correct", "wrong", "ood"):
                shift = 0.02 * (len(detector) - 6) * {"correct": 0.3, "wrong": -1, "ood": 0.7}[group]
                about = {"ood_detector": detector, "versus": BASELINE, "group": group, "id": INSIDE, "ood": ood_set}
                yield _measured(drawn, "rank_shift", shift, about)
        for name in (*SHIFTED, *OUTSIDE):
            slope, start = 0.35, auroc(groups[INSIDE], groups[name]) - 0.35 * 0.6
            x = np.linspace(0.3, 0.9, 12) + (0.05 if name in OUTSIDE else 0)
            y = np.clip(start + slope * x + np.random.default_rng(len(name)).normal(scale=0.02, size=12), 0, 1)
            about = {"ood_detector": detector, "set": name}
            line = _measured(drawn, "distance_slope", slope, about)
            yield Measurement(line.metric, slope, line.about, 600, line.convention, Interval(slope - 0.05, slope + 0.05))
            yield Measurement(
                "distance_intercept", start, line.about, 600, line.convention, Interval(start - 0.03, start + 0.03)
            )
            yield Curve(
                "distance_auroc",
                line.about,
                "mean distance to the nearest ID image",
                "AUROC",
                tuple(x.tolist()),
                tuple(y.tolist()),
                600,
                HOW,
                counts=(50,) * 12,
            )
    for place, name in enumerate((*SHIFTED, *OUTSIDE)):
        yield _measured(drawn, "frechet_distance", 11.5 * (place + 1), {"set": name}, None, {"features": "of lite0"})


def _random_networks(drawn: Drawn) -> Iterator[Finding]:
    """They notice noise and blur as well as the trained network does, and no new class."""
    rng = np.random.default_rng(11)
    for detector in drawn.detectors:
        groups = drawn.groups[detector]
        for shift in (*SHIFTED, *OUTSIDE):
            trained = auroc(groups[INSIDE], groups[shift])
            about = {"ood_detector": detector, "shift": shift}
            yield _measured(drawn, "shift_auroc", trained, about, (drawn.images, len(groups[shift])))
            middle = 0.5 if shift in OUTSIDE else min(0.98, trained + 0.05)
            values = np.clip(middle + rng.normal(scale=0.02, size=5), 0, 1)
            for number, value in enumerate(values, start=1):
                yield _measured(drawn, "random_network_auroc", float(value), {**about, "network": number})
            mean = _measured(drawn, "mean_random_network_auroc", float(values.mean()), about)
            half = 2.78 * values.std(ddof=1) / math.sqrt(5)
            yield Measurement(
                mean.metric,
                mean.value,
                mean.about,
                mean.images,
                {},
                Interval(mean.value - half, mean.value + half, method="over networks"),
            )


def _curves(drawn: Drawn) -> Iterator[Finding]:
    for detector in drawn.detectors:
        groups = drawn.groups[detector]
        for case, id_set, ood_set in _cases(drawn, detector):
            if case["id"] != INSIDE or case["ood"] != POOLED:
                continue
            about = {"model": drawn.model, "dataset": INSIDE, "ood_detector": detector, **case}
            thresholds = np.quantile(np.concatenate([id_set, ood_set]), np.linspace(1, 0, 150))
            x = [float((id_set >= one).mean()) for one in thresholds]
            y = [float((ood_set >= one).mean()) for one in thresholds]
            yield Curve(
                "roc",
                about,
                "false-positive rate",
                "true-positive rate",
                (0.0, *x),
                (0.0, *y),
                len(id_set) + len(ood_set),
                HOW,
            )
            if case["goal"] == "failure":
                yield _risk_coverage(about, id_set, ood_set)
        edges = np.linspace(min(map(np.min, groups.values())), max(map(np.max, groups.values())), 31)
        shapes = {"correct": groups[INSIDE][drawn.correct], "wrong": groups[INSIDE][~drawn.correct]}
        for group, scores in {**shapes, **{name: groups[name] for name in (*SHIFTED, *OUTSIDE)}}.items():
            heights = np.histogram(scores, edges)[0] / len(scores)
            about = {"model": drawn.model, "dataset": INSIDE, "ood_detector": detector, "group": group}
            middles = tuple(((edges[1:] + edges[:-1]) / 2).tolist())
            yield Curve(
                "score_distribution", about, "score", "share of images", middles, tuple(heights.tolist()), len(scores), HOW
            )
        for name, right in [(name, right) for name in SHIFTED for right in (True, False)]:
            scores = groups[name][drawn.correct == right]
            about = {"model": drawn.model, "dataset": INSIDE, "ood_detector": detector, "group": name}
            about["answered"] = "correct" if right else "wrong"
            tall = tuple((np.histogram(scores, edges)[0] / len(scores)).tolist())
            yield Curve("score_distribution_by_answer", about, "score", "share of images", middles, tall, len(scores), HOW)


def _risk_coverage(about: Mapping[str, str], right: Scores, wrong: Scores) -> Curve:
    order = np.argsort(np.concatenate([right, wrong]))
    risk = np.cumsum(order >= len(right)) / np.arange(1, len(order) + 1)
    places = np.linspace(20, len(order) - 1, 150).astype(int)
    where = {key: value for key, value in about.items() if key != "goal"}
    x = tuple(float((place + 1) / len(order)) for place in places)
    return Curve(
        "risk_coverage",
        where,
        "coverage",
        "risk",
        x,
        tuple(risk[places].tolist()),
        len(order),
        HOW,
    )


def _galleries(drawn: Drawn) -> Iterator[Finding]:
    about = {"model": drawn.model, "dataset": INSIDE}
    mixed = tuple(
        GalleryItem(
            f"{place}.jpg",
            f"ViM {90 - place} %, MSP {10 + place} %, {'ood' if place % 2 else 'wrong'}",
            None,
            CLOTHES if place % 2 else PHOTOS,
        )
        for place in range(6)
    )
    title = "Where ViM and MSP disagree most"
    yield Gallery("detector_disagreement", {**about, "ood_detector": "vim", "versus": BASELINE}, PHOTOS, title, mixed)
    pairs = tuple(
        item
        for percentile in (0, 25, 50, 75, 100)
        for item in (
            GalleryItem(
                f"{percentile}.jpg", f"distance {0.2 + percentile / 200:.2f}, percentile {percentile}", None, CLOTHES
            ),
            GalleryItem(f"near {percentile}.jpg", "nearest ID", None, PHOTOS),
        )
    )
    yield Gallery("nearest_pairs", {**about, "set": "clothing"}, PHOTOS, "Nearest ID images", pairs)


def means_over(*of_models: Sequence[Finding]) -> Iterator[Measurement]:
    """The averages that the study gives where it has several models."""
    values: dict[tuple[tuple[str, str | int], ...], list[float]] = {}
    for findings in of_models:
        for found in findings:
            if isinstance(found, Measurement) and found.metric == "auroc":
                values.setdefault(tuple((key, value) for key, value in found.about.items() if key != "model"), []).append(
                    found.value
                )
    for about, reached in values.items():
        told = {**dict(about), "models": len(reached)}
        yield Measurement("mean_auroc", float(np.mean(reached)), told, 600, {"mean": "over models"})
        yield Measurement("auroc_spread", float(np.std(reached, ddof=1)), told, 600, {"spread": "standard deviation"})
