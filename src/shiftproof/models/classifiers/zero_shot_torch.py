"""Zero-shot classifiers of OpenCLIP, by the names that open_clip gives them; text embeddings are made once, on loading."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from shiftproof.datasets.classes import classes_from, usual_classes
from shiftproof.errors import BadInput, StoreError, UnknownName
from shiftproof.files import cache_folder, read_text
from shiftproof.models.classifiers.libraries import same_random_weights, weights_from_afar, whole_library
from shiftproof.models.classifiers.torch import FILE_ENDINGS, digest_of_module, fill, torch_classifier
from shiftproof.models.classifiers.torch_network import INPUT, TorchNetwork, traced
from shiftproof.models.classifiers.zero_shot import TextMatrix, load_text_matrix
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.options import ModelOptions
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.types import Classes, Classifier, Seen

CLASSES_AT_ONCE = 10
"""Classes whose prompts are embedded together."""

ONE_TEMPLATE = ("a photo of a {}.",)


class ZeroShot(nn.Module):
    """An image encoder, its embeddings normalised, and the text embeddings as a linear layer."""

    def __init__(self, visual: nn.Module, matrix: TextMatrix) -> None:
        super().__init__()
        self.visual = visual
        self.matrix = matrix
        head = matrix.head
        self.head = nn.Linear(head.weights.shape[1], head.weights.shape[0])
        with torch.no_grad():
            self.head.weight.copy_(torch.from_numpy(head.weights))
            self.head.bias.copy_(torch.from_numpy(head.bias))

    def embed(self, images: Tensor) -> Tensor:
        """The image embeddings; where an encoder gives tokens too, they come second."""
        found = self.visual(images)
        embeddings: Tensor = found[0] if isinstance(found, tuple) else found
        return embeddings

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(functional.normalize(self.embed(images), dim=-1))
        return scores


def load_open_clip(name: str, said: Mapping[str, str], options: ModelOptions) -> LoadedClassifier:
    """A network of OpenCLIP; `pretrained` is a file of weights, a tag of open_clip, or ``random``."""
    with whole_library("open_clip"):
        import open_clip

    if name not in open_clip.list_models():
        raise UnknownName("architecture of open_clip", name, open_clip.list_models())
    pretrained = said.get("pretrained") or options.weights
    if pretrained is None:
        raise BadInput(
            f"clip:{name} needs weights: clip:{name}?pretrained=FILE.safetensors, or a tag of open_clip: "
            f"{', '.join(open_clip.list_pretrained_tags_by_model(name)) or 'there is none'}"
        )
    settings, file = _weights(name, pretrained)
    with same_random_weights(), _without_warnings(), weights_from_afar(f"clip:{name}", advice="choose another architecture"):
        # a text tower of another library would be fetched
        network = open_clip.create_model(
            name, pretrained=None, pretrained_text=False, force_quick_gelu=bool(settings.get("quick_gelu"))
        )
    network.eval()
    notes = () if file is None else fill(network, file)
    own = clip_preprocessing({**open_clip.get_model_preprocess_cfg(network), **settings})
    classes, prompts = _prompts(options)
    templates, told = _templates(said.get("templates"), imagenet=options.classes is None)
    with weights_from_afar(f"the tokenizer of clip:{name}", advice="choose an architecture whose tokenizer is installed"):
        tokenizer = open_clip.get_tokenizer(name)
    bias = getattr(network, "logit_bias", None)
    matrix = TextMatrix(
        _kept(network, tokenizer, prompts, templates),
        float(network.logit_scale.exp()),
        0.0 if bias is None else float(bias),
        classes,
        templates,
        str(own),
        "logits" if bias is None else "scores",  # trained with a sigmoid for each class, these are no logits of a softmax
    )
    seen = Seen(f"what open_clip's tag {pretrained} names") if settings else None
    return torch_classifier(
        ZeroShot(network.visual, matrix),
        dataclasses.replace(options, gives=options.gives or matrix.gives),
        name=name,
        own=own,
        classes=classes,
        seen=seen,
        notes=(*notes, f"zero-shot: {len(classes):,} classes by {told}"),
    )


def _kept(network: Any, tokenizer: Any, prompts: Sequence[str], templates: Sequence[str]) -> NDArray[np.float32]:
    """The same from the cache, where these weights have embedded these prompts before: ImageNet has 80,000."""
    key = hashlib.sha256(json.dumps([digest_of_module(network), list(prompts), list(templates)]).encode()).hexdigest()
    path = cache_folder() / "zero-shot" / f"{key}.safetensors"
    if path.is_file():
        with suppress(BadInput):  # a damaged one is written anew
            return load_text_matrix(path).embeddings
    found = embedded(network, tokenizer, prompts, templates)
    with suppress(StoreError):  # without room for it, it is made again the next time
        TextMatrix(found, 1.0).save(path)
    return found


def embedded(network: Any, tokenizer: Any, prompts: Sequence[str], templates: Sequence[str]) -> NDArray[np.float32]:
    """The text embedding of each class, (classes, features): the normalised mean over templates of normalised embeddings."""
    rows = []
    with torch.no_grad():
        for start in range(0, len(prompts), CLASSES_AT_ONCE):
            some = prompts[start : start + CLASSES_AT_ONCE]
            texts = tokenizer([template.replace("{}", name) for name in some for template in templates])
            found = network.encode_text(texts, normalize=True)
            rows.append(functional.normalize(found.reshape(len(some), len(templates), -1).mean(dim=1), dim=-1))
    return np.ascontiguousarray(torch.cat(rows).numpy(), np.float32)


def _weights(name: str, pretrained: str) -> tuple[Mapping[str, Any], Path | None]:
    """What open_clip says of a tag, and the file of weights; none of either for random ones."""
    from open_clip import pretrained as known

    if pretrained == "random":
        return {}, None
    if Path(pretrained).suffix.lower() in FILE_ENDINGS:
        return {}, Path(pretrained)
    settings = known.get_pretrained_cfg(name, pretrained)
    if not settings:
        raise UnknownName(f"weights of {name}", pretrained, known.list_pretrained_tags_by_model(name))
    with weights_from_afar(f"clip:{name} {pretrained}", advice="pretrained=FILE takes weights from a file"):
        file = Path(known.download_pretrained(settings))
    kept = ("mean", "std", "interpolation", "resize_mode", "quick_gelu")
    return {key: settings[key] for key in kept if key in settings}, file


def clip_preprocessing(settings: Mapping[str, Any]) -> ImagePreprocessing:
    """What open_clip says of an image encoder's input."""
    size, mode = settings["size"], settings["resize_mode"]
    height, width = (size, size) if isinstance(size, int) else size
    if mode not in {"shortest", "squash"} or (mode == "shortest" and height != width):
        told = f"open_clip's resize mode {mode} to {height}x{width}"
        raise BadInput(f"{told} is not known here; give the preprocessing yourself")
    return ImagePreprocessing(
        size=(height, width),
        rule="squash" if mode == "squash" else "shorter",
        shorter=height,
        interpolation=settings["interpolation"],
        mean=tuple(settings["mean"]),
        std=tuple(settings["std"]),
    )


def _prompts(options: ModelOptions) -> tuple[Classes, list[str]]:
    """The classes, and what each is called in a prompt; ILSVRC-2012 by the names that CLIP was published with."""
    if options.classes is not None:
        classes = classes_from(options.classes)
        return classes, [name.replace("_", " ") for name in classes.names]
    import open_clip

    usual = usual_classes(1000)
    if usual is None:
        raise BadInput("the classes of ILSVRC-2012 are not there; --classes names yours")
    return usual, list(open_clip.IMAGENET_CLASSNAMES)


def _templates(asked: str | None, *, imagenet: bool) -> tuple[tuple[str, ...], str]:
    """Texts in which {} stands for a class, and how to call them."""
    import open_clip

    published = {"openai": open_clip.OPENAI_IMAGENET_TEMPLATES, "simple": open_clip.SIMPLE_IMAGENET_TEMPLATES}
    asked = asked or ("openai" if imagenet else "one")
    if asked in published:
        return tuple(template("{}") for template in published[asked]), f"the {len(published[asked])} templates {asked}"
    if asked == "one":
        return ONE_TEMPLATE, f"the template {ONE_TEMPLATE[0]!r}"
    lines = tuple(line.strip() for line in read_text(Path(asked)).splitlines() if line.strip())
    if not lines or any("{}" not in line for line in lines):
        raise BadInput(f"{asked} should have a template a line, with {{}} for the class, as: {ONE_TEMPLATE[0]}")
    return lines, f"{len(lines):,} templates of {asked}"


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Weights are filled in afterwards, so that there are none yet is no news."""
    logger = logging.getLogger()
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def encoder_and_texts(model: Classifier) -> tuple[bytes, TextMatrix]:
    """The image encoder of a zero-shot model as an ONNX graph, and its text embeddings."""
    network = model.forward if isinstance(model, LoadedClassifier) else None
    if not isinstance(network, TorchNetwork) or not isinstance(network.module, ZeroShot):
        raise BadInput("only a zero-shot model of OpenCLIP (clip:ARCHITECTURE?pretrained=...) is written so")
    module = network.module
    size = model.preprocessing.size or (224, 224)

    class Encoder(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return module.embed(images)

    axes = {name: {0: "batch"} for name in (INPUT, "embeddings")}
    return traced(Encoder().eval(), torch.zeros(2, 3, *size), ["embeddings"], axes), module.matrix
