"""Recipes of test time, which train nothing beforehand: a model changed by what it is to predict, without any label.

``tta`` and ``memo`` act on each image alone. ``bn-adapt`` and ``tent`` adapt to some images of each condition first, which
`shiftproof.runs.adapting` chooses and reads.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, UnknownName, listed
from shiftproof.models import load_with, runs_code
from shiftproof.models.loaded import Forward, LoadedClassifier
from shiftproof.models.options import ModelOptions
from shiftproof.options import Bounds
from shiftproof.training.augmentations.policies import MOVES
from shiftproof.training.recipe import TEST_TIME, ChosenRecipe, Recipe, chosen_recipes, torch_part
from shiftproof.types import Gives, Inputs, Layout, Logits, ModelRef, Outputs, fingerprint_of

VERSION = 1
"""Raised whenever the same recipe predicts otherwise."""

NETWORKS = "shiftproof.training.networks.at_test_time"


def load_adapted(spec: str, options: ModelOptions) -> LoadedClassifier:
    """A classifier changed at test time by the recipe that ``--adapt`` names; any classifier after ``adapted:``."""
    if options.adapt is None:
        raise BadInput(f"adapted:{spec} adapts at test time; say by which recipe, as in --adapt tta")
    options.refuse("rotated", what="a model that adapts at test time")
    chosen = test_time_recipe(options.adapt)
    # what is no network of torch yet is built again in torch, and only that is put on the device
    rebuilt = chosen.recipe.needs_torch and not runs_code(spec)
    base = load_with(spec, dataclasses.replace(options, adapt=None, device=None if rebuilt else options.device))
    if not isinstance(base, LoadedClassifier):
        raise BadInput(f"{spec} is a model of its own kind, which {chosen.name} cannot change")
    place = chosen.recipe.adapt
    assert place is not None  # noqa: S101 - chosen by that
    in_torch = torch_part(f"{NETWORKS}:in_torch")(spec, base, options) if chosen.recipe.needs_torch else base
    adapted: LoadedClassifier = torch_part(place)(in_torch, **chosen.settings)
    if adapted.adaptation is not None:
        named = dataclasses.replace(adapted.adaptation, named=options.name is not None)
        adapted = dataclasses.replace(adapted, adaptation=named)
    seen = dataclasses.replace(base.seen, augmentations=(*base.seen.augmentations, *chosen.augmentations))
    told = fingerprint_of(base.ref.fingerprint, TEST_TIME, chosen.name, dict(chosen.settings), VERSION)
    return dataclasses.replace(
        adapted,
        ref=ModelRef(options.name or f"{base.ref.name} {chosen}", told),
        seen=seen,
        graph=None,
        reinitialise=None,
        saliency={},
        for_size=None,
    )


def test_time_recipe(text: str) -> ChosenRecipe:
    """The recipe of test time that a text names; BadInput where it is one of training."""
    chosen, *more = chosen_recipes(text)
    if more or chosen.recipe.adapt is None:
        raise BadInput(
            f"{text} is no recipe of test time: --adapt takes one that acts then, such as tta; train takes others"
        )
    return chosen


class View(NamedTuple):
    """A window of the input, in shares of its sides, and whether it is mirrored."""

    top: float
    left: float
    side: float
    mirrored: bool = False

    def of(self, inputs: Inputs, layout: Layout) -> Inputs:
        """What the window shows, as large as the input: bilinear, and beyond the border mirrored."""
        if self.mirrored:
            inputs = inputs[..., ::-1] if layout == "nchw" else inputs[:, :, ::-1]
        if (self.top, self.left, self.side) == (0, 0, 1):
            return np.ascontiguousarray(inputs)
        planes = inputs if layout == "nchw" else inputs.transpose(0, 3, 1, 2)
        height, width = planes.shape[2:]
        rows, columns = _bilinear(height, self.top, self.side), _bilinear(width, self.left, self.side)
        shown = rows @ planes.astype(np.float32) @ columns.T
        if inputs.dtype.kind != "f":
            shown = shown.round().clip(0, 255)
        shown = shown if layout == "nchw" else shown.transpose(0, 2, 3, 1)
        return np.ascontiguousarray(shown, dtype=inputs.dtype)


def _bilinear(size: int, start: float, side: float) -> NDArray[np.float32]:
    """The weights, (size, size), of the pixels of a row in a window of it that is resized to the whole row.

    >>> _bilinear(4, 0.0, 0.5)[1].tolist()  # the second of four pixels lies at 0.25 of the first two
    [0.75, 0.25, 0.0, 0.0]
    """
    at = start * size + (np.arange(size) + 0.5) * side - 0.5
    before = np.floor(at).astype(int)
    weights = np.zeros((size, size), np.float32)
    for place, share in ((before, 1 - (at - before)), (before + 1, at - before)):
        inside = place % (2 * size)
        np.add.at(weights, (np.arange(size), np.minimum(inside, 2 * size - 1 - inside)), share)
    return weights


KINDS_OF_VIEWS = ("plain", "flips", "crops", "scales")


def views_named(views: str, share: float) -> list[View]:
    """The whole input first, then what is named, joined by /: each window as it is and, with flips, mirrored.

    >>> [len(views_named(one, 0.875)) for one in ("plain", "flips", "crops", "flips/crops/scales")]
    [1, 2, 5, 14]
    """
    names = views.split("/")
    for name in names:
        if name not in KINDS_OF_VIEWS:
            raise UnknownName("kind of views", name, KINDS_OF_VIEWS)
    if not 0 < share < 1:
        raise BadInput(f"tta: share should lie between 0 and 1, got {share:g}")
    windows = [(0.0, 0.0, 1.0)]
    if "crops" in names:
        windows += [(top, left, share) for top, left in product((0.0, 1 - share), repeat=2)]
    if "scales" in names:
        windows += [((1 - side) / 2, (1 - side) / 2, side) for side in (share, 1 / share)]
    return [View(*window, mirrored) for mirrored in (False, True)[: 1 + ("flips" in names)] for window in windows]


@dataclass(frozen=True)
class Averaged:
    """Outputs of a model averaged over views of each input; a further output is that of the whole input."""

    network: Forward
    views: Sequence[View]
    layout: Layout
    gives: Gives

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        if inputs.ndim != 4:
            raise BadInput(f"views are taken of inputs with rows and columns, got shape {inputs.shape}")
        found = [self.network(view.of(inputs, self.layout), features) for view in self.views]
        if len(found) == 1:
            return found[0]
        points = [one.features for one in found if one.features is not None]
        scores = averaged_scores(np.stack([one.scores for one in found]), self.gives)
        return Outputs(scores, np.mean(points, axis=0) if len(points) == len(found) else None, found[0].extra)


def averaged_scores(scores: NDArray[np.floating], gives: Gives) -> Logits:
    """Scores of the mean of probabilities over views, (views, images, classes); as logits where the model gives these.

    Their softmax is the mean probability, and their log-sum-exp, of which the energy is made, the mean of the views'.

    >>> halves = np.log([[[0.9, 0.1]], [[0.5, 0.5]]]) + np.array([1.0, 3.0]).reshape(2, 1, 1)
    >>> np.exp(averaged_scores(halves, "logits") - 2.0).round(6).tolist()
    [[0.7, 0.3]]
    """
    if gives != "logits":
        return np.asarray(scores.mean(axis=0, dtype=np.float64))
    totals = _log_sum_exp(scores.astype(np.float64), axis=2)
    shares = _log_sum_exp(scores - totals, axis=0)[0] - math.log(len(scores))
    return np.asarray(shares + totals.mean(axis=0))


def _log_sum_exp(values: NDArray[np.floating], axis: int) -> NDArray[np.floating]:
    highest = values.max(axis=axis, keepdims=True)
    return np.asarray(highest + np.log(np.exp(values - highest).sum(axis=axis, keepdims=True)))


def tta(model: LoadedClassifier, *, views: str, share: float) -> LoadedClassifier:
    """The model averaged over views of each image."""
    chosen = views_named(views, share)
    note = f"tta: the mean {'score' if model.gives == 'scores' else 'probability'} over {len(chosen)} views of each input"
    averages = Averaged(model.forward, chosen, model.preprocessing.layout, model.gives)
    # the mean of probabilities is no linear function of the mean features
    return dataclasses.replace(model, forward=averages, read_head=lambda: None, notes=(*model.notes, f"{note} ({views})"))


def _check_tta(*, views: str, share: float) -> None:
    views_named(views, share)


def _shown_by_tta(*, views: str, share: float) -> tuple[str, ...]:  # noqa: ARG001 - of the settings one decides
    """Sequences that a mean over views evens out."""
    return tuple(sequence for kind, sequence in (("crops", "translate"), ("scales", "scale")) if kind in views.split("/"))


def _check_adaptation(*, images: int, source: float, **others: float) -> None:
    if images < 2 or not source >= 0:
        raise BadInput(f"images should be 2 at least and source 0 or more, got {images} and {source:g}")
    wrong = [f"{name} {value:g}" for name, value in others.items() if not 0 <= value < math.inf]
    if wrong:
        raise BadInput(f"{listed(wrong)} should be 0 or more")


def _check_memo(*, views: int, rate: float, steps: int, source: float) -> None:
    if views < 1 or steps < 0 or not 0 <= rate < math.inf or not source >= 0:
        raise BadInput(
            f"memo: views should be 1 at least, steps, rate and source 0 or more, got {views}, {steps}, {rate:g}, {source:g}"
        )


TTA = Recipe(
    title="Test-time augmentation",
    description="The mean probability over views of each image: flips, crops or scales, joined by /.",
    cites=("krizhevsky2012imagenet",),
    settings={"views": "flips", "share": 0.875},
    levels=(TEST_TIME,),
    augmentations=_shown_by_tta,
    check=_check_tta,
    adapt="shiftproof.training.at_test_time:tta",
)

BN_ADAPT = Recipe(
    title="Adapted batch norms",
    description="Batch norms take the statistics of some test images of each condition; the old ones count as a few images.",
    cites=("schneider2020improving",),
    settings={"images": 512, "source": 16.0},
    levels=(TEST_TIME,),
    check=_check_adaptation,
    adapt=f"{NETWORKS}:bn_adapt",
    needs_torch=True,
)

TENT = Recipe(
    title="Test entropy minimisation",
    description="Scales and shifts of batch norms are trained to minimise entropy on some test images of each condition.",
    cites=("wang2021tent",),
    settings={"images": 512, "source": 0.0, "rate": 0.00025, "epochs": 1},
    bounds={"rate": Bounds(0, 1000), "epochs": Bounds(0, 1000)},
    levels=(TEST_TIME,),
    check=_check_adaptation,
    adapt=f"{NETWORKS}:tent",
    needs_torch=True,
)

MEMO = Recipe(
    title="Marginal entropy minimisation",
    description="For each image the weights take one step towards agreement on augmented views of it, and are then reset.",
    cites=("zhang2022memo",),
    settings={"views": 32, "rate": 0.00025, "steps": 1, "source": 16.0},
    bounds={"views": Bounds(1, 1000), "steps": Bounds(0, 1000)},
    levels=(TEST_TIME,),
    augmentations=("augmix", *MOVES),
    check=_check_memo,
    adapt=f"{NETWORKS}:memo",
    needs_torch=True,
)
