"""What novelty and failure detection come to, in sentences for the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shiftproof.reports.detector_findings import BLIND, FAILURE, NEW_CLASS, DetectorFindings, by_model
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.page import Page, by_image_set
from shiftproof.reports.standings import Standing, detector_of
from shiftproof.reports.words import evidence, figure, kept_together, opened, span
from shiftproof.types import Measurement

NEAR = 0.1
"""An AUROC no farther than this from 50 % is called blind."""
GOALS = {NEW_CLASS: "new classes", FAILURE: "failures (wrong answers and new classes)"}
MOST_NAMED = 3


def novelty_headlines(page: Page) -> list[str]:
    """Which detector notices new classes best, which failures, and how well."""
    models = _models(page)
    goals = GOALS if len(models) == 1 else {NEW_CLASS: GOALS[NEW_CLASS]}
    return [
        _ahead(found, goal, what, page) for found in models for goal, what in goals.items() if found.main(goal) is not None
    ]


def novelty_details(page: Page) -> list[str]:
    """Whether one model's best detector goes by classes or by styles, and what it throws away."""
    models = _models(page)
    if len(models) != 1 or models[0].main(NEW_CLASS) is None:
        return []
    best = detector_of(models[0].standing(NEW_CLASS).best)
    told = [*_styles(models[0], best), *_random_networks(models[0], best), *_discarded(models[0], best)]
    return [kept_together(sentence) for sentence in told]


def novelty_numbers(page: Page) -> list[tuple[str, Measurement]]:
    """One model's best AUROC for each goal, each under a title."""
    models = _models(page)
    if len(models) != 1:
        return []
    best = {goal: standing.best for goal in GOALS if (standing := models[0].main(goal))}
    titles = {NEW_CLASS: "New classes", FAILURE: "Failures"}
    return [(f"{titles[goal]}, AUROC of {written(detector_of(one))}", one) for goal, one in best.items()]


def _models(page: Page) -> list[DetectorFindings]:
    return [found for findings in by_image_set(page.results.measurements).values() for found in by_model(findings)]


def _ahead(found: DetectorFindings, goal: str, what: str, page: Page) -> str:
    standing = found.standing(goal)
    best = standing.best
    name, subject = written(detector_of(best)), page.subject(best.about)
    reached = f"AUROC {figure(best.value, 'share')} ({evidence(best)}; 50 % is blind)"
    if standing.stands_out:
        baseline = standing.of(found.baseline)
        beside = f"; {written(found.baseline)}, the baseline, has {figure(baseline.value, 'share')}" if baseline else ""
        beside = "" if detector_of(best) == found.baseline else beside
        return kept_together(opened(subject, f"Best at noticing {what} is {name}: {reached}{beside}."))
    return kept_together(opened(subject, f"Ahead at noticing {what} is {name}: {reached}{_close_behind(standing)}."))


def _close_behind(standing: Standing) -> str:
    close = [written(detector_of(one)) for one in standing.aurocs[1:] if detector_of(one) in standing.alike]
    if not close:
        return ""
    names = ", ".join(close) if len(close) <= MOST_NAMED else f"{len(close)} other detectors"
    return f"; within chance of it: {names}"


def _styles(found: DetectorFindings, detector: str) -> Iterator[str]:
    """What becomes of the AUROC among known classes in new styles, where it is worst."""
    unchanged = found.standing(NEW_CLASS).best
    others = found.numbers("auroc", goal=NEW_CLASS, outside=found.outside, detector=detector)
    shifted = [one for one in others if one.about.get("inside") in found.styles and one.interval]
    if not shifted or unchanged.interval is None:
        return
    worst = min(shifted, key=lambda one: one.value)
    low, high = worst.interval or (0.0, 1.0)
    among, name = set_title(str(worst.about.get("inside"))), written(detector)
    reached = f"AUROC {figure(worst.value, 'share')} ({span(worst.interval, 'share')})"
    if high < BLIND:
        yield f"New styles look more foreign to {name} than new classes do: among images of {among} {reached}."
    elif low <= BLIND:
        yield f"{name} cannot tell new classes from a new style: among images of {among} {reached}."
    elif high < unchanged.interval[0]:
        yield f"New styles hide new classes from {name}: among images of {among} {reached}, among unchanged ones more."
    else:
        yield f"New styles do not surely hide new classes from {name}: at worst, among images of {among}, {reached}."


def _random_networks(found: DetectorFindings, detector: str) -> Iterator[str]:
    """Which sets networks that never learned anything tell apart as well as the trained one, and to which they are blind."""
    trained = {str(one.about.get("shift")): one for one in found.numbers("shift_auroc", detector=detector)}
    means = {str(one.about.get("shift")): one for one in found.numbers("mean_random_network_auroc", detector=detector)}
    both = {shift: (trained[shift], mean) for shift, mean in means.items() if shift in trained and mean.interval}
    as_well = [shift for shift, (one, mean) in both.items() if _as_far(one, mean)]
    blind = [shift for shift, (_, mean) in both.items() if _surely_near_blind(mean)]
    if as_well:
        yield (
            f"By {written(detector)}, networks that never learned anything tell {_listed(as_well)} from unchanged images "
            "as well as the trained one does: pixels are noticed there, not classes."
        )
    if blind and not as_well:
        yield (
            f"By {written(detector)}, networks that never learned anything are blind to {_listed(blind)}: "
            "what the trained one notices there, it has learned."
        )


def _surely_near_blind(mean: Measurement) -> bool:
    """Two or three networks may lie anywhere, so it is not enough that the interval covers 50 %."""
    return mean.interval is not None and all(abs(end - BLIND) <= NEAR for end in mean.interval)


def _as_far(trained: Measurement, mean: Measurement) -> bool:
    """Whether random networks are as far from blind as the trained one may be, and surely not blind."""
    low, high = mean.interval or (0.0, 1.0)
    nearest = min(abs(end - BLIND) for end in trained.interval or (trained.value,))
    return not low <= BLIND <= high and abs(mean.value - BLIND) >= nearest


def _discarded(found: DetectorFindings, detector: str) -> Iterator[str]:
    """How many right answers go with the rejected images, unchanged and under the worst shift."""
    numbers = found.numbers("correct_discarded", detector=detector, outside=found.outside)
    unchanged = next((one for one in numbers if one.about.get("inside") == found.insides[0]), None)
    if unchanged is None:
        return
    worst = max(numbers, key=lambda one: one.value)
    more = f"; on {set_title(str(worst.about.get('inside')))}, {figure(worst.value, 'share')}" if worst != unchanged else ""
    rejected = f"{unchanged.about.get('rejected', 'some')} of {set_title(found.outside)}"
    yield (
        f"Rejecting {rejected} by {written(detector)} throws away {figure(unchanged.value, 'share')} of the right answers "
        f"({evidence(unchanged)}){more}."
    )


def _listed(names: Sequence[str]) -> str:
    titles = [set_title(name) for name in names]
    if len(titles) > MOST_NAMED:
        return f"{len(titles)} sets ({titles[0]}, {titles[1]}, …)"
    return " and ".join(filter(None, [", ".join(titles[:-1]), titles[-1]]))
