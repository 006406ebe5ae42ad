"""Which of two models is better, in a sentence: the word is used only where the numbers bear it out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from shiftproof.types import Measurement

FALSE_ALARMS = 0.05
"""The chance, over all pairs compared together, of calling one of two equally good models better."""


class Verdict(NamedTuple):
    """What can be said of two models on the same images."""

    image_set: str
    model: str
    versus: str
    better: str | None  # the name of the better model; None where it cannot be told
    text: str


def verdicts(measurements: Iterable[Measurement]) -> list[Verdict]:
    """A verdict on every pair of models that was compared, in the order of their measurements."""
    measurements = list(measurements)
    p_values = {_pair(found): found.value for found in measurements if found.metric == "accuracy_difference_p"}
    return [verdict(found, p_values.get(_pair(found))) for found in measurements if found.metric == "accuracy_difference"]


def verdict(difference: Measurement, p_value: float | None) -> Verdict:
    """A verdict from an `accuracy_difference` and its p-value, both corrected for the number of comparisons.

    >>> about = {"model": "old", "versus": "new", "image_set": "photos"}
    >>> sure = Measurement("accuracy_difference", -0.12, about, 500, {}, interval=(-0.16, -0.08))
    >>> verdict(sure, 0.0004).text
    'new is better than old on photos by 12.0 points (8.0 to 16.0; p < 0.001; 500 images)'
    >>> open_case = Measurement("accuracy_difference", 0.01, about, 500, {}, interval=(-0.02, 0.04))
    >>> verdict(open_case, 0.62).text
    'old and new cannot be told apart on photos: +1.0 points (-2.0 to +4.0; p = 0.62; 500 images)'
    """
    image_set, model, versus = _pair(difference)
    if p_value is None or difference.interval is None:
        text = (
            f"{model} and {versus} cannot be told apart on {image_set}: {difference.convention.get('interval', 'too few')}"
        )
        return Verdict(image_set, model, versus, None, text)
    low, high = difference.interval
    chance = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"
    behind = f"{chance}; {difference.images} images"
    if p_value >= FALSE_ALARMS or low <= 0 <= high:
        numbers = f"{100 * difference.value:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f}; {behind})"
        return Verdict(
            image_set, model, versus, None, f"{model} and {versus} cannot be told apart on {image_set}: {numbers}"
        )
    better, worse = (model, versus) if low > 0 else (versus, model)
    nearer, farther = sorted((100 * abs(low), 100 * abs(high)))
    numbers = f"{100 * abs(difference.value):.1f} points ({nearer:.1f} to {farther:.1f}; {behind})"
    return Verdict(image_set, model, versus, better, f"{better} is better than {worse} on {image_set} by {numbers}")


def _pair(found: Measurement) -> tuple[str, str, str]:
    return str(found.about["image_set"]), str(found.about["model"]), str(found.about["versus"])
