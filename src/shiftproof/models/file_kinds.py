"""Which kind of model a bare path is, and the way to one for files that are not opened here."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from shiftproof.errors import BadInput
from shiftproof.files import read_json

FILE_KINDS = {
    ".onnx": "onnx",
    ".tflite": "tflite",
    **dict.fromkeys((".pt", ".pth", ".pt2", ".ts", ".bin", ".ckpt", ".safetensors"), "torch"),
}
"""Which kind of model a file is by its ending."""

PICKLE = (
    "{path} is a pickle, which can run any code as soon as it is opened, and is never loaded here; save the network as "
    "ONNX, or wrap a function of your own in Python: sp.wrap_model(function, name=..., version=...)"
)
KERAS = (
    "{path} is a Keras file, which can hold code and is not opened here; where Keras 3 is installed, make it ONNX: "
    "python -c \"import keras; model = keras.saving.load_model('{path}', safe_mode=True); "
    "model(keras.ops.zeros((1, *model.input_shape[1:]))); model.export('{stem}.onnx', format='onnx')\""
)
SAVED_MODEL = (
    "{path} is a SavedModel of TensorFlow, which is not opened here; where tf2onnx is installed, make it ONNX: "
    "python -m tf2onnx.convert --saved-model {path} --output {stem}.onnx"
)
FROZEN = (
    "{path} is a frozen graph of TensorFlow, which is not opened here; where tf2onnx is installed, make it ONNX: "
    "python -m tf2onnx.convert --graphdef {path} --inputs INPUT:0 --outputs OUTPUT:0 --output {stem}.onnx"
)
COMPILED = "{path} is compiled for one runtime and not opened here; name the ONNX file or the network that it was made from"

ADVICE = {
    **dict.fromkeys((".joblib", ".pkl", ".pickle"), PICKLE),
    **dict.fromkeys((".keras", ".h5", ".hdf5"), KERAS),
    ".pb": FROZEN,
    **dict.fromkeys((".engine", ".plan", ".trt", ".mlmodel", ".mlpackage", ".xml"), COMPILED),
}
"""What to do with files of other endings."""


class Recognised(NamedTuple):
    """The kind of model that a path holds, and a note where that took more than its ending."""

    kind: str
    note: str = ""
    finds_boxes: bool = False  # known of a folder that shiftproof train wrote


def recognised(spec: str) -> Recognised | None:
    """The kind of model of a bare path; None where it looks like none, BadInput with the way to one where there is a way."""
    path = Path(spec)
    if os.path.isdir(spec):  # False for names that no folder can have
        return _folder(path)
    refuse_unopened(spec)
    kind = FILE_KINDS.get(path.suffix.lower())
    return None if kind is None else Recognised(kind)


def refuse_unopened(spec: str) -> None:
    """BadInput with the way to a model, for a file of a format that is not opened here."""
    path = Path(spec)
    if path.name == "saved_model.pb":
        raise _told(SAVED_MODEL, path.parent)
    if path.suffix.lower() in ADVICE:
        raise _told(ADVICE[path.suffix.lower()], path)


def _told(advice: str, path: Path) -> BadInput:
    # a name that a shell or Python would read otherwise is not made part of a command
    if re.fullmatch(r"[\w./-]+", str(path)):
        return BadInput(advice.format(path=path, stem=path.stem or "model"))
    return BadInput(f"{str(path)!r}: {advice.format(path='FILE', stem='model')}")


def _finds_boxes(folder: Path) -> bool:
    """Whether the model of a finished training is an object detector, of several trainings that of the chosen one."""
    told = read_json(folder / "training.json")
    if not isinstance(told, dict):
        return False
    chosen = told.get("chosen")
    if isinstance(chosen, str) and Path(chosen).name == chosen and (folder / chosen / "training.json").is_file():
        return _finds_boxes(folder / chosen)
    outputs = told.get("outputs")
    return isinstance(outputs, list) and "boxes" in outputs


def _folder(path: Path) -> Recognised:
    if (path / "saved_model.pb").is_file():
        raise _told(SAVED_MODEL, path)
    if (path / "training.json").is_file():
        return Recognised("trained", finds_boxes=_finds_boxes(path))
    settings = read_json(path / "config.json") if (path / "config.json").is_file() else None
    if isinstance(settings, dict) and "model_type" in settings:
        return Recognised("hf", f"a folder of transformers, opened as hf:{path}")
    if isinstance(settings, dict) and isinstance(settings.get("architecture"), str):
        weights = next((name for name in ("model.safetensors", "pytorch_model.bin") if (path / name).is_file()), "WEIGHTS")
        raise BadInput(f"{path} is a folder of timm: say timm:{settings['architecture']} --weights {path / weights}")
    raise BadInput(
        f"{path} is a folder in which no model is found: one of transformers has a config.json with a model_type; "
        "if it holds images, they come second, after the model"
    )
