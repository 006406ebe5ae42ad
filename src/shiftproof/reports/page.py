"""The page of a report: its results, and how findings are selected, grouped and named."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from shiftproof.errors import ShiftproofError
from shiftproof.reports.parts import Heading, Part, Picture, Pictures, SideBySide
from shiftproof.reports.pictures import LONG_SIDE, QUALITY, OpenImage, thumbnail
from shiftproof.reports.words import kept_together, names_or_count
from shiftproof.types import (
    About,
    ConfusionMatrix,
    Curve,
    DatasetRef,
    DrawnHeat,
    Finding,
    Gallery,
    GalleryItem,
    Image,
    Measurement,
    Results,
)

AnyFinding = TypeVar("AnyFinding", bound=Finding)
Key = TypeVar("Key", bound=Hashable)

SUBJECT = ("model", "dataset", "condition", "severity")
"""The keys of `about` that say whose number it is; the others say which of its numbers."""


LEAST_SIDE = 144
"""Of a thumbnail in pixels, which the number of models does not make smaller."""

ON_THE_WHOLE = {"model", "dataset", "fact", "group"}
"""What a number of the summary may be about; conditions and classes have their own sections."""


@dataclass(frozen=True)
class Page:
    """The results of a report, and how their images are opened."""

    results: Results
    open_image: OpenImage | None = None

    def subject(self, about: About) -> str:
        """The model, dataset and condition of a finding, leaving out whatever is the same on the whole page."""
        parts = [str(about["model"])] if "model" in about and len(self.models) > 1 else []
        if "dataset" in about and len(self.datasets) > 1:
            parts.append(("on " if parts else "") + str(about["dataset"]))
        if "condition" in about:
            parts.append(f"under {about['condition']} {about.get('severity', '')}".strip())
        return " ".join(parts)

    @cached_property
    def _thumbnails(self) -> dict[object, tuple[str, str]]:
        """Those made so far: several galleries show the same images."""
        return {}

    @cached_property
    def subject_title(self) -> str:
        """What `subject` names, as the heading of a column."""
        named = ["model"] if len(self.models) > 1 else []
        named += ["dataset"] if len(self.datasets) > 1 else []
        named += ["condition"] if self._values("condition") else []
        return ", ".join(named).capitalize() or "Model"

    @cached_property
    def title(self) -> str:
        """The models and the images, as far as they fit into a line; a dataset and parts of it are one."""
        return f"{names_or_count(self.models, 'models')} on {names_or_count(self.origins, 'datasets')}"

    @cached_property
    def origins(self) -> Sequence[str]:
        """What was measured on, before any part or version of it was made."""
        return list(dict.fromkeys(map(self.results.origin_of, self.datasets)))

    def own(self, about: About) -> str:
        """What a finding is about apart from its subject: a class, a perturbation."""
        return " · ".join(str(value) for key, value in about.items() if key not in SUBJECT)

    def label(self, about: About) -> str:
        """Everything that tells a finding apart."""
        return " · ".join(filter(None, [self.own(about), self.subject(about)]))

    @cached_property
    def models(self) -> Sequence[str]:
        return self._values("model") or [card.name for card in self.results.models]

    @cached_property
    def datasets(self) -> Sequence[str]:
        return self._values("dataset") or [card.name for card in self.results.datasets]

    def pictures(self, gallery: Gallery, *, long_side: int = LONG_SIDE) -> Pictures:
        """A gallery with its thumbnails."""
        several = len(self.datasets) > 1 and "model" not in gallery.about  # else the heading above names the dataset
        title = f"{gallery.title}: {gallery.dataset.name}" if several else gallery.title
        return Pictures(title, self._shown([(item, gallery.dataset) for item in gallery.items], long_side))

    def pictures_by_model(self, galleries: Iterable[Gallery]) -> list[Part]:
        """The galleries of each model together, those of several side by side."""
        titled = grouped(galleries, lambda one: (model_of(one), self.title_by_model(one)))
        columns: dict[str, list[Part]] = {}
        for (model, title), found in titled.items():
            shown = [(item, one.dataset) for one in found for item in one.items]
            columns.setdefault(model, []).append(Pictures(title, self._shown(shown, LONG_SIDE)))
        return in_columns(columns)

    def title_by_model(self, gallery: Gallery) -> str:
        """The title of a gallery, with its model where there are several."""
        several = len(self.models) > 1 and "model" in gallery.about
        return f"{gallery.title}: {gallery.about['model']}" if several else gallery.title

    def _shown(self, items: Sequence[tuple[GalleryItem, DatasetRef]], long_side: int) -> list[Picture]:
        """Items of galleries with their thumbnails, which are made in the order of their ids.

        Frames of a clip are decoded one after another so, and not each from the last key frame on.
        """
        by_id = sorted(range(len(items)), key=lambda place: items[place][0].id)
        made = {place: self._picture(*items[place], long_side) for place in by_id}
        return [made[place] for place in range(len(items))]

    def _picture(self, item: GalleryItem, home: DatasetRef, long_side: int) -> Picture:
        """A picture of another dataset than the gallery's own is named with it."""
        dataset = item.dataset or home
        name = item.id if dataset == home else f"{dataset.name}: {item.id}"
        shown = self.thumbnail(dataset, item.id, long_side=long_side)
        return Picture(name, kept_together(item.caption), *shown)

    def thumbnail(
        self,
        dataset: DatasetRef,
        image_id: str,
        *,
        long_side: int = LONG_SIDE,
        quality: int = QUALITY,
        change: Callable[[Image], Image] | None = None,
        heat: DrawnHeat | None = None,
    ) -> tuple[str, str]:
        """The thumbnail of an image as `change` leaves it and "", or "" and why there is none.

        Each model brings pictures of its own, shown side by side: they are the smaller, the more models there are.
        """
        scale = min(1.0, math.sqrt(1.2 / max(1, len(self.models))))
        side = max(min(long_side, LEAST_SIDE), round(long_side * scale))
        key = (dataset.place, image_id, side, quality)
        if change is None and heat is None and key in self._thumbnails:
            return self._thumbnails[key]
        made = "", "the dataset is not available"
        if self.open_image is not None:
            try:
                image = self.open_image(dataset, image_id)
                shown = image if change is None else change(image)
                made = thumbnail(shown, long_side=side, quality=quality, heat=heat), ""
            except (ShiftproofError, OSError) as problem:  # a picture that is gone should not cost the report
                made = "", str(problem)
        if change is None and heat is None:
            self._thumbnails[key] = made
        return made

    def _values(self, key: str) -> Sequence[str]:
        return list(dict.fromkeys(str(found.about[key]) for found in self.results.shown if key in found.about))


def name_of(finding: Finding) -> str:
    """The metric of a measurement, the name of any other finding."""
    return finding.metric if isinstance(finding, Measurement) else finding.name


def subject_key(about: About) -> tuple[str, ...]:
    """Equal for findings of the same model, dataset and condition."""
    return tuple(str(about.get(key, "")) for key in SUBJECT)


def grouped(findings: Iterable[AnyFinding], key: Callable[[AnyFinding], Key]) -> dict[Key, list[AnyFinding]]:
    """Findings by a key, in the order they first come."""
    groups: dict[Key, list[AnyFinding]] = {}
    for finding in findings:
        groups.setdefault(key(finding), []).append(finding)
    return groups


def by_subject(findings: Iterable[AnyFinding]) -> dict[tuple[str, ...], list[AnyFinding]]:
    """Findings of each model, dataset and condition."""
    return grouped(findings, lambda finding: subject_key(finding.about))


def by_images(curves: Iterable[Curve]) -> dict[tuple[str, ...], list[Curve]]:
    """Curves that can share a chart: those of different models on the same images."""
    return grouped(curves, lambda curve: subject_key({**curve.about, "model": ""}))


def by_dataset(findings: Iterable[AnyFinding]) -> dict[str, list[AnyFinding]]:
    """Findings of each dataset."""
    return grouped(findings, lambda finding: str(finding.about.get("dataset", "")))


def parts_of_each_set(findings: Iterable[Finding], parts_of: Callable[[Sequence[Finding]], Sequence[Part]]) -> list[Part]:
    """The parts of every dataset, each under its name where there are several."""
    sets = by_dataset(findings)
    return [
        part
        for dataset, found in sets.items()
        for part in [*([Heading(f"On {dataset}")] if len(sets) > 1 else []), *parts_of(found)]
    ]


def in_columns(columns: Mapping[str, Sequence[Part]]) -> list[Part]:
    """The parts of several models side by side, those of one model as they are.

    Parts of the same kinds in the same order stand in rows; where the models' parts differ, those of one title do.
    """
    if len(columns) < 2:
        return [part for parts in columns.values() for part in parts]
    kinds = {tuple(part.kind for part in parts) for parts in columns.values()}
    if len(kinds) == 1:
        return [SideBySide(list(columns), row) for row in zip(*columns.values(), strict=True)]
    rows: dict[tuple[str, str], dict[str, Part]] = {}
    for model, parts in columns.items():
        for part in parts:
            rows.setdefault((part.kind, getattr(part, "title", "").replace(model, "")), {})[model] = part
    return [SideBySide(list(row), list(row.values())) for row in rows.values()]


def model_of(finding: Finding) -> str:
    return str(finding.about.get("model", ""))


def models_of(findings: Iterable[Finding]) -> list[str]:
    """Each model once, in the order they first come."""
    return list(dict.fromkeys(model_of(finding) for finding in findings))


def whole_numbers(measurements: Iterable[Measurement]) -> list[Measurement]:
    """The numbers of a model on a dataset as a whole, or on a group of it."""
    return [found for found in measurements if set(found.about) <= ON_THE_WHOLE]


def named(findings: Iterable[Finding], name: str) -> list[Measurement]:
    """The measurements of one metric."""
    return [finding for finding in findings if isinstance(finding, Measurement) and finding.metric == name]


def curves_named(findings: Iterable[Finding], name: str) -> list[Curve]:
    return [finding for finding in findings if isinstance(finding, Curve) and finding.name == name]


def matrices_named(findings: Iterable[Finding], name: str) -> list[ConfusionMatrix]:
    return [finding for finding in findings if isinstance(finding, ConfusionMatrix) and finding.name == name]


def galleries_named(findings: Iterable[Finding], name: str) -> list[Gallery]:
    return [finding for finding in findings if isinstance(finding, Gallery) and finding.name == name]
