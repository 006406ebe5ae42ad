"""What corruptions and perturbations come to, in sentences for the summary."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shiftproof.reports.page import Page, by_subject, model_of, named
from shiftproof.reports.words import evidence, figure, of_hundred, spoken
from shiftproof.types import Measurement

SHORT = {"mean_corruption_error": "mCE", "mean_flip_rate": "mFR"}


def shift_headlines(overall: Sequence[Measurement], page: Page) -> list[str]:
    """How often each model is wrong on changed pictures, and how often it changes its answer."""
    sentences = []
    for found in by_subject(overall).values():
        subject = page.subject(found[0].about)
        clean = "".join(f", unchanged {figure(one.value, 'share')}" for one in _known(named(found, "clean_error")))
        for one in _known(named(found, "mean_corrupted_error")):
            told = f"{_opened(subject, of_hundred(one.value))} images are named wrong under corruption"
            sentences.append(f"{told}{clean} ({evidence(one)}).")
        for one in _known(named(found, "mean_flip_probability")):
            told = f"{_opened(subject, of_hundred(one.value))} small changes of a picture change the answer"
            sentences.append(f"{told} ({evidence(one)}).")
    return sentences


def shift_details(measurements: Sequence[Measurement], overall: Sequence[Measurement]) -> list[str]:
    """What one model's means are beside the baseline's, and which corruption is the hardest."""
    ratios = [one for name in SHORT for one in _known(named(overall, name))]
    hardest = sorted(_known(named(measurements, "corruption_mean_error")), key=lambda one: -one.value)[:1]
    return [
        *(
            f"Hardest corruption: {spoken(str(one.about.get('corruption', '')))}, {figure(one.value, 'share')} wrong "
            f"({evidence(one)})."
            for one in hardest
        ),
        *(
            f"{SHORT[one.metric]} is {figure(one.value, 'share')} ({evidence(one)}); 100\u202f% is the baseline, "
            f"{one.convention.get('baseline', model_of(one))}."
            for one in ratios
        ),
    ]


def _known(found: Sequence[Measurement]) -> list[Measurement]:
    return [one for one in found if math.isfinite(one.value)]


def _opened(subject: str, share: str) -> str:
    return f"{subject}: {share[0].lower()}{share[1:]}" if subject else share
