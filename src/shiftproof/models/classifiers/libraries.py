"""Networks by the names that timm, torchvision and transformers give them, with the preprocessing each library declares."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from PIL import Image as Pillow

from shiftproof.datasets.classes import classes_from, json_entries
from shiftproof.errors import BadInput, UnknownName
from shiftproof.models.classifiers.torch import fill, torch_classifier
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.options import ModelOptions
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.types import Classes, Seen


def load_timm(name: str, options: ModelOptions) -> LoadedClassifier:
    """A network of timm, e.g. ``resnet50.a1_in1k``."""
    with whole_library("timm"):
        import timm
        from timm.data import resolve_data_config

    if not timm.is_model(name):
        raise UnknownName("timm model", name, timm.list_models())
    with weights_from_afar(f"timm:{name}"), same_random_weights():
        module = timm.create_model(name, pretrained=options.weights is None)
    notes = _filled(module, options)
    own = timm_preprocessing(resolve_data_config({}, model=module))
    tag = str(module.pretrained_cfg.get("tag") or "") if options.weights is None else ""
    seen = Seen(f"what timm's tag {tag} names") if tag else None
    return torch_classifier(module, options, name=name, own=own, classes=_timm_classes(module), seen=seen, notes=notes)


def load_torchvision(name: str, options: ModelOptions) -> LoadedClassifier:
    """A network of torchvision, e.g. ``resnet50`` or ``resnet50:IMAGENET1K_V1``."""
    with whole_library("torchvision"):
        from torchvision import models

    network, _, version = name.partition(":")
    if network not in models.list_models(module=models):
        raise UnknownName("torchvision classifier", network, models.list_models(module=models))
    known = models.get_model_weights(network)
    if version and version not in known.__members__:
        raise UnknownName(f"weights of {network}", version, known.__members__)
    weights = known[version] if version else known.DEFAULT
    with weights_from_afar(f"torchvision:{name}"), same_random_weights():
        module = models.get_model(network, weights=weights if options.weights is None else None)
    notes = _filled(module, options)
    seen = Seen(f"ImageNet-1K ({weights.name})") if options.weights is None else None
    own = torchvision_preprocessing(weights.transforms())
    return torch_classifier(module, options, name=network, own=own, seen=seen, notes=notes)


def load_transformers(name: str, options: ModelOptions) -> LoadedClassifier:
    """An image classifier of transformers, by its hub name or a local folder."""
    options.refuse("weights", what="a transformers model")
    with whole_library("transformers"):
        from transformers import AutoModelForImageClassification
        from transformers.image_processing_utils import BaseImageProcessor

    with weights_from_afar(f"hf:{name}", advice="hf:FOLDER takes a saved one from this machine"):
        module = AutoModelForImageClassification.from_pretrained(name, trust_remote_code=False, use_safetensors=True)
        settings, _ = BaseImageProcessor.get_image_processor_dict(name)
    own, classes = transformers_preprocessing(settings), transformers_classes(module.config.id2label)
    return torch_classifier(module, options, name=Path(name).name, own=own, classes=classes)


def timm_preprocessing(config: Mapping[str, Any]) -> ImagePreprocessing:
    """What `resolve_data_config` says."""
    _, height, width = config["input_size"]
    mode = config.get("crop_mode", "center")
    share = config.get("crop_pct") or 1.0
    if mode not in {"center", "squash"} or (mode == "squash" and share != 1):
        raise BadInput(f"timm's crop mode {mode} with crop_pct {share} is not known here; give the preprocessing yourself")
    return ImagePreprocessing(
        size=(height, width),
        rule="squash" if mode == "squash" else "shorter",
        shorter=math.floor(min(height, width) / share),
        interpolation=config["interpolation"],
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
    )


def torchvision_preprocessing(transforms: Any) -> ImagePreprocessing:
    """What the transforms of a set of weights say."""
    return ImagePreprocessing(
        size=(transforms.crop_size[0], transforms.crop_size[-1]),
        shorter=transforms.resize_size[0],
        interpolation=transforms.interpolation.value,
        mean=tuple(transforms.mean),
        std=tuple(transforms.std),
    )


def transformers_preprocessing(settings: Mapping[str, Any]) -> ImagePreprocessing:
    """What the settings of an image processor (``preprocessor_config.json``) say."""
    normalises = settings.get("do_normalize", True)
    filters: dict[int, Any] = {member.value: member.name.lower() for member in Pillow.Resampling}
    size, shorter = _transformers_size(settings)
    return ImagePreprocessing(
        size=size,
        rule="squash" if shorter is None else "shorter",
        shorter=shorter or 256,
        interpolation=filters[settings.get("resample", Pillow.Resampling.BILINEAR.value)],
        value_range="0..1" if settings.get("do_rescale", True) else "0..255",
        mean=tuple(settings["image_mean"]) if normalises else (0.0,),
        std=tuple(settings["image_std"]) if normalises else (1.0,),
    )


def transformers_classes(names: Mapping[int, str]) -> Classes | None:
    """The names that a configuration has for the outputs; None where they are the ones it makes up, LABEL_0 and so on."""
    in_order = tuple(json_entries(dict(names), "the configuration's id2label"))
    made_up = in_order == tuple(f"LABEL_{place}" for place in range(len(in_order)))
    return None if made_up else Classes(in_order)


def _transformers_size(settings: Mapping[str, Any]) -> tuple[tuple[int, int], int | None]:
    """Input size, and the length of the shorter side before the crop; None where images are squashed."""
    size = settings["size"]
    if isinstance(size, int):
        size = {"shortest_edge": size} if settings.get("crop_pct") else {"height": size, "width": size}
    if "height" in size:
        squashed = (size["height"], size["width"])
        return squashed, None
    edge = size["shortest_edge"]
    if share := settings.get("crop_pct"):
        # from 384 pixels on this family sees the whole image
        return (edge, edge), int(edge / share) if edge < 384 else None
    crop = settings.get("crop_size", edge)
    if isinstance(crop, int):
        crop = {"height": crop, "width": crop}
    return (crop["height"], crop["width"]), edge


def _timm_classes(module: Any) -> Classes | None:
    from timm.data import ImageNetInfo, infer_imagenet_subset

    subset = infer_imagenet_subset(module)
    return classes_from(ImageNetInfo(subset).label_names()) if subset else None


def _filled(module: Any, options: ModelOptions) -> tuple[str, ...]:
    """Notes on the file of weights, where one is named and loaded into the module."""
    return () if options.weights in {None, "random"} else fill(module, Path(str(options.weights)))


@contextlib.contextmanager
def whole_library(library: str) -> Iterator[None]:
    """What goes wrong when an installed library is imported, in one sentence: mostly torchvision of another torch."""
    try:
        yield
    except ModuleNotFoundError:
        raise
    except (ImportError, OSError, RuntimeError) as problem:
        reason = str(problem).strip().partition("\n")[0][:200]
        raise BadInput(
            f"{library} is installed but cannot be imported: {reason}; torch is {torch.__version__}, and torchvision should "
            "be of the release that belongs to it"
        ) from problem


@contextlib.contextmanager
def same_random_weights() -> Iterator[None]:
    """Random weights, where asked for, are the same each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@contextlib.contextmanager
def weights_from_afar(what: str, advice: str = "weights=FILE takes them from a file") -> Iterator[None]:
    """What goes wrong when a library fetches weights, in one sentence."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as problem:
        reason = str(problem).strip().partition("\n")[0]
        raise BadInput(f"{what} could not be had: {reason.rstrip(chr(46))}; {advice}") from problem
