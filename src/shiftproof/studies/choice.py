"""Which studies are run, and with which options: those that were named, or those of a profile."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from shiftproof import catalog
from shiftproof.datasets.subsets import drawn
from shiftproof.errors import BadInput
from shiftproof.options import as_typed
from shiftproof.runs.records import Reached
from shiftproof.studies.kind import StudyKind
from shiftproof.studies.options import Assembled, Context, Parts, StudyOptions
from shiftproof.types import Dataset, fingerprint_of

EVERY = "all"
"""The name of all studies."""


@dataclass(frozen=True)
class StudyChoice:
    """Which studies, None for those that fit, and the options of each."""

    names: Sequence[str] | None = None
    options: Mapping[str, StudyOptions] = dataclasses.field(default_factory=dict)


Studies: TypeAlias = "StudyChoice | Mapping[str, StudyOptions | None] | Iterable[str] | None"
"""Names of studies, or names with their options; None for all that fit."""


def choice_of(studies: Studies) -> StudyChoice:
    """Studies as a caller may name them."""
    if studies is None or isinstance(studies, StudyChoice):
        return studies or StudyChoice()
    if isinstance(studies, str):
        raise BadInput(f"studies should be a list of names, as [{studies!r}]")
    options = {name: one for name, one in studies.items() if one is not None} if isinstance(studies, Mapping) else {}
    return StudyChoice(tuple(studies), options)


@dataclass(frozen=True)
class StudyEntry:
    """A study that was chosen, with its options."""

    name: str
    kind: StudyKind
    options: StudyOptions | None

    @cached_property
    def key(self) -> str:
        """What its parts are stored under: the study and what it was told."""
        return f"{self.name} {fingerprint_of(repr(self.options))[:12]}"

    def parts(self, images: Dataset) -> Parts | None:
        """How it can be done in part; None: whole or not at all."""
        return None if self.options is None else self.options.parts(self.options.of(images))

    def images(self, every: Dataset, reached: Reached) -> Dataset:
        """The images of a dataset that it has where a profile has come so far."""
        some = drawn(every, reached.images or len(every.samples))
        if self.options is None or self.key not in reached.drawn:
            return some
        return drawn(self.options.of(some), reached.drawn[self.key])

    def least(self, images: Dataset) -> int | None:
        """Units of its least part."""
        parts = self.parts(images)
        return None if parts is None else parts.least

    def most(self, images: Dataset) -> int | None:
        """All units of a study that can be done in part."""
        parts = self.parts(images)
        return None if parts is None else parts.most

    def assemble(self, models: Sequence[Any], images: Dataset, context: Context, units: int | None = None) -> Assembled:
        """The study, or so many units of it."""
        study = self.kind.load_study()
        if self.options is None:
            return Assembled([study(models=models, dataset=images)], [images])
        options, some = self.options, images
        if units is not None:
            options, some = self.options.within(units, self.options.of(images))
        work = options.assemble(study, models, some, context)
        return dataclasses.replace(work, datasets=list({one.ref: one for one in (some, *work.datasets)}.values()))


def chosen_entries(choice: StudyChoice, images: Dataset, *, boxes: bool, models: int = 1) -> list[StudyEntry]:
    """The studies that were named and those that always run; or those of a profile and those that other options ask for.

    ``all`` names every study of what the models predict.
    """
    every: dict[str, StudyKind] = dict(catalog.STUDIES.loaded())
    fitting = {
        name: kind for name, kind in every.items() if (kind.needs == "boxes") == boxes and kind.least_models <= models
    }

    def entry(name: str, kind: StudyKind) -> StudyEntry:
        options = choice.options.get(name)
        return StudyEntry(name, kind, kind.load_options()() if options is None and kind.options is not None else options)

    def asked(name: str) -> bool:
        options = choice.options.get(name)
        return options is not None and bool(_that_run(options))

    if choice.names is None:
        entries = [entry(name, kind) for name, kind in fitting.items() if kind.by_default or asked(name)]
        return [one for one in entries if one.options is None or asked(one.name) or one.options.fits(images)]
    if not choice.names:
        raise BadInput("expected names of studies with commas between them, see shiftproof list studies")
    if EVERY in choice.names:
        return [
            one for one in (entry(*named) for named in fitting.items()) if one.options is None or one.options.fits(images)
        ]
    named = {name: catalog.STUDIES.load(name) for name in choice.names}
    for name, kind in named.items():
        _check_predictions(name, kind, boxes=boxes)
        if kind.least_models > models:
            raise BadInput(f"some of {','.join(choice.names)} need several models; use shiftproof compare")
    for name, options in choice.options.items():
        wanted = [one for one in _that_run(options) if not any(_takes(choice, chosen, one) for chosen in named)]
        if wanted and name not in named:
            typed = " and ".join(map(as_typed, wanted))
            raise BadInput(f"{typed}: only the study {name} uses these; name it in --studies too")
    always = {name: kind for name, kind in fitting.items() if kind.always and name not in named}
    return [entry(name, kind) for name, kind in (always | named).items()]


def _that_run(options: StudyOptions) -> list[str]:
    """Options given that ask for the study they belong to."""
    fields = (one.name for one in dataclasses.fields(options))
    return [name for name in fields if name in options.RUN_BY and getattr(options, name)]


def _takes(choice: StudyChoice, study: str, option: str) -> bool:
    return study in choice.options and choice.options[study].takes(option)


def _check_predictions(name: str, kind: StudyKind, *, boxes: bool) -> None:
    """BadInput where a study of classes is asked of an object detector, or the other way round."""
    if kind.needs == "boxes" and not boxes:
        raise BadInput(f"the study {name} needs boxes; name an object detector, and the layout of its outputs as --boxes")
    if boxes and kind.needs != "boxes":
        raise BadInput(f"the study {name} needs classes and the model predicts boxes; name it as boxes:MODEL")
