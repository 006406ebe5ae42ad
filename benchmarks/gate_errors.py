"""How often the gate errs where a model is exactly as bad as the margin allows, and how many images it needs to decide.

    python benchmarks/gate_errors.py [figures.json] [--quick] [--only=ROW]    about an hour on one core
    python benchmarks/gate_errors.py figures.json docs/pictures/gate-power.webp --table    table and picture of docs/gate.md

At the margin itself, or at the least value, every pass and every fail is false. Aim: each at most 5.5 % in 10,000 runs, of
which 0.5 is the error of the simulation (2.3 standard deviations of a true 5 %).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from shiftproof.metrics.accuracy import PairedCounts, holm
from shiftproof.metrics.noninferiority import Judged, PairedShares, score, tail_above
from shiftproof.studies.gate.checks import ERROR, LEVEL
from shiftproof.studies.gate.per_image import KEPT, METRICS, Columns, taken

RUNS = 10_000
SIZES = (50, 100, 200, 500, 1000, 5000)
CLUSTERS = (26, 100, 300, 1000)
MARGINS = (0.01, 0.05)
UNLIKELY = 1.0
"""Scores below which no test at 5 % rejects, so that its p-value need not be computed."""

Verdict = Callable[[np.random.Generator], tuple[bool, bool]]
"""One simulated verdict: whether it passes, and whether it fails."""

Errors = tuple[float, float]
"""Shares of false passes and of false fails."""


exact = cache(tail_above)
"""The p-value of a gain, computed once for each outcome."""


def by_counts(counts: PairedShares, bound: float) -> tuple[bool, bool]:
    """Whether it passes, and whether it fails."""
    low, high = counts.least, counts.most
    up = float(score(np.array(low.only_first), np.array(low.only_second), low.images, bound))
    down = float(score(np.array(high.only_first), np.array(high.only_second), high.images, bound))
    passes = up > UNLIKELY and exact(low.only_first, low.only_second, low.images, bound) <= ERROR
    fails = down < -UNLIKELY and exact(high.only_second, high.only_first, high.images, -bound) <= ERROR
    return passes, fails


def errors_of(runs: int, verdict: Verdict) -> Errors:
    generator = np.random.default_rng(0)
    found = np.mean([verdict(generator) for _ in range(runs)], axis=0)
    return float(found[0]), float(found[1])


def independent(images: int, margin: float, differing: float) -> Verdict:
    """Images on their own; `differing` is the share that models differ on beyond the margin."""
    shares = [differing / 2, differing / 2 + margin, 1 - differing - margin]

    def verdict(generator: np.random.Generator) -> tuple[bool, bool]:
        new, old, same = generator.multinomial(images, shares).tolist()
        counts = PairedCounts(same, new, old, 0)
        return by_counts(PairedShares(counts, counts), -margin)

    return verdict


def clustered(count: int, margin: float, differing: float, together: float) -> Verdict:
    """Clusters of 1 to 20 images; of the variance of who is right, the share `together` is common to a cluster."""
    from scipy.special import ndtr

    def verdict(generator: np.random.Generator) -> tuple[bool, bool]:
        clusters = np.repeat(np.arange(count), generator.integers(1, 21, count))
        common, own = generator.normal(size=count)[clusters], generator.normal(size=len(clusters))
        place = ndtr(np.sqrt(together) * common + np.sqrt(1 - together) * own)
        lost, gained = place < differing / 2 + margin, place > 1 - differing / 2
        return by_counts(PairedShares.of(gained, lost, clusters=clusters), -margin)

    return verdict


def by_interval(found: Judged, bound: float, *, higher: bool) -> tuple[bool, bool]:
    """The verdict of a number by its interval of 90 %, which leaves out a bound where a p-value is at most 5 %."""
    ends = found.interval(LEVEL)
    above, below = (False, False) if ends is None else (ends[0] > bound, ends[1] < bound)
    return (above, below) if higher else (below, above)


def population(generator: np.random.Generator, images: int = 200_000) -> tuple[Columns, Columns]:
    """Two models that agree on most images, the new one a little worse and overconfident."""
    hard = generator.normal(size=images)
    made = []
    for skill, noise, scale in ((1.6, 0.5, 1.0), (1.4, 0.5, 1.3)):
        logit = skill * 1.5 - 1.2 * hard + noise * generator.normal(size=images)
        chance = 1 / (1 + np.exp(-logit))
        correct = generator.random(images) < chance
        confidence = np.clip(1 / (1 + np.exp(-scale * logit)), 1e-4, 1 - 1e-4)
        right = np.where(correct, confidence, (1 - confidence) / 2)
        columns = {
            "correct": correct,
            "top5_correct": correct,
            "confidence": KEPT["confidence"].store(confidence),
            "brier": KEPT["brier"].store((1 - right) ** 2 + (1 - right) ** 2 / 2),
            "log_loss": KEPT["log_loss"].store(-np.log(right)),
        }
        made.append(columns)
    return made[1], made[0]


def other_metric(name: str, images: int, new: Columns, old: Columns) -> Verdict:
    """A metric whose margin is exactly what the new model loses in the population that images are drawn from."""
    metric = METRICS[name]
    bound = metric.value(new) - metric.value(old)
    higher = name == "aurra"

    def verdict(generator: np.random.Generator) -> tuple[bool, bool]:
        rows = generator.integers(len(new["correct"]), size=images)
        return by_interval(metric.judged_difference(taken(new, rows), taken(old, rows), None), bound, higher=higher)

    return verdict


def limit_of(name: str, images: int, new: Columns) -> Verdict:
    """A metric whose limit is exactly its value in the population that images are drawn from."""
    metric = METRICS[name]
    bound, higher = metric.value(new), name == "aurra"

    def verdict(generator: np.random.Generator) -> tuple[bool, bool]:
        rows = generator.integers(len(new["correct"]), size=images)
        return by_interval(metric.judged(taken(new, rows), None), bound, higher=higher)

    return verdict


def least_value(images: int, share: float) -> Verdict:
    """An accuracy that is exactly the least one."""

    @cache
    def decided(right: int) -> tuple[bool, bool]:
        found = METRICS["top1_accuracy"].judged({"correct": np.arange(images) < right}, None).p(share)
        return found.above <= ERROR, found.below <= ERROR

    return lambda generator: decided(int(generator.binomial(images, share)))


def several_rules(slices: int, images: int, margin: float) -> Verdict:
    """A rule for every slice, all at the margin: a pass of the whole gate and a fail of any slice are false."""

    def verdict(generator: np.random.Generator) -> tuple[bool, bool]:
        drawn = generator.multinomial(images, [0.05, 0.05 + margin, 0.9 - margin], size=slices).tolist()
        p_pass = [exact(new, old, images, -margin) for new, old, _ in drawn]
        p_fail = np.array([exact(old, new, images, margin) for new, old, _ in drawn])
        return max(p_pass) <= ERROR, bool(holm(p_fail).min() <= ERROR)

    return verdict


Cell = tuple[str, str, Verdict]
"""Row, column and how a verdict of the cell is simulated."""


def cells() -> Iterator[Cell]:
    """Every cell of the table."""
    for margin in MARGINS:
        for differing in (0.0, 0.02, 0.1, 0.3):
            name = f"accuracy, margin {100 * margin:g}, {100 * (differing + margin):g} % of images differ"
            for images in SIZES:
                yield name, f"{images} images", independent(images, margin, differing)
    for margin in MARGINS:
        for differing, together in ((0.2, 1 / 3), (0.0, 0.95)):
            how = "a third of the variance" if together < 0.5 else "nearly all of it"
            name = f"accuracy, margin {100 * margin:g}, {100 * (differing + margin):g} % differ, {how} by cluster"
            for count in CLUSTERS:
                yield name, f"{count} clusters", clustered(count, margin, differing, together)
    for share in (0.6, 0.9, 0.99):
        for images in SIZES:
            yield f"least accuracy, {100 * share:g} %", f"{images} images", least_value(images, share)
    new, old = population(np.random.default_rng(1))
    for name in ("brier_score", "negative_log_likelihood"):
        for images in (50, 200, 1000):
            yield f"{name}, difference", f"{images} images", other_metric(name, images, new, old)
            yield f"{name}, limit", f"{images} images", limit_of(name, images, new)
    for name in ("aurra", "augrc"):
        for images in (50, 200):
            yield f"{name}, difference", f"{images} images", other_metric(name, images, new, old)
    for images in (50, 200):
        yield "ten slices at once, margin 5", f"{images} images", several_rules(10, images, 0.05)


def power(runs: int) -> Iterator[dict[str, float | str]]:
    """Shares of passes and fails by the true difference, at a margin of one point; a tenth of the images differ."""
    for images in (1000, 2000, 5000):
        for drop in (-0.02, -0.01, 0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04):
            shares = [(0.1 - drop) / 2, (0.1 + drop) / 2, 0.9]

            def verdict(
                generator: np.random.Generator, shares: list[float] = shares, images: int = images
            ) -> tuple[bool, bool]:
                new, old, same = generator.multinomial(images, shares).tolist()
                counts = PairedCounts(same, new, old, 0)
                return by_counts(PairedShares(counts, counts), -0.01)

            passes, fails = errors_of(runs, verdict)
            yield {"images": images, "drop": drop, "pass": passes, "fail": fails}
            exact.cache_clear()


def table(found: dict[str, dict[str, Errors]]) -> str:
    """Rows of Markdown: false passes and false fails in percent, of images and then of clusters."""
    tables = []
    for unit in ("images", "clusters"):
        rows = {name: row for name, row in found.items() if next(iter(row)).endswith(unit)}
        columns = sorted({column for row in rows.values() for column in row}, key=lambda column: int(column.split()[0]))
        lines = [f"| false passes, false fails (%) | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
        for name, row in rows.items():
            shown = [f"{100 * row[one][0]:.1f}, {100 * row[one][1]:.1f}" if one in row else "" for one in columns]
            lines.append(f"| {name.replace('_', ' ')} | {' | '.join(shown)} |")
        tables += ["\n".join(lines)] if rows else []
    return "\n\n".join(tables)


def draw(curve: list[dict[str, float]], path: Path) -> None:
    """The power curve as a picture: how often each verdict comes, by the true difference."""
    import io

    import vl_convert
    from PIL import Image as Pillow

    rows = [
        {"points": -100 * one["drop"], "share": 100 * one[verdict], "images": f"{one['images']:,}", "verdict": verdict}
        for one in curve
        for verdict in ("pass", "fail")
    ]
    order = [f"{images:,}" for images in dict.fromkeys(one["images"] for one in curve)]
    chart = {
        "data": {"values": rows},
        "mark": {"type": "line", "point": True},
        "width": 300,
        "height": 240,
        "encoding": {
            "x": {"field": "points", "type": "quantitative", "title": "true difference (points)"},
            "y": {"field": "share", "type": "quantitative", "title": "runs with this verdict (%)"},
            "color": {"field": "images", "type": "nominal", "sort": order, "title": "images"},
            "column": {"field": "verdict", "sort": ["pass", "fail"], "title": None},
        },
        "background": "white",
    }
    picture = Pillow.open(io.BytesIO(vl_convert.vegalite_to_png(chart, scale=1.5)))
    picture.convert("RGB").save(path, quality=80)


def main() -> None:
    paths = [Path(word) for word in sys.argv[1:] if not word.startswith("--")]
    figures: dict[str, Any]
    if "--table" in sys.argv:
        figures = json.loads(paths[0].read_text())
        print(table(figures["errors"]))
        if len(paths) > 1:
            draw(figures["power"], paths[1])
        return
    runs = 1000 if "--quick" in sys.argv else RUNS
    figures = {"runs": runs, "errors": {}}
    if paths and paths[0].exists():  # what was stopped goes on
        figures = json.loads(paths[0].read_text())
    only = [word.removeprefix("--only=") for word in sys.argv if word.startswith("--only=")]
    for row, column, verdict in cells():
        if only and not row.startswith(tuple(only)):
            continue
        done = figures["errors"].setdefault(row, {})
        if column not in done:
            done[column] = errors_of(runs, verdict)
            exact.cache_clear()
            if paths:
                paths[0].write_text(json.dumps(figures, indent=1))
        passes, fails = done[column]
        print(f"{row:75} {column:14} false passes {100 * passes:.2f} %, false fails {100 * fails:.2f} %", flush=True)
    if "power" not in figures and not only:
        figures["power"] = list(power(runs // 5))
    if paths:
        paths[0].write_text(json.dumps(figures, indent=1))
    print(table(figures["errors"]))


if __name__ == "__main__":
    main()
