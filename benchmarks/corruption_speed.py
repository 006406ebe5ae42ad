"""The 19 corruptions of ImageNet-C on photos, beside imagecorruptions, albumentations, a memory copy and libjpeg-turbo.

    SHIFTPROOF_TEST_DATA=... python benchmarks/corruption_speed.py [--rounds N] [--names fog,snow] [--no-growth]
                                                                   [--head FOLDER] [--json FIGURES.json]
                                                                   [--docs docs/speed.md]
    python benchmarks/corruption_speed.py --table FIGURES.json --docs docs/speed.md

One thread, photos cropped to 224 pixels; rates are images per CPU second. Every round times each contestant once at each
severity on all photos, in a changing order; ours runs twice a round, and the ratio of those two is the A/A control. Ours is
timed as a user calls it, with all its checks and a new key per call; first uses (compilation, tables) are excluded.

imagecorruptions is the release on PyPI (1.1.2). The head of its repository, which has a faster glass blur, cannot be
installed by name: it runs too where `--head`, or the variable IMAGECORRUPTIONS_HEAD, names a checkout. Three corruptions of
either fail with today's libraries and are patched (a renamed argument, a renamed type). The glass blur of the release takes
seconds per image and runs once. albumentations, where it is installed, has transforms of the same kind with the nearest
parameters, but other pixels: a rate beside it is no like for like, and it has no frost.

Every corruption is timed at 1920 x 1080 too, by pixel against 224, with the memory that it takes beyond the image.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import importlib
import itertools
import json
import os
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

import harness
import shiftproof as sp
from shiftproof.corruptions import corruption_groups
from shiftproof.corruptions.editions import edition_of, severity_parameters
from shiftproof.corruptions.kernels.filters import gaussian_kernel
from shiftproof.corruptions.kernels.jpeg import jpeg85
from shiftproof.types import Image

SEVERITIES = (1, 2, 3, 4, 5)
EDITION = "imagenet-224"
AT_LEAST = 0.02  # seconds a timing takes: calls are repeated until then
LARGE = (1080, 1920)
HEAD = "imagecorruptions (HEAD)"
BEGINS, ENDS = "<!-- made by benchmarks/corruption_speed.py --docs -->", "<!-- end of the table -->"

Calls = dict[str, Callable[[Image, int], object]]
"""What each contestant does to a photo at a severity."""


def photos(count: int, height: int, width: int) -> list[Image]:
    """Photos at equal distances in the folder of the tests, each the edition's crop of 224 or filling the size."""
    folder = Path(os.environ.get("SHIFTPROOF_TEST_DATA", "")) / "ilsvrc-sample-1000"
    files = sorted(folder.glob("*.jpg"))
    if not files:
        raise SystemExit("no photos: set SHIFTPROOF_TEST_DATA to the folder that has ilsvrc-sample-1000")
    chosen = [Pillow.open(path).convert("RGB") for path in files[:: len(files) // count][:count]]
    if (height, width) == (224, 224):
        return [np.array(edition_of(EDITION).picture(np.asarray(photo))) for photo in chosen]
    return [np.array(photo.resize((width, height), Pillow.Resampling.BICUBIC)) for photo in chosen]


def imagecorruptions(checkout: Path | None = None) -> Any:
    """The module of the package, or of a checkout of its repository, running with today's libraries."""
    stand_in = types.ModuleType("pkg_resources")  # Python no longer has it
    stand_in.resource_filename = lambda package, path: str(  # type: ignore[attr-defined]
        Path(sys.modules[package].__file__ or "").parent / path
    )
    sys.modules.setdefault("pkg_resources", stand_in)
    warnings.simplefilter("ignore")
    peer: Any
    if checkout is None:
        peer = importlib.import_module("imagecorruptions.corruptions")
    else:
        file = checkout / "imagecorruptions" / "corruptions.py"
        if not file.is_file():
            raise SystemExit(f"no checkout of imagecorruptions: {checkout}")
        loader = SourceFileLoader("imagecorruptions_head", str(file))
        peer = sys.modules[loader.name] = types.ModuleType(loader.name)
        peer.__file__ = str(file)
        loader.exec_module(peer)
    gaussian, numpy = peer.gaussian, types.ModuleType("numpy")
    vars(numpy).update(vars(np), float_=np.float64)
    peer.np = numpy
    peer.gaussian = lambda image, *arguments, multichannel=False, **options: gaussian(
        image, *arguments, **{"channel_axis": -1 if multichannel else None, **options}
    )
    return peer


def albumentations(name: str, severity: int) -> Callable[[Image], object] | None:
    """Its transform of the same kind, of the nearest parameters; None where it has none, or is not installed."""
    os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
    try:
        peer: Any = importlib.import_module("albumentations")
    except ImportError:
        return None
    of = severity_parameters(name, severity, EDITION)

    def both(value: Any) -> tuple[Any, Any]:
        return value, value

    makers: dict[str, Callable[[], Any]] = {
        "gaussian_noise": lambda: peer.GaussNoise(std_range=both(of["spread"]), p=1),
        "shot_noise": lambda: peer.ShotNoise(scale_range=both(1 / of["photons"]), p=1),
        "impulse_noise": lambda: peer.SaltAndPepper(amount=both(of["amount"]), p=1),
        "speckle_noise": lambda: peer.MultiplicativeNoise(
            multiplier=(1 - of["spread"], 1 + of["spread"]), per_channel=True, elementwise=True, p=1
        ),
        "defocus_blur": lambda: peer.Defocus(radius=both(of["radius"]), alias_blur=both(of["softness"]), p=1),
        "glass_blur": lambda: peer.GlassBlur(
            sigma=of["sigma"], max_delta=of["reach"], iterations=of["rounds"], mode="exact", p=1
        ),
        "motion_blur": lambda: peer.MotionBlur(blur_limit=both(2 * of["radius"] + 1), p=1),
        "zoom_blur": lambda: peer.ZoomBlur(max_factor=both(of["stop"]), step_factor=both(of["step"]), p=1),
        "gaussian_blur": lambda: peer.GaussianBlur(blur_limit=0, sigma_limit=both(of["sigma"]), p=1),
        "snow": lambda: peer.RandomSnow(snow_point_range=both(1 - of["kept"]), method="texture", p=1),
        "fog": lambda: peer.RandomFog(fog_coef_range=both(min(of["strength"] / 3, 1)), p=1),
        "brightness": lambda: peer.RandomBrightnessContrast(brightness_limit=both(of["lift"]), contrast_limit=both(0), p=1),
        "contrast": lambda: peer.RandomBrightnessContrast(
            brightness_limit=both(0), contrast_limit=both(of["gain"] - 1), p=1
        ),
        "elastic_transform": lambda: peer.ElasticTransform(alpha=of["amplitude"], sigma=of["sigma"], p=1),
        "pixelate": lambda: peer.Downscale(
            scale_range=both(of["share"]),
            interpolation_pair={"downscale": cv2.INTER_AREA, "upscale": cv2.INTER_NEAREST},
            p=1,
        ),
        "jpeg_compression": lambda: peer.ImageCompression(quality_range=both(of["quality"]), p=1),
        "spatter": lambda: peer.Spatter(
            mean=both(of["mean"]),
            std=both(of["spread"]),
            gauss_sigma=both(of["sigma"]),
            cutout_threshold=both(of["threshold"]),
            intensity=both(min(of["finish"], 1)),
            mode="mud" if of["mud"] else "rain",
            p=1,
        ),
        "saturate": lambda: peer.ColorJitter(
            brightness=both(1), contrast=both(1), saturation=both(of["gain"]), hue=both(0), p=1
        ),
    }
    if name not in makers:
        return None
    transform = makers[name]()
    return lambda photo: transform(image=photo)["image"]


def contestants(name: str, peers: dict[str, Any]) -> Calls:
    """Ours, ours again, and each of the others that has the like."""
    keys = itertools.count()
    ours = lambda photo, severity: sp.corrupt(photo, name, severity, key=str(next(keys)))  # noqa: E731
    calls: Calls = {"ours": ours, "again": ours}
    for who, peer in peers.items():
        theirs = getattr(peer, name)
        calls[who] = lambda photo, severity, theirs=theirs: np.uint8(theirs(Pillow.fromarray(photo), severity))  # type: ignore[misc]
    transforms = {severity: albumentations(name, severity) for severity in SEVERITIES}
    if transforms[1] is not None:
        calls["albumentations"] = lambda photo, severity: transforms[severity](photo)  # type: ignore[misc]
    return calls


def seconds(call: Callable[[Image, int], object], pictures: Sequence[Image], severity: int) -> float:
    """CPU time of one call, over as many as fill the least time, on each photo equally often."""
    calls, started = 0, time.process_time()
    while True:
        for picture in pictures:
            call(picture, severity)
        calls += len(pictures)
        spent = time.process_time() - started
        if spent >= AT_LEAST:
            return spent / calls


def measured(name: str, pictures: Sequence[Image], peers: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Rates by contestant, and how many times as fast ours is, at each severity and over all of them ("mean")."""
    calls = contestants(name, peers)
    times: dict[str, dict[int, list[float]]] = {who: {severity: [] for severity in SEVERITIES} for who in calls}
    for who, severity in itertools.product(calls, SEVERITIES):
        if who != "imagecorruptions":
            calls[who](pictures[0], severity)
    for turn in range(rounds):
        order = list(calls)[turn % len(calls) :] + list(calls)[: turn % len(calls)]
        for severity, who in itertools.product(SEVERITIES, order):
            slow = who == "imagecorruptions" and name == "glass_blur"
            if slow and turn:
                times[who][severity].append(times[who][severity][0])
            else:
                times[who][severity].append(seconds(calls[who], pictures[:1] if slow else pictures, severity))
    figures: dict[str, Any] = {}
    for label, chosen in [*((str(severity), (severity,)) for severity in SEVERITIES), ("mean", SEVERITIES)]:
        each = {who: [sum(times[who][one][turn] for one in chosen) for turn in range(rounds)] for who in times}
        figures[label] = {
            "rate": {who: len(chosen) / statistics.median(spent) for who, spent in each.items() if who != "again"},
            "ratio": {who: ratio(each[who], each["ours"]) for who in each if who not in ("ours", "again")},
            "A/A": ratio(each["again"], each["ours"]),
        }
    return figures


def ratio(base: list[float], own: list[float]) -> list[float]:
    """How many times as fast as the base: median, least and largest over rounds."""
    each = sorted(first / second for first, second in zip(base, own, strict=True))
    return [round(value, 3) for value in (statistics.median(each), each[0], each[-1])]


def limits(pictures: Sequence[Image], rounds: int) -> dict[str, float]:
    """A memory copy, and libjpeg-turbo at the five qualities with nothing around it, in rates."""

    def mean(call: Callable[[Image, int], object]) -> float:
        return statistics.median(
            sum(seconds(call, pictures, severity) for severity in SEVERITIES) / len(SEVERITIES) for _ in range(rounds)
        )

    return {"memory copy": 1 / mean(lambda picture, _: picture.copy()), "libjpeg-turbo": 1 / mean(libjpeg_turbo(QUALITIES))}


QUALITIES = [int(severity_parameters("jpeg_compression", severity, EDITION)["quality"]) for severity in SEVERITIES]


def libjpeg_turbo(qualities: Sequence[int]) -> Callable[[Image, int], object]:
    """Encode and decode at the quality of each severity; channels stay as OpenCV takes them, so that nothing turns them."""

    def call(picture: Image, severity: int) -> None:
        _, saved = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, qualities[severity - 1]])
        cv2.imdecode(saved, cv2.IMREAD_COLOR)

    return call


def jpeg_shares(pictures: Sequence[Image], rounds: int) -> dict[str, list[float]]:
    """Our rates of JPEG compression, and of the save of the published files, as shares of bare loops' in each round."""
    reversed_channels = [np.ascontiguousarray(picture[:, :, ::-1]) for picture in pictures]
    noisy = [sp.corrupt(picture, "gaussian_noise", 3) for picture in pictures]
    reversed_noisy = [np.ascontiguousarray(picture[:, :, ::-1]) for picture in noisy]
    pairs: dict[str, tuple[Callable[[Image, int], object], Sequence[Image], Sequence[int], Sequence[Image]]] = {
        "jpeg": (
            lambda picture, severity: sp.corrupt(picture, "jpeg_compression", severity),
            pictures,
            QUALITIES,
            reversed_channels,
        ),
        "jpeg85": (lambda picture, _: jpeg85(picture), noisy, [85] * 5, reversed_noisy),
    }
    shares = {}
    for name, (own, ours, qualities, theirs) in pairs.items():
        loops = {"own": (own, ours), "bare": (libjpeg_turbo(qualities), theirs)}
        times: dict[str, list[float]] = {"own": [], "bare": []}
        for turn in range(rounds):
            for who in ("bare", "own") if turn % 2 else ("own", "bare"):
                times[who].append(sum(seconds(*loops[who], severity) for severity in SEVERITIES))
        shares[name] = ratio(times["bare"], times["own"])
    return shares


def bare_elastic_transform() -> Callable[[Image, int], object]:
    """The steps of an elastic transform: two fields drawn by NumPy and smoothed by OpenCV (wide windows by a Fourier
    transform and back), an affine map and one by the fields, both of floats but with OpenCV's thirty-seconds of a pixel.
    """
    generator, slightly = np.random.default_rng(0), np.array([[1, 0.01, 1], [0, 1, 1]])
    smooth = [float(severity_parameters("elastic_transform", severity, EDITION)["sigma"]) for severity in SEVERITIES]

    @functools.cache
    def places(*size: int) -> Any:
        return np.ascontiguousarray(np.indices(size)[::-1].transpose(1, 2, 0), np.float32)

    def call(picture: Image, severity: int) -> None:
        height, width = picture.shape[:2]
        fields: Any = generator.random((height, width, 2), np.float32)
        if smooth[severity - 1] > 10:
            fields = cv2.dft(cv2.dft(fields), flags=cv2.DFT_INVERSE | cv2.DFT_SCALE)
        else:
            fields = cv2.GaussianBlur(fields, (0, 0), smooth[severity - 1])
        tilted = cv2.warpAffine(picture.astype(np.float32), slightly, (width, height), borderMode=cv2.BORDER_REFLECT_101)
        where = places(height, width) + fields
        moved = cv2.remap(tilted, where, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)  # type: ignore[call-overload]
        moved.astype(np.uint8)

    return call


def bare_loops(pictures: Sequence[Image], rounds: int) -> dict[str, list[float]]:
    """Our rate as a share of that of the least work that makes the published pixels, with nothing around it.

    Gaussian blur: a separable filter whose sums are floats, which truncation needs. Contrast: means by channel, then one
    pass over the samples, here about the mean of red alone and rounded.
    """
    sigmas = [float(severity_parameters("gaussian_blur", severity, EDITION)["sigma"]) for severity in SEVERITIES]
    gains = [float(severity_parameters("contrast", severity, EDITION)["gain"]) for severity in SEVERITIES]

    def gaussian_blur(picture: Image, severity: int) -> None:
        kernel = gaussian_kernel(sigmas[severity - 1])
        floats = cv2.sepFilter2D(picture, cv2.CV_32F, kernel, kernel, borderType=cv2.BORDER_REPLICATE)
        floats.astype(np.uint8)

    def contrast(picture: Image, severity: int) -> None:
        middle = cv2.mean(picture)[0]
        cv2.convertScaleAbs(picture, alpha=gains[severity - 1], beta=middle * (1 - gains[severity - 1]))

    bare: dict[str, tuple[Callable[[Image, int], object], tuple[int, ...]]] = {
        "elastic_transform": (bare_elastic_transform(), SEVERITIES),
        "gaussian_blur": (gaussian_blur, SEVERITIES),
        "contrast": (contrast, SEVERITIES),
    }
    shares = {}
    for name, (call, severities) in bare.items():
        own = lambda picture, severity: sp.corrupt(picture, name, severity)  # noqa: B023, E731
        times: dict[str, list[float]] = {"bare": [], "own": []}
        for turn in range(rounds):
            for who, work in (("bare", call), ("own", own)) if turn % 2 else (("own", own), ("bare", call)):
                times[who].append(sum(seconds(work, pictures, severity) for severity in severities))
        shares[name] = ratio(times["bare"], times["own"])
    return shares


def rows_of_the_page(figures: dict[str, Any]) -> None:
    """The rows of the table of speed, from the figures of a run."""
    corruptions = figures["corruptions"]
    mean = {name: one["mean"] for name, one in corruptions.items()}
    ours = harmonic(corruptions, "ours")
    controls = sorted(one["A/A"][0] for one in mean.values())
    noise = harness.Ratio(statistics.median(controls), controls[0], controls[-1])
    count, rate = len(mean), "images a CPU-second"
    harness.figure(
        f"{count} corruptions at 224 px, one thread, harmonic mean of rates",
        ours,
        beside="the aim alone",
        aim=">= 2,500",
        unit=rate,
        noise=noise,
    )
    peers = {"imagecorruptions": ("imagecorruptions 1.1.2 (PyPI)", ">= 150 x"), HEAD: ("imagecorruptions, HEAD", ">= 30 x")}
    for who, (beside, aim) in peers.items():
        if all(who in one["rate"] for one in mean.values()):
            work = f"{count} corruptions at 224 px, by that mean"
            needs = "IMAGECORRUPTIONS_HEAD" if who == HEAD else ""
            harness.figure(work, ours / harmonic(corruptions, who), beside=beside, aim=aim, noise=noise, needs=needs)
    for name in sorted(mean, key=lambda name: float(mean[name]["rate"]["ours"]))[:3]:
        low = ">= 1,200" if name in ("elastic_transform", "zoom_blur", "spatter") else ">= 1,500"
        control = harness.Ratio(*mean[name]["A/A"])
        peer = f"imagecorruptions {mean[name]['rate']['imagecorruptions']:,.0f}"
        harness.figure(
            f"{name}, among the slowest", mean[name]["rate"]["ours"], beside=peer, aim=low, unit=rate, noise=control
        )
    control = mean.get("jpeg_compression", {"A/A": [noise.median]})["A/A"][0]
    beside = "libjpeg-turbo's bare encode and decode"
    harness.figure("JPEG compression", figures["jpeg"][0], beside=beside, aim=">= 0.95", noise=control)
    harness.figure("output jpeg85 of gaussian noise", figures["jpeg85"][0], beside=beside, aim=">= 0.95", noise=control)
    limits = {
        "elastic_transform": "its steps by NumPy and OpenCV, other pixels",
        "gaussian_blur": "a bare blur to floats, cut to bytes",
        "contrast": "a bare pass for means and one for levels",
    }
    for name, limit in limits.items():
        harness.figure(name, figures["bare"][name][0], beside=limit, aim="near 1", noise=noise)
    ratios = {
        f"{name} at severity {severity}": one[str(severity)]["ratio"]["albumentations"][0]
        for name, one in corruptions.items()
        for severity in SEVERITIES
        if "albumentations" in one["mean"]["ratio"]
    }
    if ratios:
        worst = min(ratios, key=lambda which: float(ratios[which]))
        beside = "albumentations, other pixels"
        harness.figure(f"{worst}, the worst beside", ratios[worst], beside=beside, aim="> 1", noise=noise)
    if grown := figures.get("growth"):
        slow, large = (max(grown, key=lambda name: float(grown[name][what])) for what in ("time", "megabytes"))
        beside = f"its time a pixel at 224 px; one bare pass over floats grows by {figures['growth of a pass']:.2f}"
        harness.figure(f"{slow} at 1080p, the worst growth", grown[slow]["time"], beside=beside, aim="<= 1.2", noise=noise)
        beside = "image and result"
        harness.figure(
            f"{large} at 1080p, the most memory", grown[large]["megabytes"], beside=beside, aim="<= 30", unit="MB"
        )


def growth(call: Callable[[Image, int], object], small: Sequence[Image], large: Image, rounds: int) -> float:
    """CPU time a pixel at the large size over that at 224, the mean over severities."""
    for severity in SEVERITIES:
        call(small[0], severity)
        call(large, severity)
    times: dict[str, list[float]] = {"small": [], "large": []}
    for _ in range(rounds):
        for which, pictures in (("small", small), ("large", [large])):
            spent = sum(seconds(call, pictures, severity) for severity in SEVERITIES)
            times[which].append(spent / (pictures[0].shape[0] * pictures[0].shape[1]))
    each = [large / small for small, large in zip(times["small"], times["large"], strict=True)]
    return round(statistics.median(each), 3)


def bare_pass() -> Callable[[Image, int], object]:
    """Adds one to the samples of a picture as floats, which fit into the cache at 224 pixels."""

    @functools.cache
    def floats(*shape: int) -> NDArray[np.float32]:
        return np.zeros(shape, np.float32)

    def call(picture: Image, severity: int) -> None:  # noqa: ARG001
        samples = floats(*picture.shape)
        np.add(samples, 1, out=samples)

    return call


def growths(names: Iterable[str], small: Sequence[Image], large: Image, rounds: int) -> dict[str, dict[str, float]]:
    """Growth of each corruption, and megabytes beyond image and result."""
    warnings.simplefilter("ignore")
    grown: dict[str, dict[str, float]] = {}
    for name in names:
        call = lambda picture, severity: sp.corrupt(picture, name, severity, key="growth")  # noqa: B023, E731
        grown[name] = {"time": growth(call, small, large, rounds), "megabytes": round(max(beyond(call, large)), 1)}
    return grown


def beyond(call: Callable[[Image, int], object], large: Image) -> list[float]:
    """Growth of the peak of resident memory in one call, less the result, in MB, by severity; 0 where it cannot be asked."""
    status, reset, extra = Path("/proc/self/status"), Path("/proc/self/clear_refs"), [0.0]
    if not reset.exists():
        return extra
    for severity in SEVERITIES:
        ctypes.CDLL(None).malloc_trim(0)  # else memory of earlier calls is kept and used again unseen
        reset.write_text("5")
        before = kilobytes(status, "VmRSS")
        call(large, severity)
        extra.append(max(0.0, (kilobytes(status, "VmHWM") - before) * 1024 / 1e6 - large.nbytes / 1e6))
    return extra


def kilobytes(status: Path, field: str) -> int:
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(field))


def harmonic(figures: dict[str, Any], who: str) -> float:
    return float(statistics.harmonic_mean([one["mean"]["rate"][who] for one in figures.values()]))


def page(figures: dict[str, Any]) -> str:
    """The table of a docs page."""
    corruptions, grown = figures["corruptions"], figures.get("growth", {})
    with_head = all(HEAD in one["mean"]["ratio"] for one in corruptions.values())
    head = " x its HEAD |" if with_head else ""
    lines = [
        f"Made on: {figures['machine']}.",
        "",
        f"| corruption | images a CPU-second | x imagecorruptions |{head} x albumentations (least of five severities) | A/A "
        "| 1080p, time a pixel | MB beyond |",
        f"|---|---|---|{'---|' if with_head else ''}---|---|---|---|",
    ]
    for name, one in corruptions.items():
        mean, control = one["mean"], one["mean"]["A/A"]
        other = "–"
        if "albumentations" in mean["ratio"]:
            least = min(one[str(severity)]["ratio"]["albumentations"][0] for severity in SEVERITIES)
            other = f"{mean['ratio']['albumentations'][0]:.2f} ({least:.2f})"
        growing = f"{grown[name]['time']:.2f} | {grown[name]['megabytes']:.0f}" if name in grown else "– | –"
        head = f" {mean['ratio'][HEAD][0]:,.1f} |" if with_head else ""
        lines.append(
            f"| {name} | {mean['rate']['ours']:,.0f} | {mean['ratio']['imagecorruptions'][0]:,.1f} |{head} {other} "
            f"| {control[1]:.2f} to {control[2]:.2f} | {growing} |"
        )
    ours, theirs = harmonic(corruptions, "ours"), harmonic(corruptions, "imagecorruptions")
    low, high = figures["jpeg"][1:]
    also = f" and {ours / harmonic(corruptions, HEAD):,.0f} times that of its HEAD" if with_head else ""
    lines += [
        "",
        f"Harmonic mean of the rates: {ours:,.0f} images a CPU-second, {ours / theirs:,.0f} times that of imagecorruptions "
        f"1.1.2{also}. JPEG compression runs at {figures['jpeg'][0]:.2f} ({low:.2f} to {high:.2f}) times the rate of "
        "libjpeg-turbo's bare encode and decode.",
    ]
    return "\n".join(lines)


def write_docs(figures: dict[str, Any], path: Path) -> None:
    text = path.read_text()
    head, tail = text.index(BEGINS) + len(BEGINS), text.index(ENDS)
    path.write_text(f"{text[:head]}\n\n{page(figures)}\n\n{text[tail:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the 19 corruptions beside the public packages.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--photos", type=int, default=5)
    parser.add_argument("--names", default=",".join([*sp.IMAGENET_C, *corruption_groups()["extra"]]))
    parser.add_argument(
        "--growth", action=argparse.BooleanOptionalAction, default=True, help="time a pixel and memory at 1920 x 1080 too"
    )
    head = os.environ.get("IMAGECORRUPTIONS_HEAD")
    parser.add_argument("--head", type=Path, default=head, help="a checkout of imagecorruptions to race too")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--table", type=Path, help="figures of an earlier run, instead of measuring")
    parser.add_argument("--docs", type=Path, help="the page whose table is written anew")
    options = parser.parse_args()
    figures = json.loads(options.table.read_text()) if options.table else run(options)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.docs:
        write_docs(figures, options.docs)


def run(options: argparse.Namespace) -> dict[str, Any]:
    cv2.setNumThreads(1)
    pictures, peers = photos(options.photos, 224, 224), {"imagecorruptions": imagecorruptions()}
    if options.head:
        peers[HEAD] = imagecorruptions(options.head)
    corruptions: dict[str, Any] = {}
    figures: dict[str, Any] = {
        "machine": harness.machine(),
        "limits": limits(pictures, options.rounds),
        "corruptions": corruptions,
    }
    print(figures["machine"], ", ".join(f"{name} {rate:,.0f}/s" for name, rate in figures["limits"].items()), sep="\n")
    for name in options.names.split(","):
        corruptions[name] = measured(name, pictures, peers, options.rounds)
        mean = corruptions[name]["mean"]
        beside = "   ".join(
            f"x {who} {value[0]:.2f} ({value[1]:.2f} to {value[2]:.2f})" for who, value in mean["ratio"].items()
        )
        by_severity = [
            f"{corruptions[name][str(severity)]['ratio'].get('albumentations', [np.nan])[0]:.2f}" for severity in SEVERITIES
        ]
        print(f"{name:18} {mean['rate']['ours']:8,.0f}   {beside}   A/A {mean['A/A']}   {' '.join(by_severity)}", flush=True)
    figures |= jpeg_shares(pictures, options.rounds)
    print(f"beside libjpeg-turbo's bare loop: JPEG {figures['jpeg']}, jpeg85 of noise {figures['jpeg85']}")
    ours, theirs = harmonic(corruptions, "ours"), harmonic(corruptions, "imagecorruptions")
    print(f"harmonic mean of rates {ours:,.0f}; imagecorruptions {theirs:,.1f}, x {ours / theirs:.1f}")
    if options.head:
        print(f"{HEAD} {harmonic(corruptions, HEAD):,.1f}, x {ours / harmonic(corruptions, HEAD):.1f}")
    figures["bare"] = bare_loops(pictures, options.rounds)
    print("beside bare loops:", figures["bare"])
    if options.growth:
        large = photos(3, *LARGE)[1]
        figures["growth"] = growths(corruptions, pictures, large, 5)
        for name, one in figures["growth"].items():
            print(f"{name:18} 1080p, time a pixel: x {one['time']:.2f}; {one['megabytes']:.0f} MB beyond the image")
        figures["growth of a pass"] = growth(bare_pass(), pictures, large, 5)
        print(f"a bare pass over floats: x {figures['growth of a pass']:.2f}")
    rows_of_the_page(figures)
    return figures


if __name__ == "__main__":
    main()
