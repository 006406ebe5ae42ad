"""Findings as the studies of corruption and perturbation give them, with made-up numbers that rise with severity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shiftproof.corruptions import IMAGENET_C, corruption_groups
from shiftproof.types import (
    About,
    BaselineRef,
    Condition,
    Curve,
    DatasetRef,
    Finding,
    Gallery,
    GalleryItem,
    Interval,
    Measurement,
    ModelRef,
)

PHOTOS = DatasetRef("photos", "f00d", "/photos")
SEVERITIES = (1, 2, 3, 4, 5)
PERTURBATIONS = ("gaussian_noise", "shot_noise", "motion_blur", "zoom_blur", "snow", "brightness", "translate", "rotate")
HOW = {"picture": "imagenet-224", "output": "jpeg85", "frost pictures": "our own"}
HARD = {"noise": 0.10, "blur": 0.13, "weather": 0.09, "digital": 0.05, "extra": 0.04}


def measured(
    metric: str, value: float, about: About, *, baseline: BaselineRef | str | None = None, half_width: float = 0.03
) -> Measurement:
    """A number of 1,000 photos with an interval around it."""
    interval = Interval(max(0.0, value - half_width), value + half_width, method="bootstrap over images")
    ref = BaselineRef.of(ModelRef(baseline, "run here")) if isinstance(baseline, str) else baseline
    convention = {**HOW, **({"baseline": ref.name} if ref else {})}
    return Measurement(metric, value, {"dataset": "photos", **about}, 1000, convention, interval, baseline=ref)


def error_at(corruption: str, severity: int, clean: float) -> float:
    """Grows with the severity, by group and a little by name."""
    group = next((group for group, members in corruption_groups().items() if corruption in members), "extra")
    return min(0.99, clean + (HARD[group] + 0.004 * (len(corruption) - 6)) * severity * (0.5 + clean * 2))


def corruption_findings(
    model: str, clean: float, *, baseline: BaselineRef | str | None = None, corruptions: Sequence[str] = IMAGENET_C
) -> Iterator[Finding]:
    """Everything of one model."""
    about: dict[str, str | int] = {"model": model}
    yield measured("clean_error", clean, about)
    errors = {name: [error_at(name, severity, clean) for severity in SEVERITIES] for name in corruptions}
    for name, row in errors.items():
        for severity, error in zip(SEVERITIES, row, strict=True):
            yield measured("corrupted_error", error, {**about, "corruption": name, "severity": severity})
    means = {name: sum(row) / 5 for name, row in errors.items()}
    for name, mean in means.items():
        yield measured("corruption_mean_error", mean, {**about, "corruption": name})
    for group, members in corruption_groups().items():
        if known := [means[name] for name in members if name in means]:
            yield measured("group_error", sum(known) / len(known), {**about, "group": group})
    mean = sum(means.values()) / len(means)
    yield measured("mean_corrupted_error", mean, about)
    yield measured("relative_corrupted_error", mean - clean, about)
    if baseline:
        for name in corruptions:
            yield measured("corruption_error", means[name] / 0.8, {**about, "corruption": name}, baseline=baseline)
            yield measured("relative_corruption_error", means[name] / 0.6, {**about, "corruption": name}, baseline=baseline)
        yield measured("mean_corruption_error", mean / 0.8, about, baseline=baseline)
        yield measured("relative_mean_corruption_error", mean / 0.6, about, baseline=baseline)
    for name, row in errors.items():
        y = (clean, *row)
        low, high = tuple(value - 0.03 for value in y), tuple(min(1.0, value + 0.03) for value in y)
        place = {"dataset": "photos", "corruption": name, **about}
        yield Curve(
            "degradation", place, "severity", "share wrong", (0.0, 1.0, 2.0, 3.0, 4.0, 5.0), y, 1000, HOW, low=low, high=high
        )
    fragile = tuple(GalleryItem(f"{place}.jpg", f"otter: wrong in {70 - place} of 75") for place in range(8))
    yield Gallery("fragile_photos", {"dataset": "photos", **about}, PHOTOS, "Least robust photos", fragile)
    yield contact_sheet(model, [*corruptions, *corruption_groups()["extra"]])


def contact_sheet(model: str, corruptions: Sequence[str]) -> Gallery:
    """The photo is named wrong from severity 4 on."""
    conditions = [
        Condition(name, severity, edition="imagenet-224", picture="imagenet-224", output="jpeg85")
        for name in dict.fromkeys(corruptions)
        for severity in SEVERITIES
    ]
    items = [
        GalleryItem("0.jpg", str(one), one, correct=one.severity <= 3, corruption=one.name, severity=one.severity)
        for one in conditions
    ]
    about = {"model": model, "dataset": "photos"}
    return Gallery("contact_sheet", about, PHOTOS, "One photo under every corruption", tuple(items))


def perturbation_findings(
    model: str, shaky: float, *, baseline: BaselineRef | str | None = None, difficulties: Sequence[int] = (1, 2, 3)
) -> Iterator[Finding]:
    """Everything of one model."""
    about: dict[str, str | int] = {"model": model}
    for difficulty in difficulties:
        for place, name in enumerate(PERTURBATIONS):
            flips = shaky * (1 + 0.12 * place) * difficulty**0.7
            where = {**about, "perturbation": name, "difficulty": difficulty}
            yield measured("flip_probability", flips, where, half_width=0.008)
            yield measured("top5_distance", 15 * flips, where, half_width=0.1)
            if baseline:
                yield measured("flip_rate", flips / 0.14, where, baseline=baseline)
                yield measured("top5_distance_ratio", flips / 0.12, where, baseline=baseline)
        mean = shaky * 1.4 * difficulty**0.7
        # the first difficulty goes without saying
        mean_about = about if difficulty == 1 else {**about, "difficulty": difficulty}
        yield measured("mean_flip_probability", mean, mean_about, half_width=0.006)
        yield measured("mean_top5_distance", 15 * mean, mean_about, half_width=0.1)
        if baseline:
            yield measured("mean_flip_rate", mean / 0.14, mean_about, baseline=baseline)
            yield measured("mean_top5_distance_ratio", mean / 0.12, mean_about, baseline=baseline)
    items = tuple(GalleryItem(f"{place}.jpg", f"otter: flips at {20 - place} of 30 steps") for place in range(6))
    yield Gallery("unstable_photos", {"dataset": "photos", **about}, PHOTOS, "Least steady photos", items)
