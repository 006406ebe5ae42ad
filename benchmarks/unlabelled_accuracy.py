"""Errors of accuracies that are estimated without labels: the tables of docs/estimate.md.

    SHIFTPROOF_TEST_DATA=... python benchmarks/unlabelled_accuracy.py --tiny tiny-imagenet-200/
        [--photos 200] [--store runs] [--models lite:0,lite:1]

Real photos under 19 corruptions at severities 1, 3 and 5, three networks. Each condition is estimated from conditions of
other groups (noise, blur, weather, digital), once on the same photos, once on the half that took no part; beside ours are
average confidence, DoC, ATC and COT as published. Then a far shift, Tiny-ImageNet, whose labels are only used to judge, and
photos of clothes, which should be refused. What is in the store is not predicted again.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

import shiftproof as sp
from shiftproof.corruptions.selection import corruptions_named
from shiftproof.datasets.subsets import drawn, labelled_among, unlabelled
from shiftproof.metrics.likelihood import split_half
from shiftproof.metrics.unlabelled import confidence_by_transport
from shiftproof.studies.estimate.calibrated import CALIBRATED, Answers, Calibration, KnownShifts, Trend, share_of
from shiftproof.studies.estimate.study import EstimateStudy, answers, cases_of, family, logits_of
from shiftproof.types import Classifier, Dataset

DATA = Path(os.environ["SHIFTPROOF_TEST_DATA"])
SQUEEZENET = DATA / "models" / "SqueezeNet_fp16.onnx"
WAYS = (CALIBRATED, "ATC-NE", "ATC-MC", "COT", "AC", "DoC")


def model_named(name: str) -> Classifier:
    return sp.load_model(f"onnx:{SQUEEZENET}", preprocess="caffe") if name == "squeezenet" else sp.load_model(name)


def known_answers(model: Classifier, photos: Dataset, store: sp.Store) -> tuple[tuple[str, ...], dict[str, Answers]]:
    """Ids, and answers under every condition, the clean one first."""
    study = EstimateStudy([model], photos, corruptions=corruptions_named("imagenet-c,extra"))
    found = {str(one): sp.predict(model, photos, condition=one, store=store, keep="logits") for one in study.conditions()}
    return tuple(found["clean"].ids), {name: answers(one) for name, one in found.items()}


def same_photos(made: Calibration, known: Mapping[str, Answers], groups: Mapping[str, str]) -> Iterator[dict[str, float]]:
    """Errors of every condition by the trend through other groups, all on the same photos."""
    signals = np.array([look.signals for look in made.looks])
    accuracies = np.array([one.correct.mean() for one in known.values()])
    shares = np.bincount(made.source.clean.labels, minlength=made.source.clean.logits.shape[1]) / len(made.source.clean)
    for place, (name, one) in enumerate(known.items()):
        if name == "clean":
            continue
        others = np.array([groups.get(other) != groups[name] for other in known])
        trend = Trend.through(signals[others], accuracies[others], len(one))
        told = {CALIBRATED: share_of(trend.at(made.looks[place])), **made.source.published(one.logits)}
        told["COT"] = confidence_by_transport(made.source.probabilities(one.logits), shares)
        yield {way: value - accuracies[place] for way, value in told.items()}


def line(title: str, errors: list[dict[str, float]], more: str) -> str:
    off = [f"{100 * np.mean([abs(one[way]) for one in errors]):.1f}" if way in errors[0] else "" for way in WAYS]
    return f"| {title} | {' | '.join(off)} | {more} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=200)
    parser.add_argument("--far", type=int, default=300, help="images of Tiny-ImageNet and of clothes")
    parser.add_argument("--store", default="runs")
    parser.add_argument("--models", default="lite:0,lite:1,squeezenet")
    parser.add_argument("--tiny", required=True, help="its unpacked folder")
    options = parser.parse_args()
    store = sp.Store(options.store)
    photos = drawn(sp.open_dataset(DATA / "ilsvrc-sample-1000"), options.photos)
    assert photos.classes is not None
    tiny = labelled_among(drawn(sp.open_dataset(options.tiny, name="Tiny-ImageNet"), options.far), photos.classes)
    clothes = unlabelled(drawn(sp.open_dataset(DATA / "ood-clothing"), options.far), photos.classes)
    print(f"| model and photos | {' | '.join(WAYS)} | intervals hold |\n|---|{'---|' * (len(WAYS) + 1)}")
    for name in options.models.split(","):
        model = model_named(name)
        ids, known = known_answers(model, photos, store)
        groups = {condition: family(condition.split()[0]) for condition in known if condition != "clean"}
        shifted = {condition: one for condition, one in known.items() if condition != "clean"}
        shifts = KnownShifts(known["clean"], shifted, groups, split_half(ids))
        made = shifts.calibration(len(ids))
        print(line(f"{name}, the same {len(ids)}", list(same_photos(made, known, groups)), ""))
        other = [{way: one.error(way) for way in one.estimates} for one in made.attempts]
        wide = 100 * float(np.mean([np.ptp(made.interval(look)) for look in made.looks])) / 2
        print(line(f"{name}, other {len(ids) // 2}", other, f"{100 * made.covered():.0f} %, ±{wide:.0f}"))
        for images in (tiny, clothes):
            found = sp.predict(model, images, store=store, keep="logits")
            made = shifts.calibration(len(found))
            view = made.view(logits_of(found), cases_of(found))
            look = view.look()
            low, high = (100 * end for end in made.interval(look))
            told = (
                made.why_outside(view, photos.classes.names.__getitem__)
                or f"{100 * made.estimate(look):.1f} % ({low:.1f} to {high:.1f})"
            )
            truth = 100 * answers(found).correct.mean() if found.labelled.all() else np.nan
            print(f"  {images.ref.name}: {told}; true {truth:.1f} %, {len(found)} images")


if __name__ == "__main__":
    main()
