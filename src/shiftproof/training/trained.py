"""The result of a training: a folder that holds the model and says all that it was made from.

::

    better/training.json        what it was made from: model, data, split, recipes, seed; and how it did
           model.onnx           outputs logits and features; not there where the network cannot be had as ONNX
           weights.safetensors  the tensors that were trained
           held-out.csv         images that a recipe left out to be measured

Of several seeds each has such a folder, ``seed-0`` and so on, and ``training.json`` above them says which one is opened.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as tensors

from shiftproof import __version__
from shiftproof.catalog import MODELS
from shiftproof.errors import BadInput, listed
from shiftproof.files import read_json, readable_file, write_whole
from shiftproof.models import runs_code, with_rotations
from shiftproof.models.by_settings import load_classifier
from shiftproof.models.kind import model_kind
from shiftproof.models.loaded import LoadedClassifier, model_ref, preprocessed
from shiftproof.models.options import ModelOptions, parse_preprocessing
from shiftproof.options import ModelSettings, hints_of
from shiftproof.training.job import Job
from shiftproof.types import Classes, Classifier, Gives, Head, Inputs, Outputs, Seen

FORMAT = 1
RECORD, GRAPH, WEIGHTS = "training.json", "model.onnx", "weights.safetensors"

PARTS = re.compile(r"seed-[0-9]+|joined")
"""Folders that trainings with several seeds write into one."""


@dataclass(frozen=True)
class Source:
    """The model that a training began with."""

    spec: str
    fingerprint: str
    options: Mapping[str, Any] = field(default_factory=dict)  # those of `ModelSettings` that were given


@dataclass(frozen=True)
class Record:
    """What ``training.json`` says of one training."""

    key: str  # a digest of all that the weights depend on
    source: Source
    dataset: Mapping[str, Any]  # name, location, fingerprint, digest of the images' bytes
    split: Mapping[str, Any]  # how many images on each side, and which are in the validation split
    recipes: tuple[str, ...]
    level: str
    seed: int
    options: Mapping[str, Any]
    classes: Classes
    preprocessing: str
    seen: Seen
    accuracy: Mapping[str, float]  # on the validation split: of clean pictures and, where there are some, augmented ones
    curves: tuple[Mapping[str, float], ...] = ()  # by epoch, or by penalty
    outputs: tuple[str, ...] = ("logits", "features")
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    gives: Gives = "logits"  # scores where every class was a question of its own: no softmax makes probabilities of them

    @property
    def finds_boxes(self) -> bool:
        """Whether the model is an object detector."""
        return "boxes" in self.outputs

    def to_json(self) -> bytes:
        return json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, indent=1, ensure_ascii=False).encode()

    def __post_init__(self) -> None:
        texts = (*self.recipes, *self.outputs, *self.notes, *self.classes.names, *(self.classes.wnids or ()))
        texts = (*texts, self.seen.training_data, *self.seen.augmentations, *self.seen.filtered, *self.seen.trained_on)
        texts = (*texts, self.key, self.level, self.preprocessing, self.dataset["name"], self.source.spec)
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.seed, int):
            raise TypeError("a name in it is not text, or its seed no number")
        if not all(isinstance(part, Mapping) for part in (self.split, self.options, self.accuracy, self.source.options)):
            raise TypeError("its split, options or accuracies are not by name")
        if self.gives not in ("logits", "scores"):
            raise TypeError(f"it gives neither logits nor scores, but {self.gives!r}")

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Record:
        """KeyError or TypeError where something is missing or is not what it should be."""
        told = {"gives": "logits", **told}  # which older ones do not say
        known = {one.name: told[one.name] for one in dataclasses.fields(cls)}
        classes, seen = told["classes"], told["seen"]
        return cls(
            **known
            | {
                "source": Source(**told["source"]),
                "classes": Classes(tuple(classes["names"]), classes["wnids"] and tuple(classes["wnids"])),
                "seen": Seen(
                    seen["training_data"], *(tuple(seen[name]) for name in ("augmentations", "filtered", "trained_on"))
                ),
                "recipes": tuple(told["recipes"]),
                "curves": tuple(told["curves"]),
                "outputs": tuple(told["outputs"]),
                "notes": tuple(told["notes"]),
            }
        )


@dataclass(frozen=True)
class Trained:
    """A finished training and the folder that opens as its model."""

    folder: Path
    record: Record
    parts: tuple[Trained, ...] = ()  # the trainings of several seeds, of which this is one, or what was made of them

    @property
    def accuracy(self) -> Mapping[str, float]:
        """On the validation split."""
        return self.record.accuracy

    def to_json(self) -> str:
        """The folder and what its record says; of several seeds those of each."""
        told = {"folder": str(self.folder), **json.loads(self.record.to_json())}
        parts = [json.loads(part.to_json()) for part in self.parts]
        return json.dumps(told | ({"parts": parts} if parts else {}), indent=1, ensure_ascii=False)


def read_trained(folder: Path) -> Trained | None:
    """The finished training in a folder; None where there is none. BadInput where something else is."""
    told = _told(folder)
    if told is None:
        return None
    if "chosen" not in told:
        return Trained(folder, _record(told, folder))
    parts = tuple(found for name in told["parts"] if (found := read_trained(folder / _part(name, folder))) is not None)
    return dataclasses.replace(_chosen(folder, told), folder=folder, parts=parts)


def holding(folder: Path) -> Path:
    """The folder that a finished training is opened from: its own, or that of the seed which was chosen."""
    told = _told(folder)
    return folder if told is None or "chosen" not in told else _chosen(folder, told).folder


def _told(folder: Path) -> Mapping[str, Any] | None:
    path = folder / RECORD
    if not path.exists():
        return None
    told = read_json(path)
    if not isinstance(told, dict) or not isinstance(told.get("format"), int):
        raise BadInput(f"{path} was not written by shiftproof train: it has no format number")
    if told["format"] > FORMAT:
        raise BadInput(f"{path} was written by a newer shiftproof (format {told['format']}, known here is {FORMAT})")
    if "chosen" in told and not (isinstance(told.get("parts"), list) and isinstance(told.get("why"), str)):
        raise BadInput(f"{path} is damaged: it does not say which trainings there are; train again")
    return told


def _record(told: Mapping[str, Any], folder: Path) -> Record:
    try:
        return Record.from_json(told)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise BadInput(f"{folder / RECORD} is damaged: {problem!r}; train again") from problem


def _part(name: object, folder: Path) -> str:
    if not isinstance(name, str) or not PARTS.fullmatch(name):
        raise BadInput(f"{folder / RECORD} is damaged: it names {name!r} as the folder of a training; train again")
    return name


def _chosen(folder: Path, told: Mapping[str, Any]) -> Trained:
    below = folder / _part(told["chosen"], folder)
    found = _told(below)
    if found is None or "chosen" in found:
        raise BadInput(f"{folder / RECORD} says that {below.name} holds the model, and there is none; train again")
    return Trained(below, _record(found, below))


def record_of(job: Job, model: Source, before: Seen, **told: Any) -> Record:
    """The record of a training, with what follows from its job; `before` is what the model had seen."""
    learned = job.dataset.name if before == Seen() else f"{before.training_data}, then {job.dataset.name}"
    augmentations = [name for one in job.recipes for name in one.augmentations]
    return Record(
        key=job.key,
        source=model,
        dataset={**dataclasses.asdict(job.dataset), "digest": job.digest},
        split={
            "training": len(job.training.samples),
            "validation": [sample.id for sample in job.validation.samples],
            "held out": [] if job.held_out is None else [sample.id for sample in job.held_out.samples],
        },
        recipes=tuple(map(str, job.recipes)),
        level=job.level,
        seed=job.seed,
        classes=job.classes,
        seen=Seen(
            learned,
            tuple(dict.fromkeys([*before.augmentations, *augmentations])),
            before.filtered,
            tuple(dict.fromkeys([*before.trained_on, job.dataset.name])),
        ),
        versions=versions(),
        gives="scores" if job.multi_label else "logits",
        **told,
    )


def given(options: ModelSettings) -> dict[str, Any]:
    """The options that somebody chose, by name, in the order of their names."""
    return {name: getattr(options, name) for name in sorted(options.given)}


def versions() -> dict[str, str]:
    """Of what the weights depend on, as far as it is installed."""
    found = {"shiftproof": __version__, "python": platform.python_version()}
    for library in ("numpy", "scipy", "torch", "torchvision", "onnx"):
        with suppress(PackageNotFoundError):
            found[library] = version(library)
    return found


def write_trained(folder: Path, record: Record, weights: Mapping[str, NDArray[np.floating]], graph: bytes | None) -> Trained:
    """The result folder; ``training.json`` comes last, so a folder that has it is finished."""
    broken = [name for name, values in weights.items() if not np.isfinite(values).all()]
    if broken:
        raise BadInput(
            f"training ended with weights that are no finite numbers, in {listed(broken[:3])}; nothing was written. "
            "Remove the folder and train with a smaller learning rate or penalty"
        )
    write_whole(folder / WEIGHTS, tensors.save({name: np.ascontiguousarray(values) for name, values in weights.items()}))
    if graph is not None:
        write_whole(folder / GRAPH, graph)
    write_whole(folder / RECORD, record.to_json())
    return Trained(folder, record)


def write_parts(folder: Path, parts: Mapping[str, Trained], chosen: str, why: str) -> Trained:
    """The record of several trainings, which opens as one of them."""
    told = {"format": FORMAT, "parts": list(parts), "chosen": chosen, "why": why}
    write_whole(folder / RECORD, json.dumps(told, indent=1).encode())
    return Trained(folder, parts[chosen].record, tuple(parts.values()))


def read_weights(folder: Path) -> dict[str, NDArray[Any]]:
    """The trained tensors by name."""
    path = readable_file(folder / WEIGHTS)
    try:
        found: dict[str, NDArray[Any]] = tensors.load_file(path)
    except (SafetensorError, ValueError, KeyError) as problem:
        raise BadInput(f"{path} is not a whole safetensors file; train again") from problem
    return found


MOST_TRAININGS = 20
"""One after the other: a folder that says more of them than these is damaged."""


def trained_at(spec: str) -> Trained | None:
    """The training whose model a spec names, the chosen one of several; None where it names another kind of model."""
    folder = Path(spec.removeprefix("trained:"))
    told = _told(folder) if os.path.isdir(folder) else None  # False for names that no folder can have
    if told is None:
        return None
    return _chosen(folder, told) if "chosen" in told else Trained(folder, _record(told, folder))


def architecture_of(spec: str, options: ModelSettings) -> str:
    """The spec that names a network's architecture: of a trained folder that of its first model; "" if never trained."""
    first = spec
    for _ in range(MOST_TRAININGS):
        if (found := trained_at(first)) is None:
            untrained = first == spec and (first.startswith("scratch:") or options.weights == "random")
            return "" if untrained else first
        first = found.record.source.spec
    raise BadInput(f"{spec} says that it was trained from {first}, which says the same; train again")


class OpenedTraining(NamedTuple):
    """A finished training by its folder: what its model is called, and notes on how it was made."""

    found: Trained
    name: str
    notes: tuple[str, ...]


def open_training(path: str) -> OpenedTraining:
    """The finished training in a folder, of several seeds the chosen one; BadInput where there is none."""
    above = Path(path)
    told = _told(above)
    if told is None:
        raise BadInput(f"{path} holds no finished training: it has no {RECORD}")
    found = _chosen(above, told) if "chosen" in told else Trained(above, _record(told, above))
    record = found.record
    notes = (
        f"trained from {record.source.spec} on {record.dataset['name']}: {'+'.join(record.recipes)}, "
        f"{record.level} level, seed {record.seed}",
        *((f"of {len(told['parts'])} trainings this is {found.folder.name}: {told['why']}",) if "chosen" in told else ()),
        *record.notes,
    )
    return OpenedTraining(found, above.resolve().name, notes)


@model_kind(is_data=True)  # where it goes behind a model that is none, it asks
def load_trained(path: str, options: ModelOptions) -> Classifier:
    """A classifier that shiftproof train made, by its folder."""
    found, own_name, notes = open_training(path)
    if found.record.finds_boxes:
        raise BadInput(f"{path} holds an object detector; boxes:{path} is a classifier made of it")
    name = options.name or own_name
    model = _from_graph(found, options, name) if (found.folder / GRAPH).exists() else _on_source(found, options, name)
    return dataclasses.replace(model, notes=(*notes, *model.notes))


def _from_graph(found: Trained, options: ModelOptions, name: str) -> LoadedClassifier:
    options.refuse("features", "output", "gives", what=f"a trained model such as {found.folder}")
    extra = next((one for one in ("confidence", "rotation") if one in found.record.outputs), None)
    said = dataclasses.replace(
        options,
        name=name,
        preprocess=options.preprocess or found.record.preprocessing,
        classes=options.classes or found.record.classes,
        features="features",
        output="logits",
        gives=found.record.gives,
        seen=options.seen or found.record.seen,
        extra_output=options.extra_output or extra,
    )
    model: LoadedClassifier = MODELS.load("onnx")(str(found.folder / GRAPH), said)
    # a rotation head is of use on rotated images alone, so they are shown without being asked for
    return with_rotations(model) if said.extra_output == "rotation" and not options.rotated else model


def settings_of(found: Trained, **more: Any) -> ModelSettings:
    """The settings of the model that a training began with; BadInput where its record holds none."""
    told = {name: tuple(value) if isinstance(value, list) else value for name, value in found.record.source.options.items()}
    hints = {name: hint for name, hint in hints_of(ModelSettings).items() if name != "given"}
    strange = [name for name, value in told.items() if name not in hints or not _fits(value, hints[name])]
    if strange:
        raise BadInput(f"{found.folder / RECORD} is damaged: its model has no option {strange[0]!r} like that; train again")
    return ModelSettings(**{**told, **more})


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of the type of an option."""
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(one, get_args(hint)[0]) for one in value)
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_args(hint):
        return any(_fits(value, part) for part in get_args(hint))
    return isinstance(value, (int, float) if hint is float else hint)


def _head_in(found: Trained) -> Head:
    """The head that a training wrote."""
    path, weights = found.folder / WEIGHTS, read_weights(found.folder)
    try:
        head = Head(weights["weight"], weights["bias"])
    except KeyError as problem:
        raise BadInput(f"{path} holds no head: it has {listed(weights)}") from problem
    classes = len(found.record.classes)
    if head.weights.ndim != 2 or head.weights.shape[0] != classes or head.bias.shape != (classes,):
        shapes = f"weights {head.weights.shape} and a bias {head.bias.shape}"
        raise BadInput(f"{path} should hold a head over {classes} classes, got {shapes}; train again")
    return head


def _on_source(found: Trained, options: ModelOptions, name: str) -> LoadedClassifier:
    """The model that the training began with, its features going through the new head."""
    record, source = found.record, found.record.source
    options.refuse("features", "output", "gives", "weights", "extra_output", what=f"a trained model such as {found.folder}")
    architecture_of(str(found.folder), ModelSettings())  # an error where folders name one another
    if not options.trust and runs_code(source.spec):
        raise BadInput(
            f"{found.folder} holds a head alone, which goes behind {source.spec}; loading that may run any code: "
            "say --trust if you know who made the folder"
        )
    settings = settings_of(found, trust=options.trust)
    if options.device or options.threads:
        settings = dataclasses.replace(settings, device=options.device, threads=options.threads)
    base = load_classifier(source.spec, settings)
    if isinstance(base, LoadedClassifier) and str(base.preprocessing) != record.preprocessing:
        base = preprocessed(base, parse_preprocessing(record.preprocessing))
    if base.ref.fingerprint != source.fingerprint:
        raise BadInput(f"{source.spec} has changed since {found.folder} was trained on its features; train again")
    head = _head_in(found)

    def forward(inputs: Inputs, features: bool) -> Outputs:
        seen = base(inputs, features=True).features
        assert seen is not None  # noqa: S101 they were asked for
        if seen.shape[1] != head.weights.shape[1]:
            raise BadInput(
                f"{found.folder / WEIGHTS} holds a head on {head.weights.shape[1]} features, and {source.spec} gives "
                f"{seen.shape[1]}; train again"
            )
        return Outputs(seen @ head.weights.T + head.bias, seen if features else None)

    digest = hashlib.sha256((found.folder / WEIGHTS).read_bytes()).hexdigest()
    return LoadedClassifier(
        ref=model_ref(name, f"{source.fingerprint} {digest}", base.preprocessing, gives=record.gives),
        preprocessing=base.preprocessing,
        gives=record.gives,
        forward=forward,
        classes=record.classes,
        seen=options.seen_or(record.seen),
        default_batch_size=base.default_batch_size,
        concurrent_batches=base.concurrent_batches,
        read_head=lambda: head,
    )
