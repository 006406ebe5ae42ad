"""What frames around frames come to, in sentences for the summary."""

from __future__ import annotations

import math

from shiftproof.reports.page import Page, by_subject, named
from shiftproof.reports.temporal import at_largest_k
from shiftproof.reports.words import evidence, of_hundred, opened


def temporal_headlines(page: Page) -> list[str]:
    """How many anchors each model names right, and how many with all frames around them."""
    sentences = []
    for found in by_subject(page.results.measurements).values():
        for anchor in named(found, "anchor_accuracy"):
            for around in at_largest_k(found):
                if math.isfinite(anchor.value) and math.isfinite(around.value):
                    share = opened(page.subject(anchor.about), of_hundred(anchor.value))
                    still = _still(anchor.value, around.value)
                    within = f"every frame within {around.about['k']} of them"
                    behind = evidence(around) if around.interval else f"{around.convention['clips']}, so no interval"
                    sentences.append(f"{share} anchor frames are named right, {still} on {within} ({behind}).")
    return sentences


def _still(anchor: float, around: float) -> str:
    """The second share beside the first.

    >>> _still(0.85, 0.6), _still(0.85, 0.849), _still(0.5, 0.0)
    ('but only about 60', 'and as many', 'but none')
    """
    before, after = (of_hundred(share).removesuffix(" of 100").removesuffix(" of the") for share in (anchor, around))
    if before == after:
        return "and as many"
    return f"{'but only' if 0 < around < anchor else 'but' if around < anchor else 'and'} {after.lower()}"
