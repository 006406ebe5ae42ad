"""Numbers in the words and figures of a report; nothing is computed here beyond rounding."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime

from shiftproof.metrics.intervals import LEAST_CLUSTERS
from shiftproof.metrics.meanings import Unit, meaning_of
from shiftproof.studies.evidence import TOO_FEW, counted
from shiftproof.studies.results import Results
from shiftproof.types import Measurement

GAP = "\u202f"  # a narrow space that no line breaks at


def figure(value: float, unit: Unit) -> str:
    r"""A value as it is printed.

    >>> figure(0.8871, "share"), figure(-0.0213, "points"), figure(1.23456, "number"), figure(float("nan"), "share")
    ('88.7\u202f%', '−2.1 points', '1.235', 'not known')
    >>> figure(-1e-9, "share"), figure(-1e-9, "points")
    ('0.0\u202f%', '+0.0 points')
    """
    if not math.isfinite(value):
        return "not known"
    if unit == "share":
        return f"{100 * value:z.1f}{GAP}%"  # z: what rounds to zero has no sign
    if unit == "points":
        return f"{100 * value:+z.1f} points".replace("-", "−")
    if unit == "count":
        return count(round(value))
    return f"{value:.4g}".replace("-", "−")


def span(interval: tuple[float, float] | None, unit: Unit) -> str:
    r"""An interval as it is printed, the unit said once.

    >>> span((0.866, 0.906), "share")
    '86.6 to 90.6\u202f%'
    """
    if interval is None or not all(map(math.isfinite, interval)):
        return "no interval"
    low, high = (figure(bound, unit) for bound in interval)
    tail = {"share": f"{GAP}%", "points": " points"}.get(unit, "")
    return f"{low.removesuffix(tail)} to {high}"


def count(number: int) -> str:
    """A whole number with its thousands apart.

    >>> count(50000)
    '50,000'
    """
    return f"{number:,}"


def images(number: int) -> str:
    """A number of images.

    >>> images(1), images(1000)
    ('1 image', '1,000 images')
    """
    return "1 image" if number == 1 else f"{count(number)} images"


def cases(number: int) -> str:
    """A number of cases.

    >>> cases(1), cases(31)
    ('1 case', '31 cases')
    """
    return "1 case" if number == 1 else f"{count(number)} cases"


def spoken(name: str) -> str:
    """A name of the catalog as people say it.

    >>> spoken("jpeg_compression"), spoken("fog")
    ('JPEG compression', 'fog')
    """
    return name.replace("_", " ").replace("jpeg", "JPEG")


def in_a_line(title: str) -> str:
    """A title as it stands within a line; abbreviations stay.

    >>> in_a_line("Mean flip rate (mFR)"), in_a_line("AUROC"), in_a_line("E-AURC")
    ('mean flip rate (mFR)', 'AUROC', 'E-AURC')
    """
    first, *_ = title.split(" ")
    return title if first[1:].lower() != first[1:] else title[:1].lower() + title[1:]


def opened(subject: str, sentence: str) -> str:
    """A sentence that begins with whom it is about, where that needs saying.

    >>> opened("lite0", "All images"), opened("", "All images")
    ('lite0: all images', 'All images')
    """
    return f"{subject}: {sentence[:1].lower()}{sentence[1:]}" if subject else sentence


def names_or_count(names: Sequence[str], kind: str) -> str:
    """Up to two names, or how many there are.

    >>> names_or_count(["old", "new"], "models"), names_or_count(["a", "b", "c"], "models")
    ('old and new', '3 models')
    """
    return " and ".join(names) if 0 < len(names) < 3 else f"{len(names)} {kind}"


def kept_together(text: str) -> str:
    r"""A sentence written elsewhere, with no line break between a number and its sign.

    >>> kept_together("predicted crane 98 % (p < 0.001)").split(" ")
    ['predicted', 'crane', '98\u202f%', '(p\xa0<\xa00.001)']
    """
    return re.sub(r" ([<=]) (?=\d)", "\xa0\\1\xa0", re.sub(r"(?<=\d) %", f"{GAP}%", text))


def moment(iso_time: str) -> str:
    """A time as people write it, or the text itself where it is no time.

    >>> moment("2026-11-15T21:38:12+00:00")
    '2026-11-15 21:38 UTC'
    """
    try:
        return f"{datetime.fromisoformat(iso_time):%Y-%m-%d %H:%M %Z}".strip()
    except ValueError:
        return iso_time


def of_hundred(value: float) -> str:
    """A share as people say it.

    >>> of_hundred(0.887), of_hundred(0.998), of_hundred(0.002), of_hundred(0.0)
    ('About 89 of 100', 'More than 99 of 100', 'Fewer than 1 of 100', 'None of the')
    """
    if value in (0.0, 1.0):
        return "All" if value else "None of the"
    whole = round(100 * value)
    if whole == 100:
        return "More than 99 of 100"
    return "Fewer than 1 of 100" if whole == 0 else f"About {whole} of 100"


def evidence(found: Measurement) -> str:
    r"""What stands behind a number: its confidence interval, and how many images and cases.

    >>> evidence(Measurement("top1_accuracy", 0.9, {}, 50, {}, (0.78, 0.97)))
    '95\u202f% CI 78.0 to 97.0\u202f%, 50 images'
    >>> evidence(Measurement("top1_accuracy", 0.9, {}, 50, {}, None, clusters=2))
    'too few cases for an interval, 50 images in 2 cases'
    """
    bounds = span(found.interval, meaning_of(found.metric).unit)
    among = "" if found.clusters in (None, found.images) else f" in {cases(found.clusters or 0)}"
    if found.interval:
        bounds = f"95{GAP}% CI {bounds}"
    elif has_too_few(found):
        bounds = "too few cases for an interval"
    return f"{bounds}, {images(found.images)}{among}"


def has_too_few(found: Measurement) -> bool:
    """Whether a number goes without its interval because there are too few cases to tell one."""
    cases = found.images if found.clusters is None else found.clusters
    told = found.convention.get("interval", "").startswith(TOO_FEW)
    return found.interval is None and (cases < LEAST_CLUSTERS or told)


MEANING = f"A 95{GAP}% CI (confidence interval) is about other images like these: it holds the truth in 95 of 100 tests."


def unit_of_evidence(results: Results) -> str:
    """What a CI means, and what one case is, in a sentence each.

    >>> from shiftproof.studies.results import ImageSetCard
    >>> photos, clips = ImageSetCard("photos", "f", 40, 40), ImageSetCard("clips", "f", 210, 210, clusters=4, unit="clip")
    >>> unit_of_evidence(Results((), image_sets=(photos, clips))).rpartition("Unit of evidence: ")[2]
    'the image; in clips: 4 clips.'
    """
    others: dict[str, list[str]] = {}
    for card in results.image_sets:
        if card.clusters is not None:
            others.setdefault(counted(card.clusters, card.unit), []).append(card.name)
    told = [f"in {names_or_more(names)}: {cases}{' each' if len(names) > 1 else ''}" for cases, names in others.items()]
    by_image = not results.image_sets or any(card.clusters is None for card in results.image_sets)
    return f"{MEANING} Unit of evidence: {'; '.join([*(['the image'] if by_image else []), *told])}."


def names_or_more(names: Sequence[str]) -> str:
    """Up to two names, or the first and how many more.

    >>> names_or_more(["old", "new"]), names_or_more(["a", "b", "c"])
    ('old and new', 'a and 2 more')
    """
    return " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"
