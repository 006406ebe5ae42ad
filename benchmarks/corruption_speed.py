"""The 19 corruptions of ImageNet-C beside the public package, a memory copy and libjpeg-turbo: one thread, 224 pixels.

    python benchmarks/corruption_speed.py [--rounds N] [--names fog,snow] [--json FIGURES.json]

Rates are images per CPU second. Every round times each implementation once, in a changing order, at each severity; ours
runs twice a round, and the ratio of those two is the A/A control. Ours is timed as a user calls it, with all its checks and
a new key per call; first uses (compilation, tables) are excluded on both sides. Three of the package's corruptions fail with
today's libraries and are patched (a renamed argument, a renamed type): they are starred, and a mean without them is given.
Its glass blur takes seconds per image and runs in the first round only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from PIL import Image as Pillow

import shiftproof as sp
from harness import Ratio
from shiftproof.corruptions import corruption_groups
from shiftproof.types import Image

SEVERITIES = (1, 2, 3, 4, 5)
AT_LEAST = 0.02  # seconds a timing takes: calls are repeated until then


class Speed(NamedTuple):
    """What one corruption does at one severity, or the mean over severities (total time, so harmonic in rates)."""

    ours: float  # pictures a CPU second
    peer: float
    ratio: Ratio
    control: Ratio


def photo() -> Image:
    """Blotches of all sizes, as in a photo, with a little noise; Pillow and the package read it like any other."""
    rng = np.random.default_rng(0)
    image = np.full((224, 224, 3), 128.0)
    for sigma in (2, 8, 32):
        image += 30 * sigma * cv2.GaussianBlur(rng.standard_normal(image.shape), (0, 0), sigma)
    return np.clip(image + rng.normal(0, 3, image.shape), 0, 255).astype(np.uint8)


def peer_corruptions() -> Any:
    """The module of the package, with a stand-in for one that Python no longer has."""
    stand_in = types.ModuleType("pkg_resources")
    stand_in.resource_filename = lambda package, path: str(  # type: ignore[attr-defined]
        Path(sys.modules[package.partition(".")[0]].__file__ or "").parent / path
    )
    sys.modules.setdefault("pkg_resources", stand_in)
    warnings.simplefilter("ignore")
    import imagecorruptions.corruptions

    return imagecorruptions.corruptions


def mend(peer: Any) -> None:
    """Lets the package run with today's libraries; what it computes stays."""
    gaussian, names = peer.gaussian, types.SimpleNamespace(**vars(np))
    names.float_ = np.float64
    peer.np = names
    peer.gaussian = lambda image, *arguments, multichannel=False, **options: gaussian(
        image, *arguments, channel_axis=-1 if multichannel else None, **options
    )


def runs(corruption: Callable[..., object], picture: Image) -> bool:
    try:
        corruption(Pillow.fromarray(picture), 1)
    except (AttributeError, TypeError):
        return False
    return True


def seconds(call: Callable[[], object]) -> float:
    """CPU time of one call, over as many as fill the least time."""
    calls, started = 0, time.process_time()
    while True:
        call()
        calls += 1
        spent = time.process_time() - started
        if spent >= AT_LEAST:
            return spent / calls


def against(base: list[float], own: list[float]) -> Ratio:
    each = sorted(first / second for first, second in zip(base, own, strict=True))
    return Ratio(statistics.median(each), each[0], each[-1])


def speeds_of(contestants: dict[str, Callable[[], object]], rounds: int) -> Speed:
    """Ours, ours again and the peer, each once a round in a changing order; the first calls are not counted."""
    times: dict[str, list[float]] = {who: [] for who in contestants}
    orders = list(itertools.permutations(contestants))
    contestants["ours"]()
    for turn in range(rounds):
        for who in orders[turn % len(orders)]:
            times[who].append(seconds(contestants[who]))
    rate = {who: 1 / statistics.median(spent) for who, spent in times.items()}
    control = against(times["again"], times["ours"])
    return Speed(rate["ours"], rate["peer"], against(times["peer"], times["ours"]), control)


def measured(name: str, picture: Image, peer: Any, rounds: int) -> dict[str, Speed]:
    """Speeds at each severity and over all of them, keyed "1" to "5" and "mean"."""
    keys = itertools.count()
    theirs, image = getattr(peer, name), Pillow.fromarray(picture)
    slow = name == "glass_blur"

    contestants: dict[str, Callable[[int], object]] = {
        "ours": lambda severity: sp.corrupt(picture, name, severity, key=str(next(keys))),
        "again": lambda severity: sp.corrupt(picture, name, severity, key=str(next(keys))),
        "peer": lambda severity: np.uint8(theirs(image, severity)),
    }
    for severity in SEVERITIES:
        contestants["ours"](severity)
    times: dict[str, dict[int, list[float]]] = {who: {severity: [] for severity in SEVERITIES} for who in contestants}
    orders = list(itertools.permutations(contestants))
    for turn in range(rounds):
        for severity in SEVERITIES:
            for who in orders[(turn + severity) % len(orders)]:
                if who == "peer" and slow and turn:
                    times[who][severity].append(times[who][severity][0])
                else:
                    times[who][severity].append(seconds(lambda who=who, severity=severity: contestants[who](severity)))  # type: ignore[misc]
    speeds = {}
    for label, chosen in [*((str(severity), (severity,)) for severity in SEVERITIES), ("mean", SEVERITIES)]:
        each = {who: [sum(times[who][severity][turn] for severity in chosen) for turn in range(rounds)] for who in times}
        rate = {who: len(chosen) / statistics.median(spent) for who, spent in each.items()}
        speeds[label] = Speed(
            rate["ours"], rate["peer"], against(each["peer"], each["ours"]), against(each["again"], each["ours"])
        )
    return speeds


def limits(picture: Image, rounds: int) -> dict[str, float]:
    """A memory copy, and libjpeg-turbo at quality 15 with nothing around it: encode and decode, in rates."""
    swapped = cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)

    def jpeg() -> None:
        _, saved = cv2.imencode(".jpg", swapped, [cv2.IMWRITE_JPEG_QUALITY, 15])
        cv2.imdecode(saved, cv2.IMREAD_COLOR)

    return {
        "memory copy": 1 / statistics.median(seconds(picture.copy) for _ in range(rounds)),
        "libjpeg-turbo": 1 / statistics.median(seconds(jpeg) for _ in range(rounds)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the 19 corruptions beside the public package.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--names", default=",".join([*sp.IMAGENET_C, *corruption_groups()["extra"]]))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    picture, peer = photo(), peer_corruptions()
    physical = limits(picture, options.rounds)
    print(", ".join(f"{name} {rate:,.0f}/s" for name, rate in physical.items()))
    heads = (
        f"{'severity 3':>10} {'peer':>8} {'x peer':>24}   {'mean':>8} {'x peer':>24}  {'A/A':>16} {'/copy':>7} {'/jpeg':>6}"
    )
    print(f"{'':18} {heads}")
    figures: dict[str, dict[str, Speed]] = {}
    chosen = options.names.split(",")
    mended = {name for name in chosen if not runs(getattr(peer, name), picture)}
    mend(peer)
    for name in chosen:
        figures[name] = measured(name, picture, peer, options.rounds)
        third, mean = figures[name]["3"], figures[name]["mean"]
        control = f"{mean.control.low:.2f} to {mean.control.high:.2f}"
        print(
            f"{name + '*' * (name in mended):18} {third.ours:10,.0f} {third.peer:8,.1f} {shown(third.ratio):>24}   "
            f"{mean.ours:8,.0f} {shown(mean.ratio):>24}  {control:>16} {mean.ours / physical['memory copy']:7.4f} "
            f"{mean.ours / physical['libjpeg-turbo']:6.2f}",
            flush=True,
        )
    for label, title in (("3", "severity 3"), ("mean", "mean over severities")):
        ratios = {name: speed[label].ratio.median for name, speed in figures.items() if name != "glass_blur"}
        as_released = [ratio for name, ratio in ratios.items() if name not in mended]
        all_of_them, unmended = (statistics.geometric_mean(some) for some in (ratios.values(), as_released))
        least = sorted(ratios, key=ratios.__getitem__)[0]
        print(
            f"{title}: geometric mean of {len(ratios)} ratios, glass blur apart, {all_of_them:.1f}; "
            f"of the {len(as_released)} that run as released {unmended:.1f}; least {least} {ratios[least]:.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps({"limits": physical, "corruptions": as_plain(figures)}, indent=1) + "\n")


def as_plain(value: Any) -> Any:
    """Named tuples as dictionaries, all the way down."""
    if isinstance(value, dict):
        return {name: as_plain(part) for name, part in value.items()}
    return as_plain(value._asdict()) if isinstance(value, (Speed, Ratio)) else value


def shown(ratio: Ratio) -> str:
    return f"{ratio.median:.1f} ({ratio.low:.1f} to {ratio.high:.1f})"


if __name__ == "__main__":
    main()
