"""Models that adapt to unlabelled images before they predict: to which ones, and under which condition.

The images are part of the model: its fingerprint covers their ids and bytes. So a row of the store depends on the model, the
condition and its own image alone, whatever the order, the batches, the shard or the budget that it was predicted in.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
import xxhash

from shiftproof.datasets.subsets import View
from shiftproof.errors import BadInput
from shiftproof.models.loaded import Adaptation, Forward, LoadedClassifier
from shiftproof.runs.prepare import Job, check_condition, prepare, warm_up_for
from shiftproof.runs.store import Store
from shiftproof.runs.workers import Workers
from shiftproof.types import Condition, Dataset, Inputs, Model, ModelRef, Outputs, Preprocessing, Sample, fingerprint_of

BATCH = 64
"""Most images that a model adapts to at a time: one number for everybody, since what comes out depends on it."""

M = TypeVar("M", bound=Model)


def adapted_to(model: M, images: Dataset, store: Store) -> M:
    """The model with the images that it adapts to, drawn by their ids; one that does not adapt stays as it is."""
    if not isinstance(model, LoadedClassifier) or model.adaptation is None or model.adaptation.images is not None:
        return model
    adaptation = model.adaptation
    drawn = sorted(images.samples, key=_place)[: adaptation.most]
    # labels take no part, and cannot
    chosen = View(images, None, [dataclasses.replace(sample, labels=()) for sample in drawn])
    digests = store.digests.digests([images.source(sample) for sample in drawn])
    pairs = [[sample.id, digest] for sample, digest in zip(drawn, digests, strict=True)]
    name = model.ref.name if adaptation.named else f"{model.ref.name} on {images.ref.name}"
    counted = f"{len(drawn):,} images" if len(drawn) < len(images.samples) else f"all {len(drawn):,} images"
    note = (
        f"it adapts to {counted} of {images.ref.name}, without their labels and anew under each condition, also where it "
        "then predicts others; which these are follows from their ids, and no prediction depends on the order of images"
    )
    return dataclasses.replace(
        model,
        ref=ModelRef(name, fingerprint_of(model.ref.fingerprint, "images", pairs)),
        notes=(*model.notes, note),
        adaptation=dataclasses.replace(adaptation, images=chosen),
    )


def _place(sample: Sample) -> tuple[int, str]:
    return xxhash.xxh3_64_intdigest(sample.id.encode("utf-8", "surrogateescape")), sample.id


def adapts(model: Model) -> bool:
    """Whether a model adapts to images of a condition before it predicts under it."""
    return isinstance(model, LoadedClassifier) and model.adaptation is not None


def under(model: M, condition: Condition, workers: int | None = None) -> M:
    """The model as it predicts under a condition; one that adapts does so when its first batch comes."""
    if not isinstance(model, LoadedClassifier) or model.adaptation is None:
        return model
    if model.adaptation.images is None:
        raise BadInput(
            f"{model.ref.name} adapts to images of a dataset, and there is none here to adapt to; "
            "such models are run with shiftproof run or predict"
        )
    check_condition(condition)
    late = _Late(model.ref.name, model.adaptation, model.adaptation.images, model.preprocessing, condition, workers)
    return dataclasses.replace(model, forward=late, adaptation=None)


@dataclasses.dataclass(frozen=True)
class _Late:
    """The forward pass of a model that adapts before its first batch."""

    name: str
    adaptation: Adaptation
    images: Dataset
    preprocessing: Preprocessing
    condition: Condition
    workers: int | None

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        return self._adapted(inputs, features)

    @cached_property
    def _adapted(self) -> Forward:
        batches = list(self._batches())
        if not batches:
            raise BadInput(f"{self.name} adapts to images of {self.images.ref.name}, and none of these can be read")
        return self.adaptation.to(batches)

    def _batches(self) -> Iterator[Inputs]:
        # of one size, as far as that goes: a few images at the end would have statistics of their own
        samples, parts = self.images.samples, -(-len(self.images.samples) // BATCH)
        ends = [len(samples) * part // parts for part in range(parts + 1)]
        jobs = [Job.of(self.images, samples[start:end], self.condition, self.preprocessing) for start, end in pairwise(ends)]
        with Workers(self.workers) as pool:
            for block in pool.blocks(prepare, jobs, warm_up=warm_up_for([self.condition], self.preprocessing)):
                if not len(block.batch):
                    continue
                if not isinstance(block.batch, np.ndarray):
                    raise BadInput(f"{self.name} adapts to images of one size; name one with --preprocess")
                yield block.batch.copy()  # its memory is used again
