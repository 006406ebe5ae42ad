"""What may be said about a model when it is loaded, the same for every kind of model."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from shiftproof.class_lists import ClassList, classes_from, usual_classes
from shiftproof.errors import BadInput, ClassMismatch, listed
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.presets import IMAGENET, parse_preparation
from shiftproof.models.sanity import figures_hint
from shiftproof.types import Classes, Gives, Seen

Fill = Literal["random", "empty"]
"""What stands behind the classes that a detector found: the others in random order, or nothing at all."""

ProposalAnswer = Literal["classes", "surest"]
"""What crops come to: the class of each, surest first, or all that is said of the crop whose class is surest."""

OF_BOXES = ("boxes", "least_score", "overlap", "most_boxes", "several")
"""What may be said of a detector whose boxes a classifier goes by."""

OF_PROPOSALS = ("proposals", "most_proposals", "least_side", "proposal_answer")
"""What may be said of the crops that a classifier is asked about."""


@dataclass(frozen=True)
class ModelOptions:
    """The user's word on a model; None leaves each thing to what the model itself says."""

    name: str | None = None
    prepare: str | ImagePreparation | None = None
    classes: ClassList | None = None
    gives: Gives | None = None
    features: str | None = None  # the tensor or layer to take them from
    output: str | None = None  # which output holds the class scores
    extra_output: str | None = None  # a further output to keep, such as a confidence branch
    turned: bool = False  # whether the extra output is a rotation head that is shown four turns
    weights: str | None = None  # a file of weights for an architecture, or "random"
    trust: bool = False  # whether a file that is a program may be run: a TorchScript file, an exported program
    device: str | None = None
    precision: str = "float32"
    channels_last: bool = False
    threads: int | None = None
    version: str | None = None
    seen: Seen | str | None = None
    boxes: str | None = None  # the layout of a detector's outputs; None: found by their shapes
    least_score: float | None = None
    overlap: float | None = None
    most_boxes: int | None = None
    several: bool | None = None  # whether a box counts for every class it is sure enough of
    fill: Fill | None = None
    fill_seed: int = 0
    proposals: str | None = None  # the detector that proposes crops, or "grid"
    most_proposals: int | None = None
    least_side: int | None = None  # of a crop, in pixels
    proposal_answer: ProposalAnswer | None = None

    def __post_init__(self) -> None:
        if self.gives not in {None, "logits", "probabilities", "scores"}:
            raise BadInput(f"a model gives logits, probabilities or scores, not {self.gives!r}")
        if self.turned and self.extra_output is None:
            raise BadInput("images are turned for a rotation head; say which output it is: --extra-output")

    def refuse(self, *names: str, what: str) -> None:
        """BadInput where one of these was given, so that nothing the user says is passed over in silence."""
        given = [name for name in names if getattr(self, name) != getattr(ModelOptions(), name)]
        if given:
            raise BadInput(f"{what} takes no {listed(given)}")

    def preparation(
        self, own: ImagePreparation | None, *, size: tuple[int, int] | None = None
    ) -> tuple[ImagePreparation, tuple[str, ...]]:
        """The preparation to use, and a note where nobody named one or its figures look wrong."""
        if isinstance(self.prepare, ImagePreparation):
            preparation = self.prepare
        else:
            preparation = parse_preparation(self.prepare or "", own or IMAGENET, size=size)
        if self.prepare is None and own is None:
            return preparation, ("the model does not say how images are prepared: taken as imagenet; --prepare changes it",)
        hint = figures_hint(preparation)
        return preparation, (hint,) if hint else ()

    def classes_of(self, outputs: int | None, own: ClassList | None = None) -> tuple[Classes | None, tuple[str, ...]]:
        """What the model's outputs mean, by the user's word or its own, and a note where it was assumed rather than said."""
        named = own if self.classes is None else self.classes
        if named is not None:
            classes = classes_from(named)
            if outputs not in (None, len(classes)):
                raise ClassMismatch(f"the model gives {outputs} scores an image but {len(classes)} classes are named")
            return classes, ()
        usual = usual_classes(outputs)
        if usual is None:
            return None, ("the model does not name its classes; --classes gives them",)
        behind = "background, then " if outputs == 1001 else ""
        return usual, (f"{outputs} outputs taken as {behind}ILSVRC-2012 in its usual order; --classes names others",)

    def seen_or(self, own: Seen | None = None) -> Seen:
        """What the model was trained on, by the user's word or its own."""
        if isinstance(self.seen, str):
            return dataclasses.replace(own or Seen(), training_data=self.seen)
        return self.seen or own or Seen()
