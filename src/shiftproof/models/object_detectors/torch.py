"""Object detectors in torch: modules with outputs as torchvision's have them, or with the arrays of a known layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from shiftproof.catalog import BOX_LAYOUTS
from shiftproof.errors import BadInput
from shiftproof.models.classifiers.torch import example_inputs, fixed_sizes, load_module, network_of
from shiftproof.models.classifiers.torch_network import TorchNetwork
from shiftproof.models.loaded import check_size, model_ref
from shiftproof.models.object_detectors.box_layouts import (
    Decode,
    RawOutputs,
    class_count,
    classes_of_boxes,
    layout_of,
    rules_of_boxes,
)
from shiftproof.models.object_detectors.loaded import Candidates, LoadedDetector, batch_shape
from shiftproof.models.options import ModelOptions, parse_preprocessing
from shiftproof.models.preprocessing import Layout
from shiftproof.types import Inputs

WHOLE = "unit,resize=none"
"""How torchvision's detectors want their images, from 0 to 1 and of any size: they resize and normalise inside."""


def load_torch_detector(rest: str, options: ModelOptions) -> LoadedDetector:
    """The object detector a factory makes (``module:factory``, ``file.py:factory``) or a file holds."""
    module, name, digest, notes = load_module(rest, options)
    batch_size, size = fixed_sizes(module)
    own = parse_preprocessing(WHOLE if options.boxes is None else layout_of(options.boxes).preprocess)
    preprocessing, preprocessing_notes = options.preprocessing(own, size=size)
    check_size(preprocessing, size, name)
    network = network_of(module, options)
    output = network.given(example_inputs(preprocessing, batch_size or 1))
    if options.boxes is None and not _is_list_of_images(output):
        raise BadInput(
            f"{name} should output a dictionary of boxes, scores and labels per image; "
            f"if it gives arrays, say --boxes with one of {', '.join(BOX_LAYOUTS)}"
        )
    layout = options.boxes or "end2end"
    shapes = {} if _is_list_of_images(output) else {name: part.shape for name, part in _arrays(output).items()}
    classes, class_notes = classes_of_boxes(options, class_count(layout, shapes))
    rules = rules_of_boxes(options, layout)
    choices = {"precision": options.precision, "version": options.version, "boxes": layout, "rules": str(rules)}
    return LoadedDetector(
        ref=model_ref(options.name or name, digest, preprocessing, **choices),
        preprocessing=preprocessing,
        propose=TorchBoxes(network, layout_of(layout).decode, preprocessing.layout),
        rules=rules,
        classes=classes,
        seen=options.seen_or(),
        notes=(*notes, *preprocessing_notes, *class_notes),
        fixed_batch_size=batch_size,
        default_batch_size=8,
        concurrent_batches=network.concurrent_batches,
    )


@dataclass(frozen=True)
class TorchBoxes:
    """Proposes the boxes in a module's output of a known layout."""

    network: TorchNetwork
    decode: Decode
    layout: Layout

    def __call__(self, inputs: Inputs) -> Sequence[Candidates]:
        output, batch = self.network.given(inputs), batch_shape(inputs, self.layout)
        if _is_list_of_images(output):
            return [self.decode(_arrays(image), batch._replace(images=1))[0] for image in output]
        return self.decode(_arrays(output), batch)


def _is_list_of_images(output: Any) -> bool:
    return isinstance(output, (list, tuple)) and all(isinstance(image, Mapping) and "boxes" in image for image in output)


def _arrays(output: Any) -> RawOutputs:
    """The tensors of an output by name, or by place where they have none."""
    if isinstance(output, Tensor):
        output = (output,)
    named = output.items() if isinstance(output, Mapping) else enumerate(output)
    return {str(name): _array(part) for name, part in named if isinstance(part, Tensor)}


def _array(tensor: Tensor) -> NDArray[Any]:
    kept = tensor.detach().cpu()
    array: NDArray[Any] = (kept.float() if kept.is_floating_point() else kept).numpy()
    return array
