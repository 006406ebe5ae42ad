"""How long forward passes take on so many machines, what they store, and what they cost.

A machine does so many images a second: as the user says, or as a probe of this machine finds. Machines do not wait for each
other, so that twice as many take half as long, up to what one process can hand out to them. What is left out is the start:
opening the model on every machine, some seconds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from shiftproof.corruptions import IMAGENET_C, IMAGENET_P
from shiftproof.corruptions.sequences import parameters_of
from shiftproof.datasets.image_list import spread_over
from shiftproof.datasets.subsets import View
from shiftproof.options import PredictionSettings
from shiftproof.runs.predict import fill_conditions
from shiftproof.runs.store import Store
from shiftproof.types import Condition, Dataset, Keep, Model

HANDED_OUT = 100_000.0
"""Images a second that one process can hand out to an engine and note: 5 to 9 us each, `benchmarks/many_workers.py`."""

VALIDATION = 50_000  # images of ILSVRC-2012 that ImageNet-C and -P are made of
RELEASED_2011 = 14_197_122  # images of ImageNet-22K
PROBED_IMAGES, PROBED_CONDITIONS, WARM_UP = 64, 6, 8


class Speed(NamedTuple):
    """What one machine does."""

    images_a_second: float
    bytes_stored: float | None = None  # of an image under one condition; None where that was not measured


class Planned(list[dict[str, str | int]]):
    """The runs that studies need, a row each; and what they would take, where that was asked for."""

    forecasts: Sequence[Forecast] = ()


class Forecast(NamedTuple):
    """What some work takes."""

    work: str
    passes: int
    nodes: int
    hours: float
    gigabytes: float | None  # that are stored
    price: float | None
    limit: str  # what keeps more nodes from being faster; nothing where there is no such limit yet


def published() -> Mapping[str, int]:
    """Forward passes of what researchers run.

    >>> published()
    {'ImageNet-C': 3800000, 'ImageNet-P': 16000000, 'ImageNet-22K': 14197122}
    """
    frames = sum(int(parameters_of(name)["frames"]) for name in IMAGENET_P)
    severities_and_clean = 5 * len(IMAGENET_C) + 1
    return {
        "ImageNet-C": severities_and_clean * VALIDATION,
        "ImageNet-P": frames * VALIDATION,
        "ImageNet-22K": RELEASED_2011,
    }


def forecast(work: str, passes: int, nodes: int, speed: Speed, price: float | None = None) -> Forecast:
    """What so many passes take on so many machines; `price` is that of a machine for an hour.

    >>> forecast("ImageNet-C", 3_800_000, 100, Speed(200.0, 120.0), 1.5)[3:6]
    (0.05277777777777778, 0.456, 7.916666666666667)
    """
    wanted = nodes * speed.images_a_second
    hours = passes / min(wanted, HANDED_OUT) / 3600
    limit = "handing out" if wanted > HANDED_OUT else ""
    stored = None if speed.bytes_stored is None else passes * speed.bytes_stored / 1e9
    return Forecast(work, passes, nodes, hours, stored, None if price is None else price * nodes * hours, limit)


def forecasts(passes: int, nodes: Iterable[int], speed: Speed, price: float | None) -> Iterator[Forecast]:
    """This plan and what researchers run, each on so many machines."""
    counts = sorted(set(nodes))
    for work, count in {"this plan": passes, **published()}.items():
        yield from (forecast(work, count, number, speed, price) for number in counts if count)


def probe(model: Model, images: Dataset, conditions: Sequence[Condition], keep: Keep) -> Speed:
    """The speed of this machine with all its cores, on some images under some of the conditions, nothing of it kept."""
    step = max(1, len(conditions) // PROBED_CONDITIONS)
    some = dict.fromkeys(conditions[::step][:PROBED_CONDITIONS])
    settings = PredictionSettings(quiet=True)
    with tempfile.TemporaryDirectory() as folder:
        few, chosen = (
            View(images, images.classes, spread_over(images.samples, count)) for count in (WARM_UP, PROBED_IMAGES)
        )
        store = Path(folder) / "timed"
        fill_conditions(model, few, some, store=Store(f"{folder}/warm"), settings=settings, keep=keep)
        started = time.perf_counter()
        fill_conditions(model, chosen, some, store=Store(store), settings=settings, keep=keep)
        seconds = time.perf_counter() - started
        stored = sum(path.stat().st_size for path in (store / "rows").rglob("*") if path.is_file())
    passes = len(chosen.samples) * len(some)
    return Speed(passes / seconds, stored / passes)
