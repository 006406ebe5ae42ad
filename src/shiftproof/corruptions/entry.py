"""The entry of a corruption or a perturbation sequence in the catalog; a plug-in registers one too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TypeAlias

from shiftproof import catalog
from shiftproof.errors import BadInput
from shiftproof.registry import missing_extra

if TYPE_CHECKING:
    from shiftproof.types import Image

Parameter: TypeAlias = float | int | bool
"""What a severity gives a corruption: a length in pixels, a share, a level, or a choice."""

Rows: TypeAlias = tuple[tuple[Parameter, ...], ...]

Group: TypeAlias = Literal["noise", "blur", "weather", "digital", "extra", "c-bar"]
"""The groups of ImageNet-C, of which extra is not among its 15 test corruptions, and those of ImageNet-C-bar."""

SEVERITIES = 5

# the authors of AugMix left these operations out of theirs, because ImageNet-C has them
COLOUR_JITTER = ("color jitter", "colour jitter", "autoaugment", "randaugment", "trivialaugment")
"""Augmentations of training that change brightness, contrast and saturation."""


@dataclass(frozen=True, init=False)
class Severities:
    """Severity parameters by edition: a row of them for each severity or level, in the order of `names`.

    Editions are named as keywords, ``imagenet_224`` for imagenet-224; `rows` are those of every other edition. `pixels` are
    the parameters that are lengths in pixels of the edition's own size, `whole_pixels` those of them that stay whole where
    they can: `scaled` lets them grow.

    >>> blur = Severities("radius sigma", imagenet_224=((10, 3), (15, 5)), pixels="sigma", whole_pixels="radius")
    >>> blur.at(2, "imagenet-224")
    {'radius': 15, 'sigma': 5}
    >>> Severities("darkness", (0.2, 0.4, 0.6)).at(3, "cifar-32")
    {'darkness': 0.6}
    """

    names: tuple[str, ...]
    rows: Rows
    editions: Mapping[str, Rows]
    pixels: frozenset[str]
    whole_pixels: frozenset[str]

    def __init__(
        self,
        names: str,
        rows: tuple[Parameter | tuple[Parameter, ...], ...] = (),
        *,
        pixels: str = "",
        whole_pixels: str = "",
        **editions: tuple[Parameter | tuple[Parameter, ...], ...],
    ) -> None:
        by_edition = {
            edition.replace("_", "-"): tuple(row if isinstance(row, tuple) else (row,) for row in figures)
            for edition, figures in {"": rows, **editions}.items()
        }
        object.__setattr__(self, "names", tuple(names.split()))
        object.__setattr__(self, "rows", by_edition.pop(""))
        object.__setattr__(self, "editions", by_edition)
        object.__setattr__(self, "pixels", frozenset(f"{pixels} {whole_pixels}".split()))
        object.__setattr__(self, "whole_pixels", frozenset(whole_pixels.split()))
        self._check()

    def _check(self) -> None:
        tables = [*([self.rows] if self.rows else []), *self.editions.values()]
        if len({len(rows) for rows in tables}) != 1:
            raise BadInput(f"severity parameters {' '.join(self.names)}: every edition should have as many rows, and some")
        for row in (row for rows in tables for row in rows if len(row) != len(self.names)):
            raise BadInput(f"severity parameters {' '.join(self.names)}: {row} should be {len(self.names)} numbers")

    def __len__(self) -> int:
        """How many severities or levels there are."""
        return len(self.rows or next(iter(self.editions.values())))

    def at(self, severity: int, edition: str) -> dict[str, Parameter]:
        """The parameters of one severity or level; BadInput where an edition has none."""
        rows = self.editions.get(edition, self.rows)
        if not rows:
            raise BadInput(f"no severity parameters for edition {edition}; there are some for {', '.join(self.editions)}")
        return dict(zip(self.names, rows[severity - 1], strict=True))

    def scaled(self, parameters: Mapping[str, Parameter], factor: float) -> dict[str, Parameter]:
        """The parameters for a picture so many times as large: lengths in pixels grow, shares and levels stay.

        >>> blur = Severities("radius sigma kept", imagenet_224=((10, 3, 0.8),), pixels="sigma", whole_pixels="radius")
        >>> blur.scaled(blur.at(1, "imagenet-224"), 2.5)
        {'radius': 25, 'sigma': 7.5, 'kept': 0.8}
        """
        return {name: self._scaled(name, value, factor) for name, value in parameters.items()}

    def _scaled(self, name: str, value: Parameter, factor: float) -> Parameter:
        if name not in self.pixels:
            return value
        grown = value * factor
        return max(1, round(grown)) if name in self.whole_pixels and isinstance(value, int) else grown


@dataclass(frozen=True)
class Corruption:
    """A corruption: a pure function of a picture, a random generator and the parameters of a severity."""

    function: Callable[..., Image]  # (image, rng, *, parameters by name)
    title: str  # in running text
    severities: Severities
    group: Group = "extra"
    also_called: tuple[str, ...] = ()  # augmentations of training that are this corruption
    random: bool = True  # draws random numbers: each image of a dataset has its own
    takes_frost: bool = False  # `function` takes a `folder` of frost pictures too
    published_in: frozenset[str] = frozenset()  # which of the datasets that share its group have it
    revision: int = 1  # raised when the pixels change, so that stored predictions of the old ones are not used for the new

    def __post_init__(self) -> None:
        if len(self.severities) != SEVERITIES:
            raise BadInput(f"{self.title}: a corruption has {SEVERITIES} severities, got {len(self.severities)}")

    @property
    def description(self) -> str:
        """What it does, in one sentence."""
        return _first_line(self.function)


@dataclass(frozen=True)
class Perturbation:
    """A perturbation sequence: a function that yields the frames of a `Canvas`; its levels are severity parameters."""

    function: Callable[..., Iterator[Image]]  # (canvas, rng, *, parameters by name, frames among them)
    title: str  # in running text
    levels: Severities
    imagenet_p: bool = False  # one of the ten that mFR and mT5D are means over
    independent_frames: bool = False  # noise: frames are compared with the first one, not with the frame before
    before_resizing: frozenset[str] = frozenset()  # editions that made it from the image at its own size
    also_called: tuple[str, ...] = ()  # augmentations of training that are this perturbation

    def __post_init__(self) -> None:
        if "frames" not in self.levels.names:
            raise BadInput(f"{self.title}: its levels should say how many frames there are, as frames")

    @property
    def description(self) -> str:
        """What it does, in one sentence."""
        return _first_line(self.function)


def corruption_of(name: str) -> Corruption:
    """A corruption by name, or UnknownName with the nearest."""
    entry: Corruption = catalog.CORRUPTIONS.load(name)
    return entry


def perturbation_of(name: str) -> Perturbation:
    """A perturbation sequence by name, or UnknownName with the nearest."""
    entry: Perturbation = catalog.PERTURBATIONS.load(name)
    return entry


def pixel_revision(condition: str) -> int:
    """The revision of a corruption's pixels; 1 for clean images, and for a plug-in that is not installed any more."""
    return corruption_of(condition).revision if condition in catalog.CORRUPTIONS else 1


def check_kernels(what: str) -> None:
    """MissingExtra now, rather than at the first picture, where the libraries that change pixels are not installed.

    They are not imported for it: who only asks what is stored of changed pictures needs none of them.
    """
    for library in ("numba", "cv2"):
        if find_spec(library) is None:
            raise missing_extra(what, ModuleNotFoundError(f"No module named {library!r}", name=library))


def _first_line(function: Callable[..., object]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]
