"""Whether a model holds for every frame around a frame: pm-k robustness over video (Shankar et al., 2021)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics import clopper_pearson, difference_interval, paired_counts, per_class_accuracy
from shiftproof.metrics.accuracy import Tally
from shiftproof.metrics.by_offset import conditional_robustness, errors_by_offset
from shiftproof.metrics.effective_robustness import Axes, effective_robustness
from shiftproof.metrics.temporal import pm_k_correct, pm_k_sweep
from shiftproof.planning import Known
from shiftproof.reference import load_table
from shiftproof.studies import evidence
from shiftproof.studies.class_names import ClassNames
from shiftproof.studies.clean_study import CleanStudy
from shiftproof.studies.filmstrips import filmstrips
from shiftproof.studies.frames import Frames, subsets_of
from shiftproof.studies.hardest_frames import accuracy_on_hardest_frames
from shiftproof.studies.pixel_distances import distances_of_mistakes, distances_of_pairs
from shiftproof.types import About, Curve, Finding, Keep, Measurement, Predictions, Run

PUBLISHED_TABLES = {
    "imagenet_vid_robust_models": "45 models on ImageNet-Vid-Robust, k = 10",
    "ytbb_robust_models": "60 models on YTBB-Robust, k = 10",
}

NO_ANCHOR = "pm-k needs frames around anchor frames, and no anchor with a label was read"


@dataclass(frozen=True)
class TemporalStudy(CleanStudy):
    """Accuracy on anchor frames and on the worst of the frames around them, by distance, class and kind of frame.

    The set's images are frames with the facts `anchor`, the id of the anchor they belong to, and `offset`, 0 for the anchor
    itself. By default the anchor counts among its frames, as in the authors' code; their Eq. 1 asks the neighbours alone.
    """

    largest_k: int = 10
    include_anchor: bool = True
    shown: int = 4  # sets of frames in filmstrips
    published: str = "imagenet_vid_robust_models"  # whose line a model's robustness is measured from

    keep: ClassVar[Keep] = "top5"
    by_default: ClassVar[bool] = False

    def measure(self, load: Callable[[Run], Predictions]) -> Iterator[Finding]:
        answered: dict[Run, Frames] = {}
        for run in self.runs():
            predictions = load(run)
            frames = Frames.of(predictions)
            if frames is not None:
                convention = self._convention(run, frames)
                if not answered:  # pixels are the same for every model
                    yield from distances_of_pairs(predictions, {"image_set": run.image_set.name}, convention)
                yield from self._of_model(frames, run.about(), convention)
                yield from self._by_review(predictions, frames, run.about(), convention)
                yield from filmstrips(run, frames, shown=self.shown)
                answered[run] = frames
        stated = {run: self._convention(run, frames) for run, frames in answered.items()}
        yield from accuracy_on_hardest_frames(answered, stated, k=self.largest_k, include_anchor=self.include_anchor)

    def skipped(self, load: Callable[[Run], Predictions]) -> Iterator[str]:
        for run in self.runs():
            predictions = load(run)
            reasons = [evidence.nothing_read(run, predictions), evidence.nothing_labelled(run, predictions, "pm-k accuracy")]
            if not any(reasons) and Frames.of(predictions) is None:
                reasons = [f"{run.image_set.name}: {NO_ANCHOR}"]
            yield from (reason for reason in reasons if reason)

    def why_nothing(self, known: Known) -> str | None:
        """Frames need anchors, and these need labels."""
        ref = self.runs()[0].image_set
        no_frames = None if known.has_facts(ref, ("anchor", "offset")) else f"{ref.name}: {NO_ANCHOR}"
        return known.unlabelled(ref, "pm-k accuracy") or no_frames

    def _convention(self, run: Run, frames: Frames) -> dict[str, str]:
        anchor = "counts among its frames" if self.include_anchor else "does not count: Eq. 1"
        told = {**frames.left_out, **frames.places.reach_told(self.largest_k)}
        return {**evidence.convention_of(run, frames.predictions), "anchor": anchor, **told}

    def _of_model(self, frames: Frames, about: About, convention: Mapping[str, str]) -> Iterator[Finding]:
        yield from self._over_k(frames, about, convention)
        yield from self._by_offset(frames, about, convention)
        yield from self._by_class(frames, about, convention)
        yield from self._by_subset(frames, about, convention)
        yield from distances_of_mistakes(frames, about, convention)

    def _over_k(self, frames: Frames, about: About, convention: Mapping[str, str]) -> Iterator[Finding]:
        sweep = pm_k_sweep(*frames.columns, largest_k=self.largest_k, include_anchor=self.include_anchor)
        for k, (right, total) in enumerate(zip(sweep.right.tolist(), sweep.total.tolist(), strict=True)):
            if total:
                metric, more = ("pm_k_accuracy", {"k": k}) if k else ("anchor_accuracy", {})
                yield evidence.share(metric, right, total, {**about, **more}, convention)
        axes, anchors = ("k, frames before and after", "accuracy"), int(sweep.total.max())
        yield _curve("pm_k_curve", about, axes, np.arange(self.largest_k + 1), sweep, anchors, convention)
        answers = pm_k_correct(*frames.columns, k=self.largest_k, include_anchor=self.include_anchor)
        if not len(answers.right):
            return
        lost = paired_counts(frames.correct[answers.anchors], answers.right)
        told, interval = {**convention, **evidence.PAIRED}, difference_interval(lost)
        yield Measurement("pm_k_drop", lost.difference, {**about, "k": self.largest_k}, lost.images, told, interval)
        if sweep.total[0] and sweep.total[-1]:
            yield from self._beside_published(sweep, about, convention)

    def _beside_published(self, sweep: Tally, about: About, convention: Mapping[str, str]) -> Iterator[Measurement]:
        """How far above the line through published models the model lies, at its accuracy on the anchors."""
        rows = load_table(self.published)
        others = [np.array([float(row[name]) / 100 for row in rows]) for name in ("original", "perturbed")]
        original, perturbed = float(sweep.accuracy[0]), float(sweep.accuracy[-1])
        stated = {
            **convention,
            "published": f"{PUBLISHED_TABLES.get(self.published, self.published)}, which are other images",
            "interval": f"95 %, of one more such model about the line; not what {sweep.total[-1]} anchors leave open",
        }
        for axes in get_args(Axes):
            if axes == "probit" and not 0 < original < 1:
                continue
            found = effective_robustness(original, perturbed, *others, axes=axes)
            low, high = found.expected_interval
            interval = (perturbed - high, perturbed - low)
            key = {**about, "axes": axes}
            yield Measurement("effective_robustness", found.difference, key, int(sweep.total[-1]), stated, interval)

    def _by_offset(self, frames: Frames, about: About, convention: Mapping[str, str]) -> Iterator[Curve]:
        kept = conditional_robustness(*frames.columns, largest_k=self.largest_k)
        if kept.total.any():
            axes, away = ("frames away", "share right"), np.arange(1, self.largest_k + 1)
            yield _curve("conditional_robustness", about, axes, away, kept, int(kept.total.sum()), convention)
        errors = errors_by_offset(frames.correct, frames.places.offsets)
        near = np.abs(errors.offsets) <= self.largest_k
        wrong, axes = Tally(errors.wrong[near], errors.total[near]), ("offset from the anchor, frames", "share wrong")
        yield _curve("offset_errors", about, axes, errors.offsets[near], wrong, int(wrong.total.sum()), convention)

    def _by_class(self, frames: Frames, about: About, convention: Mapping[str, str]) -> Iterator[Measurement]:
        answers = pm_k_correct(*frames.columns, k=self.largest_k, include_anchor=self.include_anchor)
        labels = frames.predictions.labels[answers.anchors]
        if len(np.unique(labels[labels >= 0])) < 2:
            return
        names = ClassNames(frames.predictions.classes)
        tally = per_class_accuracy(labels, answers.right, classes=int(labels.max()) + 1)
        for place in np.flatnonzero(tally.total).tolist():
            key = {**about, "class": names[place], "k": self.largest_k}
            yield evidence.share("pm_k_class_accuracy", int(tally.right[place]), int(tally.total[place]), key, convention)

    def _by_subset(self, frames: Frames, about: About, convention: Mapping[str, str]) -> Iterator[Measurement]:
        """Anchors that are left when those of one kind of frame go, and anchors of clips of one frame rate."""
        for k in (0, self.largest_k):
            answers = pm_k_correct(*frames.columns, k=k, include_anchor=self.include_anchor)
            for name, chosen in subsets_of(frames.predictions.facts, answers.anchors):
                right = answers.right[chosen]
                if len(right):
                    key = {**about, "subset": name, "k": k}
                    yield evidence.share("pm_k_subset_accuracy", int(right.sum()), len(right), key, convention)

    def _by_review(
        self, predictions: Predictions, without: Frames, about: About, convention: Mapping[str, str]
    ) -> Iterator[Measurement]:
        """The same without frames that people rejected and with them, where they rejected any."""
        with_all = Frames.of(predictions, keep_rejected=True) if without.rejected else None
        if with_all is None:
            return
        for rejected, frames in (("left out", without), ("kept", with_all)):
            stated = {**convention, "frames rejected in review": f"{without.rejected}, {rejected}"}
            for k in (0, self.largest_k):
                right = pm_k_correct(*frames.columns, k=k, include_anchor=self.include_anchor).right
                key = {**about, "rejected": rejected, "k": k}
                if len(right):
                    yield evidence.share("pm_k_review_accuracy", int(right.sum()), len(right), key, stated)


def _curve(
    name: str,
    about: About,
    axes: tuple[str, str],
    x: NDArray[np.integer],
    tally: Tally,
    images: int,
    convention: Mapping[str, str],
) -> Curve:
    """Shares of images with their exact intervals, where there are any images."""
    some = tally.total > 0
    right, total = tally.right[some], tally.total[some]
    low, high = clopper_pearson(right, total)
    return Curve(
        name,
        about,
        *axes,
        x=tuple(x[some].astype(float).tolist()),
        y=tuple((right / total).tolist()),
        images=images,
        convention={**convention, **evidence.EXACT},
        counts=tuple(total.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
    )
