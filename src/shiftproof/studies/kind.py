"""What the bench, the command and the report know of a study before any of it is imported."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from shiftproof.catalog import STUDIES
from shiftproof.errors import BrokenPlugin
from shiftproof.options import Options, as_typed, every_class, written_in
from shiftproof.registry import load_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from shiftproof.types import Study


@dataclass(frozen=True)
class StudyKind:
    """A study as catalog entries name it; each of its parts is a ``module:attribute``, imported when first asked for."""

    title: str
    question: str  # what it measures, in one sentence
    study: str
    options: str | None = None  # class of its options; None: it takes models and a dataset alone
    section: str | None = None  # its part of a report
    verdict: str | None = None  # its part of the verdict on a model, a Judge
    by_default: bool = True  # part of a profile, where its options say that the dataset fits
    always: bool = False  # run beside whichever studies are named
    least_models: int = 1
    needs: Literal["classes", "boxes"] = "classes"  # what a model must predict

    def load_study(self) -> Callable[..., Study]:
        """The class of the study."""
        loaded: Callable[..., Study] = self._load(self.study)
        return loaded

    def load_options(self) -> Any:
        """The dataclass of its options, or None."""
        if self.options is None:
            return None
        loaded = self._load(self.options)
        if not (isinstance(loaded, type) and issubclass(loaded, Options)):
            raise BrokenPlugin(self._told, self.options, "it should be a class of StudyOptions")
        if not _is_ours(self.options):
            self._check_names(self.options, loaded)
        return loaded

    def _check_names(self, place: str, options: type[Options]) -> None:
        """BrokenPlugin where an option has the name of one of ours: on the command line the two would share one value."""
        for name in STUDIES.built_in:
            STUDIES.load(name).load_options()
        ours = {one.name for kind in every_class(Options) if _is_ours(kind.__module__) for one in fields(kind)}
        for one in fields(options):
            if one.name in ours and not _is_ours(written_in(options, one.name).__module__):
                name = as_typed(one.name)
                raise BrokenPlugin(
                    self._told, place, f"shiftproof has an option {name}; inherit it as it is, or give yours another name"
                )

    def load_section(self) -> Any:
        """What draws its part of a report, or None."""
        return self.section and self._load(self.section)

    def load_verdict(self) -> Any:
        """What it contributes to the verdict on a model, or None."""
        return self.verdict and self._load(self.verdict)

    @property
    def _told(self) -> str:
        return f"study {self.title!r}"

    def _load(self, place: str) -> Any:
        return load_part(self._told, place)


def _is_ours(place: str) -> bool:
    return place.startswith("shiftproof.")
