"""What objects without their background and other input sizes come to, in sentences for the summary."""

from __future__ import annotations

import math

from shiftproof.reports.page import Page, by_subject, named
from shiftproof.reports.words import evidence, figure, of_hundred, opened
from shiftproof.types import Measurement

TOLD = {"alone": "without their background", "enlarged": "enlarged without it"}
"""Looks of an object beside its image, as a sentence goes on about them."""


def object_headlines(page: Page) -> list[str]:
    """How many objects each model names right in their images, and how many without them."""
    sentences = []
    for found in by_subject(page.results.measurements).values():
        looks = {str(one.about["look"]): one for one in named(found, "object_accuracy")}
        if "image" in looks:
            whole = looks["image"]
            share = opened(page.subject(whole.about), of_hundred(whole.value))
            others = [f"{figure(looks[look].value, 'share')} {told}" for look, told in TOLD.items() if look in looks]
            told = ", ".join([f"{share} objects are named right in their images ({evidence(whole)})", *others])
            sentences.append(f"{told}.")
    return sentences


def input_size_headlines(page: Page) -> list[str]:
    """The size at which each model does best."""
    return [best_size(one, page) for one in named(page.results.measurements, "best_input_size") if math.isfinite(one.value)]


def best_size(found: Measurement, page: Page) -> str:
    """The best size of one model in a sentence, and whether its lead is more than chance."""
    size = found.convention["size"].replace("x", "×")
    return opened(page.subject(found.about), f"Most images are named right at {size}: {found.convention['best']}.")
