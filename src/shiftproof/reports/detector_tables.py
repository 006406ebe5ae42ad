"""Detectors by goals: every AUROC with its interval, the best marked only where chance is an unlikely explanation."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from shiftproof.reports.by_model import choices, columns_table
from shiftproof.reports.detector_findings import FAILURE, GOALS, NEW_CLASS, DetectorFindings
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.model_means import mean_cell
from shiftproof.reports.page import named
from shiftproof.reports.parts import Cell, Column, Part, Table
from shiftproof.reports.standings import ALIKE, BEST, Case, detector_of
from shiftproof.reports.tables import order_of
from shiftproof.reports.words import figure, in_a_line, span
from shiftproof.studies.novelty_variants import ALL_OUTSIDE, MISTAKES_ALONE
from shiftproof.types import Finding, Measurement

OTHER_NUMBERS = ("aupr_out", "aupr_in", "fpr_at_tpr", "fpr_in_at_tpr", "aurc", "e_aurc", "augrc", "coverage_at_risk")
OF_EACH_NUMBER = {"detector", "preset", "inside", "outside", "notes", "note"}
"""Conventions that differ from number to number, and so have their place beside them."""
IN_FULL = {"tpr": "true positive rate", "positive": "positive class"}
MARKS = (
    f"{BEST} is better than every other detector by more than chance (paired test, corrected for all of them). "
    f"{ALIKE} is within chance of the best, the highest included, where none stands out."
)


def detectors_by_goals(found: DetectorFindings) -> list[Part]:
    """A row for each detector, for each goal a column for each inside set; all outside sets together."""
    cases = [Case(goal, inside, found.outside) for goal in GOALS for inside in found.insides]
    mistakes = [Case(FAILURE, inside, MISTAKES_ALONE) for inside in found.insides[:1]]
    known = [case for case in dict.fromkeys([*cases, *mistakes]) if case in found.standings]
    if not known:
        return []
    note = f"50 is blind, 100 perfect; below each number its interval. {_what_is_found(found)} {MARKS}"
    return [_auroc_table("Detectors and goals, AUROC in percent", known, found, note=note)]


def each_outside_set(found: DetectorFindings) -> list[Part]:
    """The same for every outside set by itself, and for mistakes alone under every shift."""
    sets = [outside for outside in found.outsides if outside != found.outside]
    cases = [Case(goal, inside, outside) for goal in GOALS for outside in sets for inside in found.insides]
    mistakes = [Case(FAILURE, inside, MISTAKES_ALONE) for inside in found.insides[1:]]
    known = [case for case in [*cases, *mistakes] if case in found.standings]
    return (
        [_auroc_table("Each outside set by itself, AUROC in percent", known, found, note=MARKS, folded=True)]
        if known
        else []
    )


def _auroc_table(title: str, cases: Sequence[Case], found: DetectorFindings, *, note: str, folded: bool = False) -> Table:
    columns = [Column(set_title(case.inside), True, over=_over(case)) for case in cases]
    rows = [[Cell(written(detector)), *(_cell(found, case, detector) for case in cases)] for detector in found.detectors]
    return Table(title, [Column("Detector"), *columns], rows, note, folded)


def _over(case: Case) -> str:
    if case.outside == MISTAKES_ALONE:
        return "Mistakes alone"
    return f"{GOALS.get(case.goal, case.goal)}: {set_title(case.outside)}"


def _cell(found: DetectorFindings, case: Case, detector: str) -> Cell:
    standing = found.standings[case]
    one = standing.of(detector)
    if one is None:
        return Cell("–")
    below = "–".join(f"{100 * end:.1f}" for end in one.interval or ())
    return Cell(f"{100 * one.value:.1f}", one.value, below, standing.mark(detector))


def _what_is_found(found: DetectorFindings) -> str:
    sets = [set_title(name) for name in found.outsides if name != ALL_OUTSIDE]
    if not sets:
        return "To be found: wrong answers among right ones."
    return (
        f"New classes: images of {', '.join(sets)} among the images that head the columns. "
        "Failures: the same images and wrong answers, among right ones."
    )


def other_numbers(found: DetectorFindings) -> list[Part]:
    """Everything but the AUROC that is measured in the same cases."""
    shown = {found.outside, MISTAKES_ALONE}
    numbers = [
        one for metric in OTHER_NUMBERS for one in found.numbers(metric) if str(one.about.get("outside", "")) in shown
    ]
    if not numbers:
        return []
    table = columns_table("AUPR, false alarms, risk and coverage", [_in_print(one) for one in numbers], list(PRINTED))
    note = f"{_tpr_and_risk(numbers)} Numbers of single outside sets are in the measurements at the end of the page."
    return [dataclasses.replace(table, note=note.strip(), folded=True)]


PRINTED = ("detector", "goal", "inside", "outside")


def _in_print(found: Measurement) -> Measurement:
    told = {**found.about, "detector": written(detector_of(found))}
    told |= {"goal": in_a_line(GOALS.get(str(found.about.get("goal", "")), str(found.about.get("goal", ""))))}
    told |= {key: set_title(str(found.about.get(key, ""))) for key in ("inside", "outside")}
    return dataclasses.replace(found, about=told)


def _tpr_and_risk(numbers: Sequence[Measurement]) -> str:
    shares = dict.fromkeys(one.convention["tpr"] for one in numbers if "tpr" in one.convention)
    risks = dict.fromkeys(str(one.about["risk"]) for one in numbers if "risk" in one.about)
    sentences = [f"False alarms are counted at {share} found, images let through at {share} kept." for share in shares]
    sentences += [f"Coverage is at a risk of {' and '.join(risks)}."] if risks else []
    return " ".join(sentences)


def differences(found: DetectorFindings) -> list[Part]:
    """Every paired comparison on all outside sets together, with its interval and its chance."""
    pairs = [one for one in named(found.findings, "auroc_difference") if one.about.get("outside") == found.outside]
    chances = {_pair(one): one.value for one in named(found.findings, "auroc_difference_p")}
    titles = ["Detector", "Versus", "Goal", "Inside"]
    columns = [*map(Column, titles), *(Column(title, True) for title in ("Difference of AUROC", "Interval", "P-value"))]
    rows = [
        [
            Cell(written(detector_of(one))),
            Cell(written(str(one.about.get("versus", "")))),
            Cell(in_a_line(GOALS.get(str(one.about.get("goal")), ""))),
            Cell(set_title(str(one.about.get("inside", "")))),
            Cell(figure(one.value, "points"), order_of(one.value)),
            Cell(span(one.interval, "points"), order_of(one.interval[0]) if one.interval else ""),
            _chance_cell(chances.get(_pair(one))),
        ]
        for one in pairs
    ]
    note = "Paired: both detectors on the same images. P-values are corrected for all detectors asked at once."
    return [Table("Detectors against each other", columns, rows, note, folded=True)] if rows else []


def _pair(found: Measurement) -> tuple[str, ...]:
    return tuple(str(found.about.get(key, "")) for key in (*PRINTED, "versus"))


def _chance_cell(chance: float | None) -> Cell:
    if chance is None:
        return Cell("–")
    return Cell("< 0.001" if chance < 0.001 else f"{chance:.2g}", order_of(chance))


def parameters(models: Sequence[DetectorFindings]) -> list[Part]:
    """How each detector was set up, then the choices that hold for all numbers."""
    found = [one for model in models for one in named(model.findings, "auroc")]
    taken: dict[tuple[str, str, str], set[str]] = {}
    for one in found:
        told = one.convention
        notes = told.get("notes", told.get("note", ""))
        taken.setdefault((detector_of(one), told.get("detector", ""), told.get("preset", "")), set()).add(notes)
    rows = [
        [Cell(written(detector)), Cell(_settings(text)), Cell(preset), Cell(" ".join(sorted(filter(None, notes))))]
        for (detector, text, preset), notes in taken.items()
    ]
    columns = [Column("Detector"), Column("Parameters"), Column("Preset"), Column("Notes")]
    if not any(cell.text for *_, cell in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    table = [Table("Parameters of the detectors", columns, rows, folded=True)] if rows else []
    numbers = [one for model in models for metric in ("auroc", *OTHER_NUMBERS) for one in named(model.findings, metric)]
    return [*table, *choices("How these numbers were made", list(_shared_conventions(numbers)))]


def _settings(told: str) -> str:
    """What stands in brackets behind a detector's name.

    >>> _settings("vim (dimension 1000, alpha 3.1)"), _settings("msp")
    ('dimension 1000, alpha 3.1', 'none')
    """
    return told.partition(" (")[2].removesuffix(")") or "none"


def _shared_conventions(found: Iterable[Measurement]) -> Iterable[Measurement]:
    for one in found:
        told = {IN_FULL.get(key, key): value for key, value in one.convention.items() if key not in OF_EACH_NUMBER}
        yield dataclasses.replace(one, convention=told)


def models_by_goals(models: Sequence[DetectorFindings], findings: Sequence[Finding]) -> list[Part]:
    """A row for each detector, for each goal a column for each model and one for the mean of all."""
    first = models[0]
    cases = {goal: first.main_case(goal) for goal in GOALS}
    known = {goal: case for goal, case in cases.items() if any(case in model.standings for model in models)}
    if not known:
        return []
    means = {(*_pair(one)[:4],): one for one in named(findings, "mean_auroc")}
    spreads = {(*_pair(one)[:4],): one for one in named(findings, "auroc_spread")}
    detectors = list(dict.fromkeys(detector for model in models for detector in model.detectors))
    columns = [
        Column(title, True, over=_over(case))
        for case in known.values()
        for title in [*(model.model for model in models), *(["Mean"] if means else [])]
    ]
    rows = []
    for detector in detectors:
        row = [Cell(written(detector))]
        for case in known.values():
            row += [_cell(model, case, detector) if case in model.standings else Cell("–") for model in models]
            row += [mean_cell(means.get((detector, *case)), spreads.get((detector, *case)))] if means else []
        rows.append(row)
    note = f"On {set_title(first.main_case(NEW_CLASS).inside)}. Below a mean: the standard deviation over models. {MARKS}"
    return [Table("Detectors, goals and models, AUROC in percent", [Column("Detector"), *columns], rows, note)]
