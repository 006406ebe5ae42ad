"""What another tool found, put into the store: rows like those of a detector that was asked, without opening an image."""

from __future__ import annotations

import numpy as np

from shiftproof.answers import BoxAnswers
from shiftproof.errors import BadInput
from shiftproof.loading import digests_of
from shiftproof.store import Store, StoredModel
from shiftproof.stored_rows import Rows
from shiftproof.types import CLEAN, Condition, Detections, Found, ImageSet, RecordedDetector, Sample, SetAside

BLOCK = 4096
"""Images whose boxes go into one file."""


def record(model: RecordedDetector, images: ImageSet, condition: Condition, *, store: Store) -> tuple[int, list[SetAside]]:
    """Puts what is missing of the answers into the store; how many images that were, and those that are not there."""
    if condition != CLEAN:
        raise BadInput(f"{model.ref.name} has answers to the images as they are, and none under {condition}")
    store.save_model(StoredModel.of(model))
    run, digests = store.run(model.ref, condition), digests_of(images, store)
    known = run.contents("boxes", verified=True).rows
    found = _by_image(model.answers_for(images))
    new = [sample for sample in images.samples if (digest := digests[sample.id]) and (sample.id, digest) not in known]
    for start in range(0, len(new), BLOCK):
        some = new[start : start + BLOCK]
        answers = BoxAnswers([found[sample.id] for sample in some], [_size_of(sample) for sample in some])
        arrays = answers.arrays(np.arange(len(some)))
        run.append(Rows([sample.id for sample in some], [digests[sample.id] or "" for sample in some], arrays), "boxes")
    return len(new), [SetAside(key, "cannot be read") for key, digest in digests.items() if digest is None]


def _by_image(detections: Detections) -> dict[str, Found]:
    """What was found in each image, surest first."""
    order = np.lexsort((-detections.scores, detections.image))
    ends = np.cumsum(np.bincount(detections.image, minlength=len(detections.ids)))
    return {
        key: Found(detections.boxes[rows], detections.scores[rows], detections.classes[rows])
        for key, rows in zip(detections.ids, np.split(order, ends[:-1]), strict=True)
    }


def _size_of(sample: Sample) -> tuple[int, int]:
    """Height and width as the set tells them; zeros where it does not, since the image is not opened."""
    height, width = sample.facts.get("height"), sample.facts.get("width")
    return (height, width) if isinstance(height, int) and isinstance(width, int) else (0, 0)
