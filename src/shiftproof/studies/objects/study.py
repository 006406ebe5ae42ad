"""Object and background: accuracy on objects in their image, cropped, without background, enlarged (Li et al., 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.datasets.boxed.crops import ObjectView, boxes_of_crops, image_of
from shiftproof.metrics import is_correct
from shiftproof.metrics.objects import compare_shares
from shiftproof.studies import evidence
from shiftproof.studies.base import ClassNames, CleanStudy, dataset_ref, model_ref, model_refs, refs_of, settle, sure_of
from shiftproof.studies.evidence import paired_differences
from shiftproof.studies.objects.scales import (
    ScaledCrops,
    accuracies_by_scale,
    factors_from_facts,
    lacking_scales,
    scaled_accuracies,
)
from shiftproof.types import (
    About,
    Clusters,
    Curve,
    Dataset,
    DatasetRef,
    DrawnBox,
    Fact,
    Finding,
    Gallery,
    GalleryItem,
    Keep,
    Known,
    LoadPredictions,
    LoadsImages,
    Measurement,
    ModelRef,
    Note,
    Predictions,
    Run,
    Skipped,
)

WHOLE = "image"
"""The view of an object in its unchanged image."""
Boxes = Mapping[str, tuple[float, float, float, float]]
"""Box of each object in its image, by the object's id."""
TITLES = {
    "right_only_enlarged": "Correct only when enlarged without background",
    "right_only_in_image": "Correct only in the whole image, not enlarged without background",
}
BINS = 20
EFFECTS = {
    "background removed": ("alone", WHOLE),
    "object enlarged": ("enlarged", "alone"),
    "both": ("enlarged", WHOLE),
    "cropped": ("crop", WHOLE),
}
"""Changes to how an object is shown, each with the views after and before it; the first two are the paper's."""
NO_BOXES = "objects and background are told apart by boxes, and the dataset has none"


@dataclass(frozen=True)
class ObjectStudy(CleanStudy):
    """Accuracy on the objects of a boxed dataset in their image, cropped, without background and enlarged, by object size.

    `views` are datasets of crops of `dataset`, object for object the same: ``crop``, ``alone`` and ``enlarged``. `beside`
    are the crops of another boxed dataset, to compare object proportions with. `scaled` has of each model, by its name, the
    crops of each of the scale `factors` at that factor times each of the `crop_sizes`.
    """

    views: Mapping[ObjectView, DatasetRef | Dataset] = field(default_factory=dict, hash=False)
    beside: DatasetRef | Dataset | None = None
    scaled: Mapping[str, Sequence[ScaledCrops]] = field(default_factory=dict, hash=False)
    factors: Sequence[float] = ()
    crop_sizes: Sequence[int] = ()
    shown: int = 8  # objects in each gallery

    keep: ClassVar[Keep] = "top5"
    needs_labels: ClassVar[bool] = False  # objects have their classes; what is needed is boxes

    def __post_init__(self) -> None:
        super().__post_init__()
        scaled = {
            name: tuple(one._replace(model=model_ref(one.model), dataset=dataset_ref(one.dataset)) for one in some)
            for name, some in self.scaled.items()
        }
        settle(self, views=refs_of(self.views), beside=self.beside and dataset_ref(self.beside), scaled=scaled)

    def runs(self) -> list[Run]:
        """Every model on the whole images, on every view of the objects and on crops at their scale; none without boxes."""
        models = model_refs(self.models)
        views = [run for model in models for run in self._runs(model).values()]
        return [*views, *(one.run for model in models for one in self._scaled(model))]

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        if not self.views:
            yield Skipped(f"{dataset_ref(self.dataset).name}: {NO_BOXES}")
            return
        opened = load.images if isinstance(load, LoadsImages) else None
        if opened is not None:
            beside = opened(dataset_ref(self.beside)) if self.beside else None
            yield from share_findings(opened(self._any_view), of=dataset_ref(self.dataset).name, beside=beside)
        boxes = boxes_of_crops(opened(self._any_view)) if opened else {}
        for model in model_refs(self.models):
            runs = self._runs(model)
            objects = ObjectPredictions.of(runs, load)
            yield from self._skipped(model, objects)
            if objects is not None:
                yield from _accuracies(objects, runs[WHOLE].about())
                yield from _effects(objects, runs[WHOLE].about())
                yield from object_galleries(runs, objects, boxes, shown=self.shown)
            yield from scaled_accuracies(self._scaled(model), self.factors, runs[WHOLE].about(), load)

    def _skipped(self, model: ModelRef, objects: ObjectPredictions | None) -> Iterator[Skipped]:
        name = dataset_ref(self.dataset).name
        if objects is None:
            yield Skipped(f"{model.name} on {name}: no labelled object was read in every view")
        elif factors_from_facts(objects.facts) is None:
            yield Skipped(f"{name}: scale factors need the sizes of the images, which the annotations lack")
        if lacking := lacking_scales(self._scaled(model), self.factors, self.crop_sizes):
            yield Skipped(f"{model.name} on {name}: no crops at {lacking}, which it does not take or was not run at")

    def why_nothing(self, known: Known) -> str | None:
        """Why nothing can be measured: no boxes, or no labels."""
        name = dataset_ref(self.dataset).name
        return known.unlabelled(self._any_view, "accuracy on objects") if self.views else f"{name}: {NO_BOXES}"

    @property
    def _any_view(self) -> DatasetRef:
        return dataset_ref(next(iter(self.views.values())))

    def _scaled(self, model: ModelRef) -> Sequence[ScaledCrops]:
        return self.scaled.get(model.name, ()) if self.views else ()

    def _runs(self, model: ModelRef) -> dict[str, Run]:
        if not self.views:
            return {}
        sets = [(WHOLE, self.dataset), *self.views.items()]
        return {view: Run(model, dataset_ref(images)) for view, images in sets}


def _accuracies(objects: ObjectPredictions, about: About) -> Iterator[Finding]:
    """Accuracy of each view, overall and by scale factor."""
    factors = factors_from_facts(objects.facts)
    for view, correct in objects.correct.items():
        of_view = objects.subject.also({**about, "view": view})
        yield of_view.share("object_accuracy", correct)
        if factors is not None:
            yield from accuracies_by_scale("scale_factor_accuracy", correct, factors, of_view)


def _effects(objects: ObjectPredictions, about: About) -> Iterator[Finding]:
    """Paired differences in accuracy of each change."""
    correct = objects.correct
    pairs = [
        ({**about, "effect": effect}, (correct[after], correct[before]))
        for effect, (after, before) in EFFECTS.items()
        if after in correct and before in correct
    ]
    metrics = ("object_difference", "object_difference_p")
    for numbers in paired_differences(objects.subject, pairs, metrics=metrics):
        yield from numbers


@dataclass(frozen=True)
class ObjectPredictions:
    """Predictions of every object in all its views, row by row; that of an image counts for each object in it."""

    predictions: Mapping[str, Predictions]  # by view
    convention: Mapping[str, str]

    @classmethod
    def of(cls, runs: Mapping[str, Run], load: LoadPredictions) -> ObjectPredictions | None:
        """None where no labelled object was read in every view."""
        loaded = {view: load(run) for view, run in runs.items()}
        rows = {view: _labelled_rows(predictions) for view, predictions in loaded.items()}
        cut = [view for view in loaded if view != WHOLE]
        known = set.union(*(set(loaded[view].ids) | {aside.id for aside in loaded[view].skipped_images} for view in cut))
        ids = [one for one in sorted(known) if image_of(one) in rows[WHOLE] and all(one in rows[view] for view in cut)]
        if not ids:
            return None
        places = {view: [rows[view][image_of(one) if view == WHOLE else one] for one in ids] for view in loaded}
        images = len({image_of(one) for one in ids})
        convention = {
            **runs[WHOLE].convention(),
            **loaded[WHOLE].convention,
            **({"left out": f"{len(known) - len(ids)} of {len(known)} objects"} if len(ids) < len(known) else {}),
            "objects": f"{len(ids):,} in {images:,} images",
            "whole image": "correct where any class of its objects is predicted",
        }
        return cls({view: loaded[view].take(np.array(places[view], np.intp)) for view in loaded}, convention)

    @cached_property
    def correct(self) -> Mapping[str, NDArray[np.bool_]]:
        """By view, which objects are classified correctly, (objects,)."""
        return {view: is_correct(found.labels, found.top5.classes) for view, found in self.predictions.items()}

    @property
    def subject(self) -> evidence.Subject:
        """Clusters of objects are those of one image, or of the clusters of images."""
        cut = self.cut
        clusters = cut.clusters if cut.grouped else Clusters("source image", tuple(map(image_of, cut.ids)))
        return evidence.Subject({}, self.convention, clusters)

    @property
    def cut(self) -> Predictions:
        """Predictions of a view in which every object is an image of its own."""
        return next(found for view, found in self.predictions.items() if view != WHOLE)

    @property
    def facts(self) -> Mapping[str, Sequence[Fact]]:
        """Facts of the objects."""
        return self.cut.facts


def _labelled_rows(predictions: Predictions) -> dict[str, int]:
    labelled = predictions.labelled
    return {one: row for row, one in enumerate(predictions.ids) if labelled[row]}


def object_galleries(runs: Mapping[str, Run], objects: ObjectPredictions, boxes: Boxes, *, shown: int) -> Iterator[Gallery]:
    """Objects correct in one view and misclassified in the other, by confidence of the misclassification."""
    if "enlarged" not in objects.predictions:
        return
    whole, enlarged = objects.correct[WHOLE], objects.correct["enlarged"]
    confidence = {view: evidence.confidence_or_nan(found) for view, found in objects.predictions.items()}
    chosen = {"right_only_enlarged": (enlarged & ~whole, WHOLE), "right_only_in_image": (whole & ~enlarged, "enlarged")}
    for name, (rows, misclassified_in) in chosen.items():
        places = np.flatnonzero(rows)
        places = places[np.argsort(-np.nan_to_num(confidence[misclassified_in][places]), kind="stable")][:shown]
        items = tuple(item for row in places.tolist() for item in _pair(row, runs, objects, confidence, boxes))
        if items:
            yield Gallery(name, runs[WHOLE].about(), runs[WHOLE].dataset, TITLES[name], items)


def _pair(
    row: int,
    runs: Mapping[str, Run],
    objects: ObjectPredictions,
    confidence: Mapping[str, NDArray[np.floating]],
    boxes: Boxes,
) -> tuple[GalleryItem, GalleryItem]:
    cut = objects.predictions["enlarged"]
    names = ClassNames(cut.classes)
    said = {
        view: sure_of(names[int(found.top5.classes[row, 0])], confidence[view][row])
        for view, found in objects.predictions.items()
    }
    truth = names.of_labels(cut.labels[row].tolist())
    return (
        GalleryItem(
            image_of(cut.ids[row]), f"{truth}; in its image: {said[WHOLE]}", boxes=_drawn(row, objects, boxes, truth)
        ),
        GalleryItem(cut.ids[row], f"enlarged: {said['enlarged']}", dataset=runs["enlarged"].dataset),
    )


def _drawn(row: int, objects: ObjectPredictions, boxes: Boxes, caption: str) -> tuple[DrawnBox, ...]:
    """The box of the object, where the size of its image is known."""
    box = boxes.get(objects.cut.ids[row])
    width, height = (objects.facts.get(side, (None,) * (row + 1))[row] for side in ("width", "height"))
    if box is None or not isinstance(width, int) or not isinstance(height, int):
        return ()
    left, top, right, bottom = box
    return (DrawnBox((left / width, top / height, right / width, bottom / height), "truth", caption),)


def shares_of(objects: Dataset) -> NDArray[np.floating]:
    """Object proportion: area of the box over that of its image, nan where unknown, (objects,)."""
    return np.array([sample.facts.get("share") for sample in objects.samples], float)


def share_findings(objects: Dataset, *, of: str, beside: Dataset | None) -> Iterator[Finding]:
    """Mean object proportion of each class, the histogram of all, and its overlap with that of another dataset."""
    shares = shares_of(objects)
    known = np.isfinite(shares)
    if not known.any():
        return
    labels, names = np.array([sample.labels[0] for sample in objects.samples]), ClassNames(objects.classes)
    convention = {"share": "area of the box over that of its image"}
    clusters = Clusters("source image", tuple(image_of(sample.id) for sample in objects.samples))
    subject = evidence.Subject({"dataset": of}, convention, clusters)
    for label in np.unique(labels[known]).tolist():
        rows = known & (labels == label)
        of_class = subject.also({"class": names[label]}).take(rows)
        yield of_class.mean("class_object_share", shares[rows], bounds=(0.0, 1.0))
    others = shares_of(beside) if beside is not None else shares
    others = others[np.isfinite(others)]
    compared = compare_shares(shares[known], others if len(others) else shares[known], bins=BINS)
    yield _histogram(of, of, compared.edges, compared.first, int(known.sum()))
    if beside is not None and len(others):
        name, counted = beside.ref.name, int(known.sum()) + len(others)
        yield _histogram(of, name, compared.edges, compared.second, len(others))
        about = {"dataset": of, "beside": name}
        yield Measurement("object_share_overlap", compared.overlap, about, counted, {**convention, "bins": f"{BINS}, equal"})


def _histogram(of: str, objects: str, edges: NDArray[np.floating], shares: NDArray[np.floating], count: int) -> Curve:
    return Curve(
        "object_shares",
        {"dataset": of, "objects_of": objects},
        "object proportion",
        "share of the objects",
        x=tuple(((edges[1:] + edges[:-1]) / 2).tolist()),
        y=tuple(shares.tolist()),
        images=count,
        convention={"bins": f"{len(shares)} of equal width; each holds its lower edge, the last both"},
        counts=tuple(np.round(shares * count).astype(int).tolist()),
    )
