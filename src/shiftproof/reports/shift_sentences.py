"""What corruptions and perturbations come to, in sentences for the summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from shiftproof.metrics.meanings import unseen
from shiftproof.reports.page import Page, by_subject, model_of, named
from shiftproof.reports.words import evidence, figure, of_hundred, opened, spoken
from shiftproof.types import Finding, Measurement

SHORT = {"mean_corruption_error": "mCE", "mean_flip_rate": "mFR"}


def corruption_headlines(overall: Sequence[Measurement], page: Page) -> list[str]:
    """How often each model is wrong on corrupted pictures, and on the same ones unchanged."""
    sentences = []
    for found in by_subject(overall).values():
        unchanged = "".join(f", of the unchanged ones {figure(one.value, 'share')}" for one in _known(found, "clean_error"))
        for one in _unseen_first(found, "mean_corrupted_error"):
            share = opened(page.subject(one.about), of_hundred(one.value))
            new = ", by corruptions that were no part of training," if _is_unseen(one) else ""
            sentences.append(f"{share} corrupted images{new} are named wrong ({evidence(one)}){unchanged}.")
    return sentences


def perturbation_headlines(overall: Sequence[Measurement], page: Page) -> list[str]:
    """How often each model changes its answer."""
    return [
        f"{opened(page.subject(one.about), of_hundred(one.value))} small changes of a picture"
        f"{', of kinds that were no part of training,' if _is_unseen(one) else ''} change the answer ({evidence(one)})."
        for found in by_subject(overall).values()
        for one in _unseen_first(found, "mean_flip_probability")
    ]


def shift_details(measurements: Sequence[Measurement], overall: Sequence[Measurement]) -> list[str]:
    """What one model's means are beside the baseline's, and which corruption is the hardest."""
    ratios = [one for name in SHORT for one in _unseen_first(overall, name)]
    hardest = sorted(_known(measurements, "corruption_mean_error"), key=lambda one: -one.value)[:1]
    return [
        *(
            f"Hardest corruption: {spoken(str(one.about.get('corruption', '')))}, {figure(one.value, 'share')} wrong "
            f"({evidence(one)})."
            for one in hardest
        ),
        *(
            f"{_short(one)} is {figure(one.value, 'share')} ({evidence(one)}); 100\u202f% is the baseline, "
            f"{one.convention.get('baseline', model_of(one))}."
            for one in ratios
        ),
    ]


def _unseen_first(found: Sequence[Finding], name: str) -> list[Measurement]:
    """The mean over what the model was not trained with where there is one; else the mean of that name."""
    return _known(found, unseen(name)) or _known(found, name)


def _is_unseen(found: Measurement) -> bool:
    return found.metric.startswith(unseen(""))


def _short(found: Measurement) -> str:
    name = SHORT[found.metric.removeprefix(unseen(""))]
    return f"{name} without what was part of training" if _is_unseen(found) else name


def _known(found: Iterable[Finding], name: str) -> list[Measurement]:
    return [one for one in named(found, name) if math.isfinite(one.value)]
