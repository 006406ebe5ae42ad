"""Numbers in words and figures, for the console and for reports; nothing is computed here beyond rounding."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

from shiftproof.catalog import STUDIES
from shiftproof.metrics.intervals import LEAST_CLUSTERS
from shiftproof.metrics.table import Unit, metric_info
from shiftproof.types import MARKS, Again, Axis, Measurement, NextStep, Profile, Results, Setting, Weakness

GAP = "\u202f"  # a narrow space that no line breaks at


def figure(value: float, unit: Unit) -> str:
    r"""A value as it is printed.

    >>> figure(0.8871, "share"), figure(-0.0213, "points"), figure(1.23456, "number"), figure(float("nan"), "share")
    ('88.7\u202f%', '−2.1 points', '1.235', 'not known')
    >>> figure(-1e-9, "share"), figure(-1e-9, "points")
    ('0.0\u202f%', '+0.0 points')
    >>> figure(0.0213, "points"), figure(0.0213, "loss"), figure(-0.0213, "loss")  # a plus would look like a gain
    ('+2.1 points', '2.1 points', '−2.1 points')
    """
    return " ".join(filter(None, figure_and_unit(value, unit)))


def figure_and_unit(value: float, unit: Unit) -> tuple[str, str]:
    """A value as it is printed, and the word behind it where its unit has one.

    >>> figure_and_unit(-0.0213, "points"), figure_and_unit(float("nan"), "points")
    (('−2.1', 'points'), ('not known', ''))
    """
    if not math.isfinite(value):
        return "not known", ""
    if unit == "share":
        return f"{100 * value:z.1f}{GAP}%", ""  # z: what rounds to zero has no sign
    if unit in ("points", "loss"):
        return f"{100 * value:{'+' if unit == 'points' else ''}z.1f}".replace("-", "−"), "points"
    if unit == "count":
        return count(round(value)), ""
    return f"{value:.4g}".replace("-", "−"), ""


def span(ends: tuple[float, float] | None, unit: Unit) -> str:
    r"""Both ends of an interval as they are printed, the unit said once.

    >>> span((0.866, 0.906), "share")
    '86.6 to 90.6\u202f%'
    """
    if ends is None or not all(map(math.isfinite, ends)):
        return "no CI"
    low, high = (figure(end, unit) for end in ends)
    tail = {"share": f"{GAP}%", "points": " points", "loss": " points"}.get(unit, "")
    return f"{low.removesuffix(tail)} to {high}"


def count(number: int) -> str:
    """A whole number with its thousands apart.

    >>> count(50000)
    '50,000'
    """
    return f"{number:,}"


def images(number: int) -> str:
    """A number of images.

    >>> images(1), images(1000)
    ('1 image', '1,000 images')
    """
    return "1 image" if number == 1 else f"{count(number)} images"


def clusters(number: int) -> str:
    """A number of clusters.

    >>> clusters(1), clusters(31)
    ('1 cluster', '31 clusters')
    """
    return "1 cluster" if number == 1 else f"{count(number)} clusters"


def counted(number: int, unit: str) -> str:
    """A number of independent units in words.

    >>> counted(1, "clip"), counted(1200, "source image")
    ('1 clip', '1,200 source images')
    """
    return f"{number:,} {unit if number == 1 else several(unit)}"


def several(unit: str) -> str:
    """The plural of the name of an independent unit.

    >>> several("image or source image"), several("body"), several("clip (near-duplicates joined)")
    ('images or source images', 'bodies', 'clips (near-duplicates joined)')
    """
    names, bracket, beside = unit.partition(" (")
    words = (re.sub("([^aeiou])y$", r"\1ie", word) for word in names.split(" or "))
    return " or ".join(word if word.endswith("s") else f"{word}s" for word in words) + bracket + beside


def evidence(found: Measurement) -> str:
    r"""What stands behind a number: its confidence interval, and how many images and clusters.

    >>> from shiftproof.types import Interval
    >>> evidence(Measurement("top1_accuracy", 0.9, {}, 50, {}, Interval(0.78, 0.97)))
    '95\u202f% CI 78.0 to 97.0\u202f%, 50 images'
    >>> evidence(Measurement("top1_accuracy", 0.9, {}, 50, {}, None, clusters=2))
    'too few clusters for a CI, 50 images in 2 clusters'
    """
    bounds = span(found.ends, metric_info(found.metric).unit)
    among = "" if found.clusters in (None, found.images) else f" in {clusters(found.clusters or 0)}"
    if found.interval:
        bounds = f"{100 * found.interval.level:g}{GAP}% CI {bounds}"
    elif has_too_few(found):
        bounds = "too few clusters for a CI"
    return f"{bounds}, {images(found.images)}{among}"


def has_too_few(found: Measurement) -> bool:
    """Whether a number has no confidence interval because there are too few clusters."""
    clusters = found.images if found.clusters is None else found.clusters
    told = found.no_interval is not None and found.no_interval.too_few
    return found.interval is None and (clusters < LEAST_CLUSTERS or told)


MEANING = f"A 95{GAP}% CI (confidence interval) covers the value on new images of the same distribution in 95 of 100 tests."


def names_or_more(names: Sequence[str]) -> str:
    """Up to two names, or the first and how many more.

    >>> names_or_more(["old", "new"]), names_or_more(["a", "b", "c"])
    ('old and new', 'a and 2 more')
    """
    return " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"


def unit_of_evidence(results: Results) -> str:
    """What a CI means, and what the independent unit is, in a sentence each.

    >>> from shiftproof.types import DatasetCard
    >>> photos, clips = DatasetCard("photos", "f", 40, 40), DatasetCard("clips", "f", 210, 210, clusters=4, unit="clip")
    >>> unit_of_evidence(Results((), datasets=(photos, clips))).rpartition("Independent unit (cluster): ")[2]
    'the image; in clips: 4 clips.'
    """
    others: dict[str, list[str]] = {}
    for card in results.datasets:
        if card.clusters is not None:
            others.setdefault(counted(card.clusters, card.unit), []).append(card.name)
    told = [f"in {names_or_more(names)}: {cases}{' each' if len(names) > 1 else ''}" for cases, names in others.items()]
    by_image = not results.datasets or any(card.clusters is None for card in results.datasets)
    return f"{MEANING} Independent unit (cluster): {'; '.join([*(['the image'] if by_image else []), *told])}."


def labels_missing(results: Results) -> str:
    """That nothing says how often a model is right, where no image of a run has a label; else nothing.

    >>> from shiftproof.types import DatasetCard
    >>> frames, run = DatasetCard("frames", "f", 40, 0), Again("net", "frames", "shiftproof run net.onnx frames")
    >>> labels_missing(Results((), datasets=(frames,), again=(run,)))[:80]
    'No image has a label, so nothing here says how often the model is right or would'
    >>> labels_missing(Results((), datasets=(frames, DatasetCard("photos", "f", 9, 9, classes=3)), again=(run,)))
    ''
    """
    if not results.again or any(card.labelled or card.classes for card in results.datasets):
        return ""
    return (
        "No image has a label, so nothing here says how often the model is right or would stay so: --label CLASS is one "
        "class for all images, --labels FILE one for each; without any, shiftproof estimate goes by images that have some."
    )


def points(value: float) -> str:
    """A difference of shares without a sign.

    >>> points(-0.312)
    '31.2 points'
    """
    return f"{100 * abs(value):.1f} points"


def size(value: float, unit: Unit) -> str:
    """A limit as it is printed: a difference has no plus.

    >>> size(0.15, "points"), size(-0.1, "points")
    ('15.0 points', '−10.0 points')
    """
    return figure(value, unit).removeprefix("+")


def mark_told(axis: Axis) -> str:
    """The mark in words, as far as the confidence interval supports one.

    >>> from shiftproof.types import Interval, Standard
    >>> standard = Standard("rule", weak=0.7, good=0.9)
    >>> for low, high in [(0.91, 0.95), (0.6, 0.8), (0.5, 0.95)]:
    ...     found = Measurement("auroc", 0.75, {}, 50, {}, Interval(low, high))
    ...     print(mark_told(Axis("ood", "OOD", found, "ood", standard)))
    good
    typical to weak
    undecided
    """
    if axis.standard is None:
        return "not judged"
    if not axis.marks:
        return "too few cases" if has_too_few(axis.found) else "no CI"
    return " to ".join((axis.marks[0], axis.marks[-1])[: len(axis.marks)]) if len(axis.marks) < 3 else "undecided"


def limit_told(axis: Axis) -> str:
    r"""From where on a number is weak, in short.

    >>> from shiftproof.types import Standard
    >>> found = Measurement("auroc", 0.75, {}, 50, {})
    >>> limit_told(Axis("ood", "OOD", found, "ood", Standard("rule", weak=0.7)))
    'below 70.0\u202f% (rule)'
    """
    if axis.standard is None:
        return ""
    by = "published models" if axis.standard.published else "rule"
    return f"{axis.standard.worse} {size(axis.standard.weak, metric_info(axis.found.metric).unit)} ({by})"


def axis_key(axis: Axis) -> tuple[str, str, str]:
    """Equal for the same line of several models' scorecards."""
    return axis.name, axis.title, str(axis.found.about.get("dataset", ""))


def number_told(found: Measurement) -> str:
    r"""A number with its confidence interval.

    >>> from shiftproof.types import Interval
    >>> number_told(Measurement("top1_accuracy", 0.9, {}, 50, {}, Interval(0.78, 0.97)))
    '90.0\u202f% (78.0 to 97.0\u202f%)'
    """
    unit = metric_info(found.metric).unit
    return f"{figure(found.value, unit)} ({span(found.ends, unit)})" if found.ends else figure(found.value, unit)


def evidence_told(weakness: Weakness, candidates: int) -> str:
    """The confidence interval behind a weakness, the limit it is beyond, and how surely."""
    found, standard, unit = weakness.found, weakness.standard, metric_info(weakness.found.metric).unit
    chance = "p < 0.001" if weakness.p < 0.001 else f"p = {weakness.p:.2g}"
    behind = " of ".join([images(found.images), *([str(found.about["dataset"])] if "dataset" in found.about else [])])
    return (
        f"95 % CI {span(found.ends, unit)}, {behind}. "
        f"Limit: {size(standard.weak, unit)} ({standard.told}). "
        f"Corrected for the {count(candidates)} numbers looked at, "
        f"still at least {points(weakness.beyond)} beyond it ({chance})."
    )


def next_command(weakness: Weakness, model: str, results: Results) -> str:
    """The command that looks closer at a weakness; where none can be typed, the call of `shiftproof.run` that does."""
    step, dataset = weakness.next_step, results.origin_of(str(weakness.found.about.get("dataset", "")))
    if not step.studies:
        return ""
    again = next((one for one in results.again if (one.model, one.dataset) == (model, dataset)), Again(model, dataset))
    return step.command(again) if again.command else call_of(step, again.store)


def call_of(step: NextStep, store: str = "") -> str:
    """The step as a call of the library; `model` and `dataset` are what `sp.run` was given before.

    >>> call_of(NextStep("Look closer.", {"corruption": {"corruptions": ("fog",)}}, "fog.html"))
    'sp.run(model, dataset, studies={"corruption": sp.CorruptionOptions(corruptions=("fog",))}, report="fog.html")'
    >>> call_of(NextStep("Look where it looks.", {"accuracy": {}, "saliency": {}}, "saliency.html"), store="there")
    'sp.run(model, dataset, studies=["accuracy", "saliency"], store="there", report="saliency.html")'
    """
    if any(step.studies.values()):
        each = (f"{_quoted(study)}: {_options_of(study, settings)}" for study, settings in step.studies.items())
        studies = f"{{{', '.join(each)}}}"
    else:
        studies = f"[{', '.join(map(_quoted, step.studies))}]"
    kept = f", store={_quoted(store)}" if store else ""
    return f"sp.run(model, dataset, studies={studies}{kept}, report={_quoted(step.report)})"


def _options_of(study: str, settings: Mapping[str, Setting]) -> str:
    if not settings:
        return "None"
    values = (f"{name}={_literal(value)}" for name, value in settings.items())
    return f"sp.{STUDIES.load(study).options.rpartition(':')[2]}({', '.join(values)})"


def _literal(value: Setting) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_quoted, value))}{',' if len(value) == 1 else ''})"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def marks_summed_up(verdict: Profile) -> str:
    """Which axes are weak, which good, and which neither, the worst first; a sentence for each."""
    by_mark: dict[str, list[str]] = {}
    if nothing_can_be_judged(verdict):
        return "Nothing can be judged: too few independent cases."
    for axis in sorted(verdict.axes, key=_badness):
        if axis.standard is not None:
            mark = mark_told(axis) if 0 < len(axis.marks) < len(MARKS) else "too uncertain to call"
            by_mark.setdefault(mark, []).append(_in_a_sentence(axis))
    told = [f"{mark.capitalize()}: {', '.join(dict.fromkeys(titles))}." for mark, titles in by_mark.items()]
    if verdict.weaknesses:
        told.append(f"{counted(len(verdict.weaknesses), 'finding')} below.")
    return " ".join(told) or "Nothing here has a standard to be judged by."


def _badness(axis: Axis) -> tuple[float, ...]:
    """Sorts axes by their marks, the weak ones first; those that may be anything come last."""
    places = [MARKS.index(mark) for mark in axis.marks]
    return (0.0, -sum(places) / len(places)) if 0 < len(places) < len(MARKS) else (1.0,)


def _in_a_sentence(axis: Axis) -> str:
    return f"{axis.title[:1].lower()}{axis.title[1:]}" if axis.title[1:2].islower() else axis.title


def nothing_can_be_judged(verdict: Profile) -> bool:
    """Whether no axis that has a standard has an interval to hold against it."""
    judged = [axis for axis in verdict.axes if axis.standard is not None]
    return bool(judged) and not any(axis.marks for axis in judged)


def none_told(verdict: Profile) -> str:
    """That nothing was found, and what that is worth."""
    if not verdict.candidates:
        return "No number here has a standard that it could fall short of."
    if nothing_can_be_judged(verdict):
        few = _fewest([axis for axis in verdict.axes if axis.standard is not None])
        cases = "" if few is None else f": {images(verdict.images)} in {clusters(few)}"
        return (
            f"That nothing can be judged is no sign of strength: there are too few independent cases{cases}. The values "
            "above are of these images alone, some of only a few of them; more cases could show whether they hold."
        )
    looked_at = counted(verdict.candidates, "number")
    if any(axis.marks == ("weak",) for axis in verdict.axes):
        return (
            f"Each mark is by its own 95 % CI, and of {looked_at} looked at some may fall short by chance: corrected for "
            "that, none is surely on the worse side of its standard. More images could show it."
        )
    return (
        f"No weakness that {images(verdict.images)} could show: of {looked_at} looked at, none "
        "is surely on the worse side of its standard. More images could show smaller ones."
    )


def _fewest(axes: Sequence[Axis]) -> int | None:
    """The fewest clusters behind any of these, where images come in clusters."""
    return min((axis.found.clusters for axis in axes if axis.found.clusters is not None), default=None)


def some_told(verdict: Profile) -> str:
    """What the weaknesses are a choice of."""
    return (
        f"Worst first, of {counted(verdict.candidates, 'number')} looked at: surely on the worse side of their standards; "
        "the chance that any is there by chance alone is at most 5 %."
    )
