"""What every section may ask of the page it stands on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from shiftproof.reports.parts import Heading, Part, Picture, Pictures
from shiftproof.reports.thumbnails import LONG_SIDE, OpenImage, thumbnail_or_reason
from shiftproof.reports.words import kept_together, names_or_count
from shiftproof.studies.results import Results
from shiftproof.types import About, Curve, Finding, Gallery, GalleryItem, ImageSetRef, Measurement

SUBJECT = ("model", "image_set", "condition", "severity")
"""The keys of `about` that say whose number it is; the others say which of its numbers."""


@dataclass(frozen=True)
class Page:
    """The results being reported, and the way to their pixels."""

    results: Results
    open_image: OpenImage | None = None

    def subject(self, about: About) -> str:
        """The model, image set and condition of a finding, leaving out whatever is the same on the whole page."""
        parts = [str(about["model"])] if "model" in about and len(self.models) > 1 else []
        if "image_set" in about and len(self.image_sets) > 1:
            parts.append(("on " if parts else "") + str(about["image_set"]))
        if "condition" in about:
            parts.append(f"under {about['condition']} {about.get('severity', '')}".strip())
        return " ".join(parts)

    @cached_property
    def subject_title(self) -> str:
        """What `subject` names, as the heading of a column."""
        named = ["model"] if len(self.models) > 1 else []
        named += ["image set"] if len(self.image_sets) > 1 else []
        named += ["condition"] if self._values("condition") else []
        return ", ".join(named).capitalize() or "Model"

    @cached_property
    def title(self) -> str:
        """The models and the images, as far as they fit into a line."""
        return f"{names_or_count(self.models, 'models')} on {names_or_count(self.image_sets, 'image sets')}"

    def own(self, about: About) -> str:
        """What a finding is about beside its subject: a class, a perturbation."""
        return " · ".join(str(value) for key, value in about.items() if key not in SUBJECT)

    def label(self, about: About) -> str:
        """Everything that tells a finding apart."""
        return " · ".join(filter(None, [self.own(about), self.subject(about)]))

    @cached_property
    def models(self) -> Sequence[str]:
        return self._values("model") or [card.name for card in self.results.models]

    @cached_property
    def image_sets(self) -> Sequence[str]:
        return self._values("image_set") or [card.name for card in self.results.image_sets]

    def pictures(self, gallery: Gallery, *, long_side: int = LONG_SIDE) -> Pictures:
        """A gallery with its thumbnails."""
        several = len(self.image_sets) > 1 and "model" not in gallery.about  # else the heading above names the set
        title = f"{gallery.title}: {gallery.image_set.name}" if several else gallery.title
        return self._pictures(gallery, title, long_side)

    def pictures_by_model(self, galleries: Iterable[Gallery]) -> list[Pictures]:
        """The galleries of each model together, for where no heading names it."""
        together: dict[str, list[Gallery]] = {}
        for gallery in galleries:
            several = len(self.models) > 1 and "model" in gallery.about
            title = f"{gallery.title}: {gallery.about['model']}" if several else gallery.title
            together.setdefault(title, []).append(gallery)
        return [
            Pictures(title, [picture for one in found for picture in self._pictures(one, title).pictures])
            for title, found in together.items()
        ]

    def _pictures(self, gallery: Gallery, title: str, long_side: int = LONG_SIDE) -> Pictures:
        return Pictures(title, [self._picture(item, gallery.image_set, long_side) for item in gallery.items])

    def _picture(self, item: GalleryItem, home: ImageSetRef, long_side: int) -> Picture:
        """A picture of another set than the gallery's own is named with it."""
        image_set = item.image_set or home
        name = item.id if image_set == home else f"{image_set.name}: {item.id}"
        shown = thumbnail_or_reason(self.open_image, image_set, item.id, long_side=long_side)
        return Picture(name, kept_together(item.caption), *shown)

    def _values(self, key: str) -> Sequence[str]:
        return list(dict.fromkeys(str(found.about[key]) for found in self.results.findings if key in found.about))


def name_of(finding: Finding) -> str:
    """The metric of a measurement, the name of a curve or gallery."""
    return finding.metric if isinstance(finding, Measurement) else finding.name


def subject_key(about: About) -> tuple[str, ...]:
    """Equal for findings of the same model, image set and condition."""
    return tuple(str(about.get(key, "")) for key in SUBJECT)


def by_subject(findings: Iterable[Finding]) -> dict[tuple[str, ...], list[Finding]]:
    """Findings of each model, image set and condition, in the order they first come."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(subject_key(finding.about), []).append(finding)
    return groups


def by_images(curves: Iterable[Curve]) -> dict[tuple[str, ...], list[Curve]]:
    """Curves that can share a chart: those of different models on the same images."""
    groups: dict[tuple[str, ...], list[Curve]] = {}
    for curve in curves:
        groups.setdefault(subject_key({**curve.about, "model": ""}), []).append(curve)
    return groups


def by_image_set(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings of each image set, in the order they first come."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(str(finding.about.get("image_set", "")), []).append(finding)
    return groups


def parts_of_each_set(findings: Iterable[Finding], parts_of: Callable[[Sequence[Finding]], Sequence[Part]]) -> list[Part]:
    """The parts of every image set, each under its name where there are several."""
    sets = by_image_set(findings)
    return [
        part
        for image_set, found in sets.items()
        for part in [*([Heading(f"On {image_set}")] if len(sets) > 1 else []), *parts_of(found)]
    ]


def model_of(finding: Finding) -> str:
    return str(finding.about.get("model", ""))


def models_of(findings: Iterable[Finding]) -> list[str]:
    """Each model once, in the order they first come."""
    return list(dict.fromkeys(model_of(finding) for finding in findings))


def named(findings: Iterable[Finding], name: str) -> list[Measurement]:
    """The measurements of one metric."""
    return [finding for finding in findings if isinstance(finding, Measurement) and finding.metric == name]


def curves_named(findings: Iterable[Finding], name: str) -> list[Curve]:
    return [finding for finding in findings if isinstance(finding, Curve) and finding.name == name]


def galleries_named(findings: Iterable[Finding], name: str) -> list[Gallery]:
    return [finding for finding in findings if isinstance(finding, Gallery) and finding.name == name]
