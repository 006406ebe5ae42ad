"""Options of the study of OOD detection."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from shiftproof.errors import BadInput, MissingRuns
from shiftproof.options import (
    POSITIVE,
    SHARE,
    Bounds,
    OODDetectorChoice,
    OODInputs,
    PictureSettings,
    option,
)
from shiftproof.studies.options import (
    Assembled,
    Context,
    Parts,
    StudyOptions,
    detector_names,
    detector_parameters,
    keep_of,
    named_datasets,
    pictures_of,
)

if TYPE_CHECKING:
    from shiftproof.datasets.image_list import ImageList
    from shiftproof.runs.store import Store
    from shiftproof.studies.options import Classifiers
    from shiftproof.types import Classifier, Condition, Dataset, ModelRef

FIRST_IMAGES = 50
"""Images of each further dataset that a first look takes."""

CORRUPTION = re.compile(r"(?P<corruption>\w+):(?P<severity>\d+)")


class OODOptions(OODInputs, OODDetectorChoice, StudyOptions):
    """ID, covariate-shifted and OOD datasets, with the random and perturbed networks that the study runs too."""

    TITLE: ClassVar[str] = "Out-of-distribution detection"
    RUN_BY: ClassVar[frozenset[str]] = frozenset({"id", "shifted", "ood", "training"})

    ood_baseline: str = option("msp", "The OOD detector that others are compared with.")
    rejected: float = option(
        0.75, "Share of the OOD images to reject, for the share of correct predictions discarded.", bounds=SHARE
    )
    tpr: float = option(0.95, "True-positive rate at which false positives are counted.", bounds=SHARE)
    risk: float = option(
        0.05, "Risk at which coverage is measured: share of errors among accepted predictions.", bounds=SHARE
    )
    area: Literal["average-precision", "trapezoid"] = option(
        "average-precision",
        "How AUPR is integrated.",
        choices=("average-precision", "trapezoid"),
        flags=("--aupr",),
    )
    auroc_interval: Literal["delong", "bootstrap"] = option(
        "delong", "Confidence interval of an AUROC.", choices=("delong", "bootstrap")
    )
    disagree: tuple[str, ...] | None = option(
        None, "Two OOD detectors, as vim,knn, to show disagreements of.  [default: the best and --ood-baseline]"
    )
    random_networks: int = option(
        0, "Networks of the same architecture with random weights, to run the same detectors on.", bounds=Bounds(0)
    )
    random_fan: Literal["in", "out"] = option(
        "in", "Fan by which random weights are scaled (Kaiming).", choices=("in", "out")
    )
    odin_eps: float | None = option(None, "Input perturbation of ODIN, as 0.0014.", bounds=POSITIVE)
    odin_normalised: bool = option(False, "--odin-eps is on the scale of the normalised input, not of pixels 0 to 1.")
    distance_model: str | None = option(
        None, "Model whose features measure the distance to the ID images.  [default: MODEL]"
    )
    distance_groups: int | None = option(
        None, "Groups of images of similar distance.  [default: up to 100]", bounds=Bounds(5)
    )
    pairs_at: tuple[int, ...] = option(
        (0, 25, 50, 75, 100), "Percentiles of distance to show nearest pairs at.", bounds=Bounds(0, 100)
    )
    scores_at: tuple[int, ...] = option(
        (0, 25, 50, 75, 100), "Percentiles of OOD scores to show images of each dataset at.", bounds=Bounds(0, 100)
    )
    examples: int = option(6, "Images of each dataset, in each direction, to show disagreements of.", bounds=Bounds(0, 48))
    images_each: int | None = None  # of the datasets besides the in-distribution one, where time is short; None: all

    def parts(self, dataset: Dataset) -> Parts | None:  # noqa: ARG002
        """Images of each further dataset; fitted detectors need all training images, or seem worse than they are."""
        named = {"--id": self.id, "--shifted": self.shifted, "--ood": self.ood}
        places = {name: [text for text in texts if not CORRUPTION.fullmatch(text)] for name, texts in named.items()}
        sets = [images for name, texts in places.items() for images in named_datasets(name, texts).values()]
        if not sets or self.training is not None:
            return None
        most = max(len(images.samples) for images in sets)
        return Parts(min(most, FIRST_IMAGES), most, "auroc", "images of each further dataset")

    def within(self, units: int, dataset: Dataset) -> tuple[StudyOptions, Dataset]:
        return dataclasses.replace(self, images_each=units), dataset

    def assemble(self, study: Callable[..., Any], models: Classifiers, dataset: Dataset, context: Context) -> Assembled:
        from shiftproof.studies.base import model_ref
        from shiftproof.types import ModelRef

        sets, store = ood_datasets(self, models, dataset, context).of_each(self.images_each), context.store
        random = {model_ref(model).name: self._random(model, store) for model in models}
        perturbed = {model_ref(model).name: self._perturbed(model, store) for model in models} if self.odin_eps else {}
        distance = self._distance_model(models, context)
        made = study(
            models=models,
            dataset=dataset,
            **sets._asdict(),
            detectors=detector_names(self),
            preset=self.preset,
            parameters=detector_parameters(self.set),
            random_networks=random,
            odin=perturbed,
            rejected=self.rejected,
            tpr=self.tpr,
            risk=self.risk,
            area=self.area,
            auroc_interval=self.auroc_interval,
            groups=self.distance_groups,
            baseline=self.ood_baseline,
            distance_model=distance,
            pairs_at=self.pairs_at,
            scores_at=self.scores_at,
            examples=self.examples,
            disagree=self._two(),
            keep=keep_of(models, store),
        )
        asked = [*(network for some in random.values() for network in some), *perturbed.values(), distance]
        companions = [one for one in asked if one is not None and not isinstance(one, ModelRef)]
        return Assembled([made], sets.opened, companions)

    def _two(self) -> tuple[str, str] | None:
        if self.disagree is None:
            return None
        if len(self.disagree) != 2:
            raise BadInput(f"--disagree takes two OOD detectors, as vim,knn; got {','.join(self.disagree)!r}")
        return self.disagree[0], self.disagree[1]

    def _random(self, model: Classifier | ModelRef, store: Store) -> list[Classifier | ModelRef]:
        """Networks with random weights: made of a model at hand, or those stored before."""
        from shiftproof.models import random_network
        from shiftproof.models.companions import RandomWeights, random_network_ref
        from shiftproof.types import ModelRef

        seeds, fan = range(1, self.random_networks + 1), self.random_fan
        if isinstance(model, ModelRef):
            return [_stored(random_network_ref(model, RandomWeights(seed, fan)), store) for seed in seeds]
        return [random_network(model, seed, fan=fan) for seed in seeds]

    def _perturbed(self, model: Classifier | ModelRef, store: Store) -> Classifier | ModelRef:
        """The model with inputs perturbed as by ODIN, at the temperature of the detector."""
        from shiftproof.models import perturbed_by_odin
        from shiftproof.models.companions import perturbed_ref
        from shiftproof.ood import parameters_of
        from shiftproof.types import ModelRef

        chosen = parameters_of("odin", preset=self.preset, chosen=detector_parameters(self.set).get("odin"))
        eps, temperature = self.odin_eps or 0.0, float(chosen["temperature"] or 1)
        scaled = not self.odin_normalised
        if isinstance(model, ModelRef):
            return _stored(perturbed_ref(model, eps=eps, temperature=temperature, divide_by_std=scaled), store)
        return perturbed_by_odin(model, eps=eps, temperature=temperature, divide_by_std=scaled)

    def _distance_model(self, models: Classifiers, context: Context) -> Classifier | ModelRef | None:
        """One of the models, a stored one where models are stored ones, else the model of that name, to be run as well."""
        from shiftproof.models import load_model
        from shiftproof.studies.base import model_ref
        from shiftproof.types import ModelRef

        if self.distance_model is None:
            return None
        named = {model_ref(model).name: model for model in models}
        if self.distance_model in named:
            return named[self.distance_model]
        if isinstance(models[0], ModelRef):
            return context.stored_model(self.distance_model)
        return load_model(self.distance_model, trust=context.trust)


def _stored(ref: ModelRef, store: Store) -> ModelRef:
    """A network made of a model, if it was run before: by its fingerprint, for other models may bear the same name."""
    if store.model(ref) is None:
        raise MissingRuns(
            f"no {ref.name}, as made of this model with these options, is stored in {store.root}; "
            "make it with: shiftproof run, with the same options"
        )
    return ref


class OODDatasets(NamedTuple):
    """The datasets beside the in-distribution one, as OOD studies call them."""

    id_datasets: Mapping[str, Dataset]
    shifted: Mapping[str, Dataset]
    conditions: Sequence[Condition]
    ood_datasets: Mapping[str, Dataset]
    training: ImageList | None

    def of_each(self, most: int | None) -> OODDatasets:
        """At most so many images of each, but of all training images."""
        from shiftproof.datasets.subsets import drawn

        if most is None:
            return self
        id_datasets, shifted, ood = (
            {name: drawn(images, most) for name, images in sets.items()}
            for sets in (self.id_datasets, self.shifted, self.ood_datasets)
        )
        return self._replace(id_datasets=id_datasets, shifted=shifted, ood_datasets=ood)

    @property
    def opened(self) -> list[Dataset]:
        named = (self.id_datasets, self.shifted, self.ood_datasets)
        return [*(images for sets in named for images in sets.values()), *([self.training] if self.training else [])]


def ood_datasets(options: OODInputs, models: Classifiers, dataset: Dataset, context: Context) -> OODDatasets:
    """The datasets of --id, --shifted, --ood and --training, and corruptions of the ID dataset."""
    from shiftproof.datasets import open_dataset

    return OODDatasets(
        id_datasets=named_datasets("--id", options.id),
        shifted=named_datasets("--shifted", [text for text in options.shifted if not CORRUPTION.fullmatch(text)]),
        conditions=_conditions(options.shifted, options, models, dataset, context),
        ood_datasets=named_datasets("--ood", options.ood),
        training=None if options.training is None else open_dataset(options.training),
    )


def _conditions(
    texts: Sequence[str], options: PictureSettings, models: Classifiers, dataset: Dataset, context: Context
) -> list[Condition]:
    """Corruptions of the ID dataset, of what the model itself would see of each image where nothing else was chosen.

    Another crop, or a lossy encoding, would be a shift of its own between the clean images and these.
    """
    from shiftproof.corruptions import corruption_of
    from shiftproof.runs.prepare import check_condition
    from shiftproof.types import Condition

    asked = list(filter(None, map(CORRUPTION.fullmatch, texts)))
    if not asked:
        return []
    pictures = pictures_of(options, models, dataset, context, picture="model-size")
    frost, fit = pictures.pop("frost"), pictures.pop("fit")
    pictures |= {"edition": fit.edition if fit else options.edition, "output": pictures["output"] or "raw"}
    conditions = []
    for found in asked:
        name = found["corruption"]
        takes_frost = corruption_of(name).takes_frost
        condition = Condition(name, int(found["severity"]), frost=frost if takes_frost else None, **pictures)
        check_condition(condition)
        conditions.append(condition)
    return conditions
