"""Which objects of a boxed set become crops, step by step as ImageNet-A-Plus was made (Li et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from shiftproof.curation.boxed_objects import boxed_objects
from shiftproof.curation.crop_candidates import Candidate
from shiftproof.curation.crops import TIMES_SMALLER, is_too_small
from shiftproof.curation.reference_models import ReferenceModels
from shiftproof.curation.sifting import Sifted
from shiftproof.curation.usual_shares import UsualShares
from shiftproof.errors import BadInput
from shiftproof.image_sets.image_list import ImageList
from shiftproof.prediction import Progress

CropChoice: TypeAlias = Sifted[Candidate, str]


def choose_crops(
    images: ImageList,
    usual: UsualShares,
    *,
    times_smaller: float = TIMES_SMALLER,
    reference: ReferenceModels | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> CropChoice:
    """The objects that are not too small for their class and that no reference model recognises.

    Images that cannot be read go with their reason in the step that notices.
    """
    objects = boxed_objects(images)
    if not objects or images.classes is None:
        raise BadInput(f"{images.name} has no objects that could be cut out")
    usual_shares = usual.among(images.classes)
    shares, labels = np.array([one.share for one in objects]), np.array([one.label for one in objects])
    small = is_too_small(shares, labels, usual_shares, times=times_smaller)
    too_small = {one.id for one, is_small in zip(objects, small, strict=True) if is_small}
    choice = (
        CropChoice.start(Candidate(one, float(usual_shares[one.label])) for one in objects)
        .step("inside images that can be read", lambda one: one.boxed.problem)
        .step(
            "of classes whose usual share is known", lambda one: None if one.has_window else "nobody knows its usual share"
        )
        .step(
            f"not {times_smaller:g} times smaller than usual", lambda one: _smallness(one) if one.id in too_small else None
        )
    )
    if reference is not None:
        for model in reference.models:
            reasons = reference.reasons(model, images, choice.left, workers=workers, progress=progress)
            name = f"not recognised by {model.ref.name} in the {reference.shown} crop"
            choice = choice.step(name, partial(_reason_in, reasons))
    return choice


def _smallness(one: Candidate) -> str:
    return f"fills {one.boxed.share:.2%} of its image, usually {one.usual_share:.2%}"


def _reason_in(reasons: Mapping[str, str], one: Candidate) -> str | None:
    return reasons.get(one.id)
