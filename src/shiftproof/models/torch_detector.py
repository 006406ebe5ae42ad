"""Object detectors in torch: modules that answer as torchvision's do, or with the arrays of a known layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from shiftproof.catalog import BOX_LAYOUTS
from shiftproof.errors import BadInput
from shiftproof.models.box_layouts import Decode, class_count, decoder_of, usual_for
from shiftproof.models.candidates import Candidates
from shiftproof.models.detector_options import classes_of_boxes, rules_of_boxes
from shiftproof.models.grid_boxes import RawOutputs, asked_of
from shiftproof.models.loaded import check_size, model_ref
from shiftproof.models.loaded_detector import LoadedDetector
from shiftproof.models.options import ModelOptions
from shiftproof.models.preparation import Layout
from shiftproof.models.presets import parse_preparation
from shiftproof.models.pytorch import example_inputs
from shiftproof.models.torch_modules import fixed_sizes, load_module, network_of
from shiftproof.models.torch_network import TorchNetwork
from shiftproof.types import Inputs

WHOLE = "unit,resize=none"
"""How torchvision's detectors want their images, from 0 to 1 and of any size: they resize and normalise inside."""


def load_torch_detector(rest: str, options: ModelOptions) -> LoadedDetector:
    """The object detector a factory makes (``module:factory``, ``file.py:factory``) or a file holds."""
    module, name, digest = load_module(rest, options)
    batch_size, size = fixed_sizes(module)
    own = parse_preparation(WHOLE if options.boxes is None else usual_for(options.boxes).prepare)
    preparation, preparation_notes = options.preparation(own, size=size)
    check_size(preparation, size, name)
    network = network_of(module, options)
    answer = network.given(example_inputs(preparation, batch_size or 1))
    if options.boxes is None and not _is_list_of_images(answer):
        raise BadInput(
            f"{name} should answer with a dictionary of boxes, scores and labels an image; "
            f"if it gives arrays, say --boxes with one of {', '.join(BOX_LAYOUTS)}"
        )
    layout = options.boxes or "end2end"
    shapes = {} if _is_list_of_images(answer) else {name: part.shape for name, part in _arrays(answer).items()}
    classes, class_notes = classes_of_boxes(options, class_count(layout, shapes))
    rules = rules_of_boxes(options, layout)
    choices = {"precision": options.precision, "version": options.version, "boxes": layout, "rules": str(rules)}
    return LoadedDetector(
        ref=model_ref(options.name or name, digest, preparation, **choices),
        preparation=preparation,
        propose=TorchBoxes(network, decoder_of(layout), preparation.layout),
        rules=rules,
        classes=classes,
        seen=options.seen_or(),
        notes=(*preparation_notes, *class_notes),
        batch_size=batch_size,
        good_batch=8,
    )


@dataclass(frozen=True)
class TorchBoxes:
    """Proposes what a module's answer says in its layout."""

    network: TorchNetwork
    decode: Decode
    layout: Layout

    def __call__(self, inputs: Inputs) -> Sequence[Candidates]:
        answer, asked = self.network.given(inputs), asked_of(inputs, self.layout)
        if _is_list_of_images(answer):
            return [self.decode(_arrays(image), asked._replace(images=1))[0] for image in answer]
        return self.decode(_arrays(answer), asked)


def _is_list_of_images(answer: Any) -> bool:
    return isinstance(answer, (list, tuple)) and all(isinstance(image, Mapping) and "boxes" in image for image in answer)


def _arrays(answer: Any) -> RawOutputs:
    """The tensors of an answer by name, or by place where they have none."""
    if isinstance(answer, Tensor):
        answer = (answer,)
    named = answer.items() if isinstance(answer, Mapping) else enumerate(answer)
    return {str(name): _array(part) for name, part in named if isinstance(part, Tensor)}


def _array(tensor: Tensor) -> NDArray[Any]:
    kept = tensor.detach().cpu()
    array: NDArray[Any] = (kept.float() if kept.is_floating_point() else kept).numpy()
    return array
