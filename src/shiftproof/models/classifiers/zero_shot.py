"""Zero-shot classifiers: an image encoder, and a text embedding for each class as the last linear layer.

The text matrix is a head like any other, so OOD detectors read it and new heads can be trained on the features, which are
the normalised image embeddings. An encoder in an ONNX file beside a file of text embeddings runs without torch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from shiftproof.errors import BadInput, UnknownName
from shiftproof.files import readable_file, write_whole
from shiftproof.models.kind import model_kind
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.options import ModelOptions
from shiftproof.registry import missing_extra
from shiftproof.types import Classes, Classifier, Gives, Head

OPTIONS = ("pretrained", "templates", "text")
"""What may follow the name of an architecture or encoder, behind a question mark."""

FORMAT = "shiftproof zero-shot 1"
ENCODER, TEXT = "image-encoder.onnx", "text.safetensors"
"""The files that `save_zero_shot` writes."""


@dataclass(frozen=True)
class TextMatrix:
    """The text embeddings of classes, normalised, and how products with image embeddings become logits."""

    embeddings: NDArray[np.float32]  # (classes, features)
    scale: float
    bias: float = 0.0
    classes: Classes | None = None
    templates: tuple[str, ...] = ()
    preprocess: str | None = None  # of the image encoder, as typed
    gives: Gives = "logits"

    @property
    def head(self) -> Head:
        """The same as a linear layer on normalised image embeddings."""
        weights = np.ascontiguousarray(self.scale * self.embeddings, np.float32)
        return Head(weights, np.full(len(weights), self.bias, np.float32))

    def save(self, path: Path) -> None:
        """Writes a safetensors file that `load_text_matrix` reads."""
        tensors = {
            "text": np.ascontiguousarray(self.embeddings, np.float32),
            "logit_scale": np.array([self.scale], np.float32),
            "logit_bias": np.array([self.bias], np.float32),
        }
        told = {
            "format": FORMAT,
            "names": json.dumps(None if self.classes is None else self.classes.names),
            "wnids": json.dumps(None if self.classes is None else self.classes.wnids),
            "templates": json.dumps(self.templates),
            "gives": self.gives,
            **({} if self.preprocess is None else {"preprocess": self.preprocess}),
        }
        write_whole(path, save(tensors, metadata=told))


def load_text_matrix(path: Path) -> TextMatrix:
    """The text embeddings of a file; BadInput where it holds none."""
    try:
        with safe_open(readable_file(path), framework="numpy") as file:
            told = dict(file.metadata() or {})
            tensors = {name: np.asarray(file.get_tensor(name), np.float32) for name in file.keys()}  # noqa: SIM118 no mapping
        text, scale = tensors["text"], float(tensors["logit_scale"].reshape(()))
        bias = float(tensors.get("logit_bias", np.zeros(1)).reshape(()))
        names, wnids = json.loads(told.get("names", "null")), json.loads(told.get("wnids", "null"))
        classes = None if names is None else Classes(_texts(names), None if wnids is None else _texts(wnids))
        templates = _texts(json.loads(told.get("templates", "[]")))
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise BadInput(
            f"{path} should be a safetensors file with text (classes, features) and logit_scale: {str(problem)[:200]}"
        ) from problem
    if text.ndim != 2 or not text.size or (classes is not None and len(classes) != len(text)):
        raise BadInput(f"{path} should hold one text embedding a class, got shape {text.shape}")
    if not (np.isfinite(text).all() and np.isfinite([scale, bias]).all()):
        raise BadInput(f"{path} holds embeddings that are no numbers")
    if scale <= 0:
        raise BadInput(f"logit_scale in {path} should be above 0, as what cosines are multiplied with; got {scale:g}")
    if abs(np.linalg.norm(text, axis=1) - 1).max() > 1e-3:
        raise BadInput(f"the text embeddings in {path} should be normalised, each of length 1")
    gives: Gives = "scores" if told.get("gives") == "scores" else "logits"
    return TextMatrix(text, scale, bias, classes, templates, told.get("preprocess"), gives)


def _texts(listed: object) -> tuple[str, ...]:
    if not (isinstance(listed, list) and all(isinstance(one, str) for one in listed)):
        raise TypeError("names, wnids and templates should be lists of texts")
    return tuple(listed)


def spelled(rest: str) -> tuple[str, dict[str, str]]:
    """An architecture or file, and the options behind it.

    >>> spelled("ViT-B-32?pretrained=weights.safetensors&templates=simple")
    ('ViT-B-32', {'pretrained': 'weights.safetensors', 'templates': 'simple'})
    """
    name, _, query = rest.partition("?")
    said = dict(part.partition("=")[::2] for part in query.split("&") if part)
    for option, value in said.items():
        if option not in OPTIONS:
            raise UnknownName("option of a zero-shot model", option, OPTIONS)
        if not value:
            raise BadInput(f"{option} of clip:{name} is empty; say {option}=...")
    return name, said


@model_kind()
def load_clip(rest: str, options: ModelOptions) -> LoadedClassifier:
    """A zero-shot classifier: an architecture of OpenCLIP, or an image encoder as ONNX beside its text embeddings."""
    name, said = spelled(rest)
    if Path(name).suffix.lower() == ".onnx":
        if extra := said.keys() - {"text"}:
            asked = ", ".join(sorted(extra))
            raise BadInput(f"{asked} is for architectures; the text embeddings of {name} are made already")
        from shiftproof.models.classifiers.zero_shot_onnx import load_encoder

        return load_encoder(Path(name), Path(said["text"]) if "text" in said else Path(name).with_name(TEXT), options)
    if "text" in said:
        raise BadInput(f"text embeddings go with an image encoder in an ONNX file, and {name} is none")
    from shiftproof.models.classifiers.zero_shot_torch import load_open_clip

    return load_open_clip(name, said, options)


def save_zero_shot(model: str | Classifier, folder: str | Path, **options: Any) -> Path:
    """Writes a zero-shot model of OpenCLIP as an ONNX image encoder and a file of text embeddings; gives the encoder.

    ``clip:FOLDER/image-encoder.onnx`` opens both without torch. `options` are those of `load_model`.
    """
    from shiftproof.models import load_model

    loaded = load_model(model, **options) if isinstance(model, str) else model
    try:
        from shiftproof.models.classifiers.zero_shot_torch import encoder_and_texts
    except ModuleNotFoundError as missing:
        raise missing_extra("sp.save_zero_shot", missing) from missing
    encoder, texts = encoder_and_texts(loaded)
    folder = Path(folder)
    write_whole(folder / ENCODER, encoder)
    texts.save(folder / TEXT)
    return folder / ENCODER
