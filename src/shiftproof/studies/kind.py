"""What the bench, the command and the report know of a study before any of it is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from shiftproof.errors import BrokenPlugin
from shiftproof.options import Options
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
    options: str | None = None  # frozen dataclass of its options; None: it takes models and a dataset alone
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
        loaded = self.options and self._load(self.options)
        if self.options and not (isinstance(loaded, type) and issubclass(loaded, Options)):
            raise BrokenPlugin(self._told, self.options, "it should be a class of StudyOptions")
        return loaded

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
