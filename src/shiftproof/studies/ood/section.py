"""New-class and failure detection: every OOD detector at both goals, in tables, charts and sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import evidence, figure, span
from shiftproof.reports.page import Page, by_dataset, in_columns, named, parts_of_each_set
from shiftproof.reports.parts import Cell, Column, Part, Section, Table
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import columns_table, draw_rest, order_of
from shiftproof.reports.words import in_a_line, kept_together, opened
from shiftproof.studies.ood.charts import (
    BY_ANSWER,
    answered_at_risk,
    answered_shapes,
    aurocs_by_goal,
    aurocs_by_model,
    beside_published,
    lead_over_baseline,
    risk_coverage_chart,
    roc_charts,
    score_shapes,
)
from shiftproof.studies.ood.findings import (
    ALIKE,
    BEST,
    CHANCE,
    FAILURE,
    GOALS,
    NEW_CLASS,
    Case,
    DetectorFindings,
    Standing,
    by_model,
    detector_of,
    written,
)
from shiftproof.studies.ood.scores import ALL_OOD, MISTAKES_ALONE
from shiftproof.types import Finding, Measurement

OTHER_NUMBERS = ("aupr_out", "aupr_in", "fpr_at_tpr", "fpr_in_at_tpr", "aurc", "e_aurc", "augrc", "coverage_at_risk")
MARKS = (
    f"{BEST} is significantly better than every other detector (paired test, corrected for all of them). "
    f"{ALIKE} is not significantly worse than the best, the highest included, where none is significantly better."
)
PRINTED = ("ood_detector", "goal", "id", "ood")
NEAR = 0.1
"""An AUROC no farther than this from 50 % counts as chance."""
IN_A_SENTENCE = {NEW_CLASS: "new classes", FAILURE: "failures (misclassifications and new classes)"}
MOST_NAMED = 3
NAMES = frozenset(
    {
        "auroc",
        *OTHER_NUMBERS,
        "auroc_difference",
        "auroc_difference_p",
        "mean_auroc",
        "auroc_spread",
        "model_mean",
        "model_spread",
        "roc",
        "risk_coverage",
        "score_distribution",
        BY_ANSWER,
    }
)


def draw_ood(findings: Sequence[Finding], page: Page) -> Section:
    """AUROC of every detector; then all numbers of all models together, and each model in a column of its own."""
    of_detectors = [one for one in findings if detector_of(one)]
    return Section(
        "ood",
        "OOD and failure detection",
        "Do OOD scores detect new classes and misclassifications?",
        [
            *parts_of_each_set(of_detectors, _details),
            *draw_rest([one for one in findings if not detector_of(one)], page).parts,
        ],
        parts_of_each_set(of_detectors, _main),
        ood_headlines(page),
    )


def _main(findings: Sequence[Finding]) -> list[Part]:
    """AUROC by detector, the models or the goals as series."""
    models = by_model(findings)
    return aurocs_by_model(models) if len(models) > 1 else [part for found in models for part in aurocs_by_goal(found)]


def _details(findings: Sequence[Finding]) -> list[Part]:
    models = by_model(findings)
    several = len(models) > 1
    together = [*models_by_goals(models, findings), *other_means(models, findings)] if several else []
    return [*together, *in_columns({found.model: _of_model(found, several) for found in models}), *parameters(models)]


def _of_model(found: DetectorFindings, several: bool) -> list[Part]:
    """What is known of one model; the chart that is main where it is the only one stands here among several."""
    return [
        *detectors_by_goals(found),
        *(aurocs_by_goal(found) if several else []),
        *lead_over_baseline(found),
        *roc_charts(found),
        *risk_coverage_chart(found),
        *answered_at_risk(found),
        *beside_published(found),
        *score_shapes(found),
        *answered_shapes(found),
        *each_ood_set(found),
        *other_numbers(found),
        *differences(found),
    ]


class Place(NamedTuple):
    """Which number of which goal; one that serves no goal alone has none."""

    goal: str
    metric: str


def other_means(models: Sequence[DetectorFindings], findings: Sequence[Finding]) -> list[Part]:
    """A row for each detector, for each goal a column for each number; clean ID images against all OOD images."""
    case = models[0].main_case(NEW_CLASS)
    means, spreads = (
        {
            (detector_of(one), _place(one)): one
            for one in named(findings, metric)
            if (one.about.get("id"), one.about.get("ood")) == (case.id, case.ood)
        }
        for metric in ("model_mean", "model_spread")
    )
    places = sorted({place for _, place in means}, key=lambda place: ([*GOALS, ""].index(place.goal), place.metric))
    rows = [
        [Cell(written(name)), *(mean_cell(means.get((name, place)), spreads.get((name, place))) for place in places)]
        for name in dict.fromkeys(name for name, _ in means)
    ]
    columns = [Column(metric_info(place.metric).title, True, GOALS.get(place.goal, "")) for place in places]
    note = f"{case.id} against {case.ood}. Below a mean: the standard deviation over models."
    title = "Other metrics, mean of the models in percent"
    return [Table(title, [Column("Detector"), *columns], rows, note, folded=True)] if rows else []


def mean_cell(mean: Measurement | None, spread: Measurement | None) -> Cell:
    """A mean over models, their standard deviation below it."""
    if mean is None:
        return Cell("–")
    return Cell(f"{100 * mean.value:.1f}", order_of(mean.value), f"± {100 * spread.value:.1f}" if spread else "")


def _place(found: Measurement) -> Place:
    return Place(str(found.about.get("goal", "")), str(found.about.get("of", "")))


def detectors_by_goals(found: DetectorFindings) -> list[Part]:
    """A row for each detector, for each goal a column for each ID set; all OOD sets together."""
    cases = [Case(goal, id_set, found.ood) for goal in GOALS for id_set in found.id_sets]
    mistakes = [Case(FAILURE, id_set, MISTAKES_ALONE) for id_set in found.id_sets[:1]]
    known = [case for case in dict.fromkeys([*cases, *mistakes]) if case in found.standings]
    if not known:
        return []
    note = f"50 is chance, 100 perfect; below each number its 95 % CI. {_what_is_found(found)} {MARKS}"
    return [_auroc_table("OOD detectors: AUROC in percent", known, found, note=note)]


def each_ood_set(found: DetectorFindings) -> list[Part]:
    """The same for every OOD set by itself, and for mistakes alone under every shift."""
    sets = [ood_set for ood_set in found.ood_sets if ood_set != found.ood]
    cases = [Case(goal, id_set, ood_set) for goal in GOALS for ood_set in sets for id_set in found.id_sets]
    mistakes = [Case(FAILURE, id_set, MISTAKES_ALONE) for id_set in found.id_sets[1:]]
    known = [case for case in [*cases, *mistakes] if case in found.standings]
    return [_auroc_table("Each OOD dataset: AUROC in percent", known, found, note=MARKS, folded=True)] if known else []


def _auroc_table(title: str, cases: Sequence[Case], found: DetectorFindings, *, note: str, folded: bool = False) -> Table:
    columns = [Column(case.id, True, over=_over(case)) for case in cases]
    rows = [[Cell(written(detector)), *(_cell(found, case, detector) for case in cases)] for detector in found.detectors]
    return Table(title, [Column("Detector"), *columns], rows, note, folded)


def _over(case: Case) -> str:
    if case.ood == MISTAKES_ALONE:
        return "Failure detection: misclassifications only"
    return f"{GOALS.get(case.goal, case.goal)}: {case.ood}"


def _cell(found: DetectorFindings, case: Case, detector: str) -> Cell:
    standing = found.standings[case]
    one = standing.of(detector)
    if one is None:
        return Cell("–")
    below = "–".join(f"{100 * end:.1f}" for end in one.ends or ())
    return Cell(f"{100 * one.value:.1f}", one.value, below, standing.mark(detector))


def _what_is_found(found: DetectorFindings) -> str:
    sets = [name for name in found.ood_sets if name != ALL_OOD]
    if not sets:
        return "Positives: misclassifications; negatives: correct predictions."
    return (
        f"New-class detection: images of {', '.join(sets)} against the ID images in the column heads. "
        "Failure detection: these images and misclassifications, against correct predictions."
    )


def other_numbers(found: DetectorFindings) -> list[Part]:
    """Everything but the AUROC that is measured in the same cases."""
    shown = {found.ood, MISTAKES_ALONE}
    numbers = [one for metric in OTHER_NUMBERS for one in found.numbers(metric) if str(one.about.get("ood", "")) in shown]
    if not numbers:
        return []
    table = columns_table("AUPR, FPR, AURC and coverage", [_in_print(one) for one in numbers], list(PRINTED))
    note = f"{_tpr_and_risk(numbers)} Numbers of single OOD datasets are in the measurements at the end of the page."
    return [dataclasses.replace(table, note=note.strip(), folded=True)]


def _in_print(found: Measurement) -> Measurement:
    told = {**found.about, "ood_detector": written(detector_of(found))}
    told |= {"goal": in_a_line(GOALS.get(str(found.about.get("goal", "")), str(found.about.get("goal", ""))))}
    told |= {key: str(found.about.get(key, "")) for key in ("id", "ood")}
    return dataclasses.replace(found, about=told)


def _tpr_and_risk(numbers: Sequence[Measurement]) -> str:
    shares = dict.fromkeys(one.convention["tpr"] for one in numbers if "tpr" in one.convention)
    risks = dict.fromkeys(str(one.about["risk"]) for one in numbers if "risk" in one.about)
    sentences = [f"FPR at a TPR of {share}, with OOD or with ID images as positives." for share in shares]
    sentences += [f"Coverage is at a risk of {' and '.join(risks)}."] if risks else []
    return " ".join(sentences)


def differences(found: DetectorFindings) -> list[Part]:
    """Every paired comparison on all OOD datasets together, with its interval and p-value."""
    pairs = [one for one in named(found.findings, "auroc_difference") if one.about.get("ood") == found.ood]
    chances = {_pair(one): one.value for one in named(found.findings, "auroc_difference_p")}
    titles = ["Detector", "Versus", "Goal", "ID dataset"]
    columns = [
        *map(Column, titles),
        Column("Difference of AUROC", True),
        Column("95 % CI", True, exact=False),
        Column("P-value", True),
    ]
    rows = [
        [
            Cell(written(detector_of(one))),
            Cell(written(str(one.about.get("versus", "")))),
            Cell(in_a_line(GOALS.get(str(one.about.get("goal")), ""))),
            Cell(str(one.about.get("id", ""))),
            Cell(figure(one.value, "points"), order_of(one.value)),
            Cell(span(one.ends, "points"), order_of(one.ends[0]) if one.ends else ""),
            _chance_cell(chances.get(_pair(one))),
        ]
        for one in pairs
    ]
    note = "Paired: both detectors on the same images. P-values are corrected for the number of detectors."
    return [Table("Detectors against each other", columns, rows, note, folded=True)] if rows else []


def _pair(found: Measurement) -> tuple[str, ...]:
    return tuple(str(found.about.get(key, "")) for key in (*PRINTED, "versus"))


def _chance_cell(chance: float | None) -> Cell:
    if chance is None:
        return Cell("–")
    return Cell("< 0.001" if chance < 0.001 else f"{chance:.2g}", order_of(chance))


def parameters(models: Sequence[DetectorFindings]) -> list[Part]:
    """How each detector was set up."""
    found = [one for model in models for one in named(model.findings, "auroc")]
    taken: dict[tuple[str, str, str], set[str]] = {}
    for one in found:
        told = one.convention
        notes = told.get("notes", told.get("note", ""))
        taken.setdefault((detector_of(one), told.get("parameters", "none"), told.get("preset", "")), set()).add(notes)
    rows = [
        [Cell(written(detector)), Cell(settings), Cell(preset), Cell(" ".join(sorted(filter(None, notes))))]
        for (detector, settings, preset), notes in taken.items()
    ]
    columns = [Column("Detector"), Column("Parameters"), Column("Preset"), Column("Notes")]
    if not any(cell.text for *_, cell in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return [Table("Parameters of the detectors", columns, rows, folded=True)] if rows else []


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
    note = f"On {first.main_case(NEW_CLASS).id}. Below a mean: the standard deviation over models. {MARKS}"
    return [Table("OOD detectors by model: AUROC in percent", [Column("Detector"), *columns], rows, note)]


def ood_headlines(page: Page) -> list[str]:
    """Which detector detects new classes best, which failures, and how well."""
    models = _models(page)
    goals = list(GOALS) if len(models) == 1 else [NEW_CLASS]
    return [_ahead(found, goal, page) for found in models for goal in goals if found.main(goal) is not None]


def ood_details(page: Page) -> list[str]:
    """Whether one model's best detector responds to new classes or to covariate shift, and what it discards."""
    models = _models(page)
    if len(models) != 1 or models[0].main(NEW_CLASS) is None:
        return []
    best = detector_of(models[0].standing(NEW_CLASS).best)
    told = [*_styles(models[0], best), *_random_networks(models[0], best), *_discarded(models[0], best)]
    return [kept_together(sentence) for sentence in told]


def what_is_noticed(page: Page) -> list[str]:
    """Whether the best detector of each model holds under covariate shift, or else what random networks separate."""
    ranked = [found for found in _models(page) if found.main(NEW_CLASS) is not None]
    sentences = []
    for found in ranked:
        best = detector_of(found.standing(NEW_CLASS).best)
        told = next(iter([*_styles(found, best), *_random_networks(found, best), *_discarded(found, best)]), "")
        subject = page.subject({"model": found.model})
        sentences += [kept_together(f"{subject}: {told}" if subject else told)] if told else []
    return sentences


def ood_numbers(page: Page) -> list[tuple[str, Measurement]]:
    """One model's best AUROC for each goal, each under a title."""
    models = _models(page)
    if len(models) != 1:
        return []
    best = {goal: standing.best for goal in GOALS if (standing := models[0].main(goal))}
    return [(f"{GOALS[goal]}, AUROC of {written(detector_of(one))}", one) for goal, one in best.items()]


def _models(page: Page) -> list[DetectorFindings]:
    return [found for findings in by_dataset(page.results.measurements).values() for found in by_model(findings)]


def _ahead(found: DetectorFindings, goal: str, page: Page) -> str:
    standing, what = found.standing(goal), IN_A_SENTENCE[goal]
    best = standing.best
    name, subject = written(detector_of(best)), page.subject(best.about)
    reached = f"{figure(best.value, 'share')} ({evidence(best)}; 50 % is chance)"
    if standing.stands_out:
        baseline = standing.of(found.baseline)
        beside = f"; {written(found.baseline)}, the baseline, has {figure(baseline.value, 'share')}" if baseline else ""
        beside = "" if detector_of(best) == found.baseline else beside
        return kept_together(opened(subject, f"Best at detecting {what}: {name}, AUROC {reached}{beside}."))
    return kept_together(opened(subject, f"Highest AUROC for {what}: {name}, {reached}{_close_behind(standing)}."))


def _close_behind(standing: Standing) -> str:
    close = [written(detector_of(one)) for one in standing.aurocs[1:] if detector_of(one) in standing.alike]
    if not close:
        return ""
    names = ", ".join(close) if len(close) <= MOST_NAMED else f"{len(close)} other detectors"
    return f"; not significantly worse: {names}"


def _styles(found: DetectorFindings, detector: str) -> Iterator[str]:
    """The lowest AUROC of new classes against covariate-shifted images."""
    unchanged = found.standing(NEW_CLASS).best
    others = found.numbers("auroc", goal=NEW_CLASS, ood=found.ood, ood_detector=detector)
    shifted = [one for one in others if one.about.get("id") in found.styles and one.ends]
    if not shifted or unchanged.ends is None:
        return
    worst = min(shifted, key=lambda one: one.value)
    low, high = worst.ends or (0.0, 1.0)
    among, name = str(worst.about.get("id")), written(detector)
    reached = f"AUROC {figure(worst.value, 'share')} ({span(worst.ends, 'share')})"
    if high < CHANCE:
        yield f"{name} scores covariate-shifted images higher than new classes: with {among} as ID, {reached}."
    elif low <= CHANCE:
        yield f"{name} does not separate new classes from covariate shift: with {among} as ID, {reached}."
    elif high < unchanged.ends[0]:
        yield f"Covariate shift lowers the AUROC of {name} for new classes: with {among} as ID, {reached}."
    else:
        yield f"No significant loss of {name} under covariate shift: at worst, with {among} as ID, {reached}."


def _random_networks(found: DetectorFindings, detector: str) -> Iterator[str]:
    """Datasets that random networks separate as well as the trained one, or on which they are at chance."""
    trained = {str(one.about.get("shift")): one for one in found.numbers("shift_auroc", ood_detector=detector)}
    means = {str(one.about.get("shift")): one for one in found.numbers("mean_random_network_auroc", ood_detector=detector)}
    both = {shift: (trained[shift], mean) for shift, mean in means.items() if shift in trained and mean.ends}
    as_well = [shift for shift, (one, mean) in both.items() if _as_far(one, mean)]
    blind = [shift for shift, (_, mean) in both.items() if _surely_near_chance(mean)]
    if as_well:
        yield (
            f"By {written(detector)}, random networks separate {_listed(as_well)} from clean images "
            "as well as the trained one: the score reflects low-level statistics, not classes."
        )
    if blind and not as_well:
        yield (f"By {written(detector)}, random networks are at chance on {_listed(blind)}: the separation is learned.")


def _surely_near_chance(mean: Measurement) -> bool:
    """Two or three networks may lie anywhere, so it is not enough that the interval covers 50 %."""
    return mean.ends is not None and all(abs(end - CHANCE) <= NEAR for end in mean.ends)


def _as_far(trained: Measurement, mean: Measurement) -> bool:
    """Whether random networks are as far from chance as the trained one may be, and surely not at chance."""
    low, high = mean.ends or (0.0, 1.0)
    nearest = min(abs(end - CHANCE) for end in trained.ends or (trained.value,))
    return not low <= CHANCE <= high and abs(mean.value - CHANCE) >= nearest


def _discarded(found: DetectorFindings, detector: str) -> Iterator[str]:
    """Correct predictions discarded with the rejected images, clean and under the worst shift."""
    numbers = found.numbers("correct_discarded", ood_detector=detector, ood=found.ood)
    unchanged = next((one for one in numbers if one.about.get("id") == found.id_sets[0]), None)
    if unchanged is None:
        return
    worst = max(numbers, key=lambda one: one.value)
    more = f"; on {worst.about.get('id')}, {figure(worst.value, 'share')}" if worst != unchanged else ""
    rejected = f"{unchanged.about.get('rejected', 'some')} of {found.ood}"
    yield (
        f"Rejecting {rejected} by {written(detector)} discards {figure(unchanged.value, 'share')} of the "
        f"correct predictions ({evidence(unchanged)}){more}."
    )


def _listed(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{len(names)} datasets ({names[0]}, {names[1]}, …)"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


SECTION = SectionMaker(NAMES, draw_ood, headlines=ood_headlines, details=ood_details, tiles=ood_numbers)
