"""Our training loop beside a bare torch loop on ready tensors: what pictures, augmentation and bookkeeping cost.

    python benchmarks/training_speed.py [figures.json]      NETWORK=scratch:resnet-14 ROUNDS=5 IMAGES=4096 BATCH=128

Same network, batch size, optimizer and threads; in turn, with the bare loop twice a round as control, and once more with
channels last in memory, as our loop has them. Aim: at least 0.9 of the bare rate for the baseline. The CPU of augmentation
is reported apart, by recipe. Seconds of a machine with other work on it mean little; the ratio of CPU seconds, which other
work hardly touches, is printed beside that of seconds; ours there counts decoding, validation and checkpoints too.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from harness import save
from shiftproof.datasets.arrays import open_arrays
from shiftproof.options import ModelSettings
from shiftproof.training.job import Job
from shiftproof.training.networks.engine import train_network
from shiftproof.training.networks.modules import open_network
from shiftproof.training.options import TrainOptions
from shiftproof.training.pictures import views
from shiftproof.training.recipe import chosen_recipes
from shiftproof.types import Classes, Dataset

NETWORK = os.environ.get("NETWORK", "scratch:resnet-8")
ROUNDS, IMAGES, BATCH = (
    int(os.environ.get(name, default)) for name, default in (("ROUNDS", "5"), ("IMAGES", "4096"), ("BATCH", "128"))
)
CLASSES = Classes(tuple("abcdefghij"))
RECIPES = ("baseline", "cutout", "augmix", "randaugment", "trivialaugment", "pixmix")


class Spent(NamedTuple):
    """Seconds and seconds of CPU, of this process and its workers, for an image."""

    seconds: float
    cpu: float


def cpu_seconds() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def pictures(folder: Path) -> tuple[Dataset, Dataset]:
    """Noise as pictures: what they show makes no difference to speed."""
    rng = np.random.default_rng(0)
    sets = []
    for name, count in (("training", IMAGES), ("validation", 16)):
        np.save(folder / f"{name}.npy", rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8))
        np.save(folder / f"{name}_labels.npy", np.arange(count) % len(CLASSES))
        sets.append(open_arrays(str(folder / f"{name}.npy")))
    return sets[0], sets[1]


def bare(steps: int, layout: torch.memory_format = torch.contiguous_format) -> Spent:
    """Forward, backward and step on tensors that are there already."""
    network = open_network(NETWORK, CLASSES).network.train().to(memory_format=layout)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    images, labels = torch.randn(IMAGES, 3, 32, 32).contiguous(memory_format=layout), torch.arange(IMAGES) % len(CLASSES)
    started, cpu = time.perf_counter(), cpu_seconds()
    for step in range(steps):
        part = slice(step * BATCH, (step + 1) * BATCH)
        loss = functional.cross_entropy(network(images[part])["logits"], labels[part])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        optimizer.step()
    return Spent((time.perf_counter() - started) / (steps * BATCH), (cpu_seconds() - cpu) / (steps * BATCH))


def ours(training: Dataset, validation: Dataset, steps: int) -> Spent:
    """An epoch of our loop; decoding and validation, which are not of every epoch's step, do not count as seconds."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job(
            model=NETWORK,
            model_options=ModelSettings(),
            recipes=chosen_recipes("baseline"),
            level="network",
            training=training,
            validation=validation,
            outliers=None,
            classes=CLASSES,
            options=TrainOptions(level="network", epochs=1, batch_size=BATCH, learning_rate=0.1),
            seed=0,
            folder=Path(folder),
            source="",
            dataset=training.ref,
            digest="",
        )
        cpu = cpu_seconds()
        (row,) = train_network(job).curves
        return Spent(row.seconds / (steps * BATCH), (cpu_seconds() - cpu) / (steps * BATCH))


def augmentation_cpu(images: int = 512) -> dict[str, float]:
    """Microseconds of CPU that each recipe's augmentation takes for an image."""
    shown = np.random.default_rng(0).integers(0, 256, (64, 32, 32, 3), dtype=np.uint8)
    taken = {}
    for name in RECIPES:
        chosen = chosen_recipes(name)
        for turn in range(2):  # the first compiles and imports
            started = time.process_time()
            for place in range(images):
                views(shown[place % 64], chosen, shown, key=f"{place}.png", epoch=turn, seed=0)
            taken[name] = (time.process_time() - started) / images * 1e6
    return taken


def main() -> None:
    steps = IMAGES // BATCH
    with tempfile.TemporaryDirectory() as folder:
        training, validation = pictures(Path(folder))
        entries: dict[str, Callable[[], Spent]] = {
            "bare loop, ready tensors": lambda: bare(steps),
            "bare loop, channels last": lambda: bare(steps, torch.channels_last),
            "shiftproof, baseline": lambda: ours(training, validation, steps),
            "bare loop (again)": lambda: bare(steps),
        }
        for work in entries.values():
            work()
        spent: dict[str, list[Spent]] = {name: [] for name in entries}
        for turn in range(ROUNDS):
            names = list(entries)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                spent[name].append(entries[name]())
    first, *_ = spent
    figures: dict[str, object] = {}
    for name, own in spent.items():
        ratios = [
            statistics.median(
                getattr(base, what) / getattr(mine, what) for base, mine in zip(spent[first], own, strict=True)
            )
            for what in Spent._fields
        ]
        figures[name] = {"of the bare rate": ratios[0], "of the bare rate by CPU": ratios[1]}
        rate = 1 / statistics.median(one.seconds for one in own)
        print(f"{name:28} {rate:9.0f} images/s   {ratios[0]:.3f} of the bare rate, {ratios[1]:.3f} by CPU")
    figures["augmentation, us of CPU an image"] = found = augmentation_cpu()
    for name, microseconds in found.items():
        print(f"{name:28} {microseconds:9.0f} us of CPU an image to augment")
    print(f"{NETWORK}, batch {BATCH}, {torch.get_num_threads()} threads; {ROUNDS} rounds")
    save("training_speed", figures)


if __name__ == "__main__":
    main()
