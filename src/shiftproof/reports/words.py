"""Numbers in the words and figures of a report; nothing is computed here beyond rounding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from shiftproof.catalog import CORRUPTIONS, PERTURBATIONS
from shiftproof.metrics.wording import GAP


def spoken(name: str) -> str:
    """A name of the catalog as people say it.

    >>> spoken("jpeg_compression"), spoken("fog")
    ('JPEG compression', 'fog')
    """
    for registry in (CORRUPTIONS, PERTURBATIONS):
        if name in registry:
            return str(registry.load(name).title)
    return name.replace("_", " ")


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
    return f"{per_hundred(value)} of 100"


def per_hundred(value: float) -> str:
    """How many of a hundred a share is.

    >>> per_hundred(0.887), per_hundred(0.998), per_hundred(0.0)
    ('About 89', 'More than 99', 'None')
    """
    if value in (0.0, 1.0):
        return "All" if value else "None"
    whole = round(100 * value)
    return "More than 99" if whole == 100 else "Fewer than 1" if whole == 0 else f"About {whole}"
