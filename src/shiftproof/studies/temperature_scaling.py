"""What one temperature would mend: fitted on one half of the images, judged on the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from shiftproof.metrics import fit_temperature, split_half, temperature_interval
from shiftproof.metrics.likelihood import best_right, negative_log_likelihoods
from shiftproof.metrics.temperature import LEAST, MOST
from shiftproof.metrics.top5 import to_top5
from shiftproof.studies import evidence
from shiftproof.types import About, Logits, Measurement, Predictions

BEFORE, AFTER = "before temperature scaling", "after temperature scaling"
AT_LEAST = 20
"""Images that either half needs, before anything is said of it."""

Judge: TypeAlias = Callable[[Predictions, About, Mapping[str, str]], Iterator[Measurement]]
"""The numbers that are compared before and after."""


def before_and_after(
    predictions: Predictions, about: About, convention: Mapping[str, str], judge: Judge
) -> Iterator[Measurement]:
    """The temperature, and of the images it was not fitted on every number without it and with it."""
    if too_few(predictions):
        return
    fitting = split_half(predictions.clusters.keys)
    learnt, held_out = predictions.take(fitting), predictions.take(~fitting)
    temperature = fit_temperature(learnt.labels, _logits(learnt))
    half = {"half": "by the images' ids, or those of their cases, so that a case stays in its half"}
    if learnt.clusters.numbers is None:
        interval = temperature_interval(learnt.labels, _logits(learnt), temperature)
        bounds = {"interval": "95 %, for large samples"} if interval else {"bound": f"between {LEAST:g} and {MOST:g}"}
    else:
        interval, bounds = None, {"interval": "none: its likelihood takes images of one case for independent"}
    stated, cases = {**convention, **half, **bounds}, learnt.clusters.count
    yield Measurement("temperature", temperature, about, len(learnt), stated, interval, cases)
    told = {**convention, **half, "temperature": f"{temperature:.3g}, fitted on the other {len(learnt)} images"}
    for when, answers in ((BEFORE, held_out), (AFTER, _scaled(held_out, temperature))):
        named = {**about, "scaling": when}
        yield from judge(answers, named, told)
        yield from likelihood(answers, named, told)


def likelihood(predictions: Predictions, about: About, convention: Mapping[str, str]) -> Iterator[Measurement]:
    """The mean surprise at the truth; images whose class the model lacks would make it infinite and are left out."""
    surprise = negative_log_likelihoods(predictions.labels, predictions.need_logits(), predictions.gives)
    known = np.isfinite(surprise)
    missing = int((~known).sum())
    told = {"without likelihood": f"{missing} of {len(known)}, left out: no chance for the right class"} if missing else {}
    if known.any():
        stated, clusters = {**convention, **told}, predictions.clusters.take(known)
        yield evidence.mean("negative_log_likelihood", surprise[known], about, stated, clusters)


def too_few(predictions: Predictions) -> str | None:
    """Why no temperature can be fitted and judged, or None."""
    possible = np.isfinite(best_right(predictions.labels, _logits(predictions)))
    first = split_half(predictions.clusters.keys)
    if min((possible & first).sum(), (possible & ~first).sum()) >= AT_LEAST:
        return None
    return f"a temperature needs at least {AT_LEAST} images to be fitted on and as many others to be judged on"


def _logits(predictions: Predictions) -> Logits:
    """Logits, or the logarithms of probabilities, which are logits as good as any."""
    given = predictions.need_logits()
    if predictions.gives == "logits":
        return given
    with np.errstate(divide="ignore"):
        return np.log(given, dtype=np.result_type(given, np.float32))


def _scaled(predictions: Predictions, temperature: float) -> Predictions:
    logits = _logits(predictions)
    cooler = logits.astype(np.result_type(logits, np.float32)) / temperature
    return dataclasses.replace(predictions, gives="logits", logits=cooler, top5=to_top5(cooler, "logits"))
