"""From stored bytes to a model's inputs: the part of a run that worker processes do, which therefore imports little."""

from __future__ import annotations

from typing import NamedTuple

from shiftproof.digests import digest_of, stamp_of
from shiftproof.errors import UnreadableImage
from shiftproof.parallel import Arrays
from shiftproof.types import Condition, ImageSource, Preparation, Sample


class Job(NamedTuple):
    """Some images of a run, and what is to be done to them."""

    samples: list[Sample]
    sources: list[ImageSource]
    condition: Condition
    preparation: Preparation


class Read(NamedTuple):
    """What became of one image: its digest and stamp, and the reason where it cannot be used."""

    digest: str | None
    stamp: str | None
    reason: str | None


def prepare(job: Job) -> tuple[Arrays, list[Read]]:
    """The input of every readable image, in order, and what became of each image."""
    arrays: Arrays = []
    read: list[Read] = []
    for source in job.sources:
        digest = stamp = reason = None
        try:
            stamp = stamp_of(source)
            data = source.read()
            digest = digest_of(data)
            image = source.decode(data, decoder=job.preparation.decoder)
            arrays.append(job.preparation.from_image(image))
        except UnreadableImage as error:
            reason = str(error)
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
        read.append(Read(digest, stamp, reason))
    return arrays, read
