"""Our training loop beside a bare torch loop on ready tensors: what pictures, augmentation and bookkeeping cost.

    python benchmarks/training_speed.py [figures.json]      NETWORK=scratch:resnet-14 ROUNDS=5 IMAGES=4096 BATCH=128

Same network, batch size, optimizer, threads and memory format (channels last), in turn, with the bare loop twice a round as
control. Compared is the CPU of the thread that trains, which other work on a machine hardly touches: with one thread
(OMP_NUM_THREADS=1) all of the network's arithmetic is in it. Aim: at least 0.9 of the bare rate for the baseline. Pictures
are augmented ahead by workers beside it; what that takes is reported apart, by recipe, as is all CPU of the process.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from harness import save
from shiftproof.datasets.arrays import open_arrays
from shiftproof.options import ModelSettings
from shiftproof.runs.workers import Workers
from shiftproof.training.job import Job
from shiftproof.training.networks.course import fabric_of
from shiftproof.training.networks.engine import ClassifierCourse
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
    """Seconds for an image: of CPU of the thread that trains, of CPU of the process, and on the clock."""

    thread: float
    process: float
    clock: float

    @classmethod
    def now(cls) -> Spent:
        return cls(time.thread_time(), time.process_time(), time.perf_counter())

    def since(self, before: Spent, images: int) -> Spent:
        return Spent(*((end - start) / images for end, start in zip(self, before, strict=True)))


def pictures(folder: Path) -> tuple[Dataset, Dataset]:
    """Noise as pictures: what they show makes no difference to speed."""
    rng = np.random.default_rng(0)
    sets = []
    for name, count in (("training", IMAGES), ("validation", 16)):
        np.save(folder / f"{name}.npy", rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8))
        np.save(folder / f"{name}_labels.npy", np.arange(count) % len(CLASSES))
        sets.append(open_arrays(str(folder / f"{name}.npy")))
    return sets[0], sets[1]


def bare(steps: int) -> Spent:
    """Forward, backward and step on tensors that are there already."""
    network = open_network(NETWORK, CLASSES).network.train()
    network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing from torch's types
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    images = torch.randn(IMAGES, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    labels = torch.arange(IMAGES) % len(CLASSES)
    started = Spent.now()
    for step in range(steps):
        part = slice(step * BATCH, (step + 1) * BATCH)
        loss = functional.cross_entropy(network(images[part])["logits"], labels[part])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        optimizer.step()
    return Spent.now().since(started, steps * BATCH)


class Timed(ClassifierCourse):
    """Our loop, which notes what the steps of an epoch take; decoding, validation and checkpoints are none of them."""

    spent: Spent

    def batches(self, epoch: int, steps: range, wrapped: nn.Module) -> Iterator[Any]:
        started = Spent.now()
        yield from super().batches(epoch, steps, wrapped)
        self.spent = Spent.now().since(started, len(steps) * self.batch)  # asked for after the last step


def ours(training: Dataset, validation: Dataset) -> Spent:
    """An epoch of our loop."""
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
        with Workers() as workers:
            course = Timed(job, fabric_of(job), workers, None)
            course.run()
        return course.spent


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
            "shiftproof, baseline": lambda: ours(training, validation),
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
        figures[name] = dict(zip(Spent._fields, ratios, strict=True))
        rate = 1 / statistics.median(one.thread for one in own)
        print(
            f"{name:28} {rate:9.0f} images a CPU-second   {ratios[0]:.3f} of the bare rate; with workers' threads "
            f"{ratios[1]:.3f}, on the clock {ratios[2]:.3f}"
        )
    figures["augmentation, us of CPU an image"] = found = augmentation_cpu()
    for name, microseconds in found.items():
        print(f"{name:28} {microseconds:9.0f} us of CPU an image to augment")
    print(f"{NETWORK}, batch {BATCH}, {torch.get_num_threads()} threads; {ROUNDS} rounds")
    save("training_speed", figures)


if __name__ == "__main__":
    main()
