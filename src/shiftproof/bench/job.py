"""A job at the bench: a model and the images that it is asked about, and the keywords that every job takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast

from shiftproof.bench.steps import Bench, Tell
from shiftproof.errors import UnknownName
from shiftproof.options import DatasetSettings, EngineSettings, ModelSettings, PredictionSettings, ScoringSettings
from shiftproof.runs.store import Store
from shiftproof.studies.options import Assembled
from shiftproof.types import Dataset, Model

if TYPE_CHECKING:
    from shiftproof.runs.predict import Progress

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class BenchKeywords(TypedDict, total=False):
    """What every job takes besides what it is about."""

    store: str | Path | Store
    model_options: ModelSettings | None
    dataset_options: DatasetSettings | None
    scoring: ScoringSettings | None
    tell: Tell | None


class JobKeywords(BenchKeywords, total=False):
    """What every job that runs a model takes."""

    prediction: PredictionSettings | None
    progress: Progress | None


def takes(keywords: type[BenchKeywords]) -> Callable[[FunctionT], FunctionT]:
    """A function whose signature lists these keywords one by one, where ``help`` and the reference would show **how.

    TypeError of the function itself where it is called with another, and not of what it would have handed it on to.
    """

    def shown(function: FunctionT) -> FunctionT:
        own = signature(function)
        named = [one for one in own.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        defaults = signature(Bench.of).parameters
        for name, hint in keywords.__annotations__.items():
            default = defaults[name].default if name in defaults else None
            named.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint.__forward_arg__))
        known = [one.name for one in named]

        @wraps(function)
        def checked(*given: Any, **how: Any) -> Any:
            for name in how:
                if name not in known:
                    raise TypeError(f"{function.__name__}(): {UnknownName('keyword', name, known)}")
            return function(*given, **how)

        vars(checked)["__signature__"] = own.replace(parameters=named)
        return cast(FunctionT, checked)

    return shown


@dataclass(frozen=True)
class Job:
    """A model and the images that it is asked about, at a bench."""

    bench: Bench
    model: Any  # as `Bench.model` gives it
    images: Dataset
    prediction: PredictionSettings
    progress: Progress | None

    @classmethod
    @contextmanager
    def of(
        cls,
        model: str | Model,
        dataset: str | Path | Dataset,
        *,
        classifier: bool = True,
        engine: str | EngineSettings | None = None,
        prediction: PredictionSettings | None = None,
        progress: Progress | None = None,
        **how: Unpack[BenchKeywords],
    ) -> Iterator[Job]:
        """The model is loaded and the dataset opened; without `classifier` it may be an object detector."""
        prediction = prediction or PredictionSettings()
        with Bench.of(engine=engine, **how) as bench:
            loaded, images = bench.model(model, prediction, classifier=classifier), bench.dataset(dataset)
            yield cls(bench, bench.adapted(loaded, images), images, prediction, progress)

    def check_classes(self) -> None:
        """ClassMismatch, before anything is run, where the model's classes are not those of the images."""
        from shiftproof.runs.predict import check_classes

        check_classes(self.model, self.images, self.bench.scoring)

    def fill(self, work: Assembled) -> None:
        """Predicts what the studies need and the store lacks."""
        self.bench.fill(self.model, work, self.prediction, self.progress)
