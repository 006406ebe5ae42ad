"""Networks in torch: a factory in a Python module, a TorchScript file, an exported program."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import torch
from torch import nn

from shiftproof.errors import BadInput
from shiftproof.models.loaded import LoadedClassifier, check_size, model_ref
from shiftproof.models.options import ModelOptions
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.sanity import check_probabilities, scores_hint
from shiftproof.models.torch_files import digest_of_module
from shiftproof.models.torch_heads import HeadLayer, head_layer_of
from shiftproof.models.torch_looks import grad_cam, last_places
from shiftproof.models.torch_modules import fixed_sizes, load_module, network_of
from shiftproof.models.torch_redrawn import redraw_torch
from shiftproof.types import Classes, Head, Inputs, Outputs, Seen


def load_torch(rest: str, options: ModelOptions) -> LoadedClassifier:
    """The classifier a factory makes (``module:factory``, ``file.py:factory``) or a file holds."""
    options.refuse("output", what="a torch model")
    module, name, digest = load_module(rest, options)
    return torch_classifier(module, options, name=name, digest=digest)


def torch_classifier(
    module: nn.Module,
    options: ModelOptions,
    *,
    name: str,
    digest: str | None = None,
    own: ImagePreparation | None = None,
    classes: Classes | None = None,
    seen: Seen | None = None,
) -> LoadedClassifier:
    """A module as a classifier; one made-up image is put through it to see where its last linear layer is."""
    digest = digest or digest_of_module(module)
    batch_size, size = fixed_sizes(module)
    preparation, preparation_notes = options.preparation(own, size=size)
    check_size(preparation, size, name)
    network = network_of(module, options)
    example = example_inputs(preparation, batch_size or 1)
    layer = head_layer_of(network.module, lambda: network(example, False))
    watched, layer, head_notes = _watched(network.module, layer, options)
    network = dataclasses.replace(network, features=watched, extra=options.extra_output)
    with last_places(network.module, example.shape) as places:
        outputs = network(example, watched is not None)
    head = None if layer is None else layer.head_in(network.module)
    if head is not None and (why := _unlike(outputs, head, options.precision)):
        layer, head, head_notes = None, None, (f"no head: {why}",)
    found, class_notes = options.classes_of(outputs.scores.shape[1], classes)
    gives = options.gives or "logits"
    if gives == "probabilities":
        check_probabilities(outputs.scores, options.name or name)
    hint = scores_hint(outputs.scores, gives)
    choices = {
        "precision": options.precision,
        "features": options.features,
        "extra": options.extra_output,
        "version": options.version,
    }
    return LoadedClassifier(
        ref=model_ref(options.name or name, digest, preparation, gives=gives, **choices),
        preparation=preparation,
        gives=gives,
        answer=network,
        classes=found,
        seen=options.seen_or(seen),
        notes=(*preparation_notes, *class_notes, *head_notes, *([hint] if hint else [])),
        batch_size=batch_size,
        has_features=outputs.features is not None,
        read_head=lambda: head,
        redraw=partial(redraw_torch, network, layer),
        looks={"grad-cam": partial(grad_cam, network)} if places and gives == "logits" else {},
        for_size=None if size else lambda _: network,
    )


def example_inputs(preparation: ImagePreparation, images: int) -> Inputs:
    """Noise in the shape of prepared images, the same each time."""
    size = preparation.size or (224, 224)
    noise = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    return np.repeat(preparation.from_picture(noise)[None], images, axis=0)


def _watched(
    module: nn.Module, found: HeadLayer | None, options: ModelOptions
) -> tuple[str | None, HeadLayer | None, tuple[str, ...]]:
    """The layer to take features from, the one that its head is in, and what there is to say about them."""
    if options.features is not None:
        if options.features not in dict(module.named_modules()):
            raise BadInput(f"the module has no layer {options.features!r} to take features from")
        if found is None or options.features != found.layer:
            note = f"no head: features are taken from {options.features}, as asked"
            return options.features, None, (note,)
    if found is None:
        hidden = isinstance(module, torch.jit.ScriptModule)
        why = "TorchScript hides its layers" if hidden else "no linear layer ran"
        return None, None, (f"no head and no features: {why}",)
    return found.layer, found, ()


def _unlike(outputs: Outputs, head: Head, precision: str) -> str | None:
    """Why the layer that was found cannot be the head, or None where its product is the scores or their softmax."""
    if outputs.features is None or outputs.features.shape[1] != head.weights.shape[1]:
        return "the last linear layer does not see one row an image"
    logits = outputs.features @ head.weights.T + head.bias
    if logits.shape != outputs.scores.shape:
        return "the last linear layer does not give the class scores"
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    slack = 1e-3 if precision == "float32" else 0.03
    for candidate in (logits, powers / powers.sum(axis=1, keepdims=True)):
        if np.abs(candidate - outputs.scores).max() <= slack * np.abs(outputs.scores).max():
            return None
    return "the scores are more than the last linear layer's product"
