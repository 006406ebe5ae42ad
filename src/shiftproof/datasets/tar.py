"""Images in ``.tar`` shards (WebDataset), read in place without unpacking."""

from __future__ import annotations

import errno
import itertools
import math
import os
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from glob import has_magic
from typing import BinaryIO, NamedTuple

from shiftproof.datasets.folder import Labelled, labelled
from shiftproof.datasets.image_list import LARGEST_FILE, EncodedImage, ImageList, broken_note, file_stamp, skip_broken
from shiftproof.datasets.labels import LabelKeys, label_keys, places_of
from shiftproof.datasets.layout import Example, layout
from shiftproof.datasets.listing import folder_name, group_by_folder, inner_root, is_image_name, visible_entries
from shiftproof.errors import BadInput
from shiftproof.files import parse_json
from shiftproof.places import absolute, files_like, is_file, is_folder, is_url, open_binary, size_of
from shiftproof.types import Classes, Fact, Sample

LABEL_FIELDS = ("label", "labels", "cls", "wnid", "class")
LARGEST_ANNOTATION = 2**24
"""Largest annotation of one image in bytes."""

MOST_SHARDS = 100_000


@dataclass(frozen=True, slots=True)
class TarImage(EncodedImage):
    """An image that is a member of an archive."""

    path: str  # or URL
    offset: int
    size: int
    version: str | None = None  # of the archive, at a URL

    def stamp(self) -> str:
        archive = file_stamp(self.path) if self.version is None else f"{self.path}\0{self.version}"
        return f"{archive}\0{self.offset}"

    def read(self) -> bytes:
        if self.size > LARGEST_FILE:
            raise OSError(errno.EFBIG, f"{self.size:,} bytes, more than the {LARGEST_FILE:,} that are read")
        if is_url(self.path):
            from shiftproof import remote

            data = remote.read(self.path, self.version, start=self.offset, size=self.size)
        else:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                data = file.read(self.size)
        if len(data) < self.size:
            raise OSError(f"{os.path.basename(self.path)} is shorter than when it was opened")
        return data


@dataclass(frozen=True)
class TarImages:
    """Finds an image by the place behind its id."""

    places: Mapping[str, TarImage]

    def __call__(self, image_id: str) -> TarImage:
        return self.places[image_id]


@dataclass
class _Sample:
    """Members that share a name up to the first dot: pictures and their annotations."""

    pictures: dict[str, TarImage] = field(default_factory=dict)
    labels: LabelKeys = ()
    facts: dict[str, Fact] = field(default_factory=dict)
    broken: str | None = None  # why the annotation cannot be read


@layout(
    holds="a `.tar` file, a folder of them, or `val-{000..006}.tar` (WebDataset)",
    labels="`.cls` or `.json` members, else the folders inside",
    endings=(".tar",),
    recognise=lambda folder: folder.holds_only_files and any(name.endswith(".tar") for name in folder.files),
    has_patterns=True,
    example=Example({"x.png": "", "x.cls": "1"}, "shard.tar"),
)
def open_tar(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """The images of a shard, a folder of shards, or a pattern such as ``val-{000..006}.tar``.

    Labels come from ``.cls`` and ``.json`` members of the same name, else from the folders inside the archive; other
    fields of the JSON are facts; an image whose annotation cannot be read is skipped. Ids are the members' names, behind
    the shard's name where there are several.
    """
    shards = shards_at(location)
    groups: dict[str, _Sample] = {}
    for shard in shards:
        prefix = f"{os.path.basename(shard)}/" if len(shards) > 1 else ""
        for member in members_of(shard):
            _add(groups, prefix, member)
    pictures = {image_id: place for group in groups.values() for image_id, place in group.pictures.items()}
    if not pictures:
        raise BadInput(f"no images in {location}")
    if any(group.labels or group.facts or group.broken for group in groups.values()):
        samples, found, notes = _annotated(groups.values(), classes)
    else:
        samples, found, notes = _in_folders(pictures, classes, prefixed=len(shards) > 1)
    kept = {sample.id for sample in samples}
    broken = {image: group.broken for group in groups.values() if group.broken for image in group.pictures if image in kept}
    find = skip_broken(TarImages(pictures), broken, len(kept))
    notes += broken_note(broken)
    count = f"{len(shards)} shards" if len(shards) > 1 else "one shard"
    title = name or folder_name(location).removesuffix(".tar")
    return ImageList(title, samples, found, find, notes=(f"read from {count} without unpacking", *notes))


def shards_at(location: str) -> list[str]:
    """The archives that a file, a folder or a pattern stands for, in order."""
    if is_folder(location):
        root = inner_root(location)
        shards = [os.path.join(root, file) for file in visible_entries(root)[1] if file.endswith(".tar")]
    elif is_file(location):
        shards = [location]
    else:
        patterns = expand_braces(location)
        shards = [path for pattern in patterns for path in (files_like(pattern) if has_magic(pattern) else ()) or [pattern]]
    missing = [path for path in shards if not is_file(path)]
    if missing or not shards:
        raise BadInput(f"no such shard: {missing[0] if missing else location}")
    shards = [absolute(shard) for shard in dict.fromkeys(shards)]
    if len({os.path.basename(shard) for shard in shards}) < len(shards):
        raise BadInput(f"two shards of {location} have the same file name; give each its own, since ids begin with it")
    return shards


def expand_braces(pattern: str) -> list[str]:
    """What a pattern with braces stands for.

    >>> expand_braces("val-{08..10}.tar"), expand_braces("{a,b}.tar")
    (['val-08.tar', 'val-09.tar', 'val-10.tar'], ['a.tar', 'b.tar'])
    """
    pieces = re.split(r"\{([^{}]*)\}", pattern)
    choices = [[piece] if place % 2 == 0 else _choices(piece) for place, piece in enumerate(pieces)]
    if math.prod(map(len, choices)) > MOST_SHARDS:
        raise BadInput(f"{pattern} stands for more than {MOST_SHARDS:,} shards")
    return ["".join(parts) for parts in itertools.product(*choices)]


def _choices(inside: str) -> list[str]:
    span = re.fullmatch(r"(\d{1,18})\.\.(\d{1,18})", inside)
    if span is None:
        return inside.split(",")
    first, last = int(span[1]), int(span[2])
    if last - first > MOST_SHARDS:
        raise BadInput(f"{{{inside}}} stands for more than {MOST_SHARDS:,} shards")
    return [str(number).zfill(len(span[1])) for number in range(first, last + 1)]


class Member(NamedTuple):
    """An ordinary file in an archive."""

    name: str
    place: TarImage
    read: Callable[[], bytes]  # while the archive is listed, so that one at a URL is passed through once


def members_of(shard: str) -> Iterator[Member]:
    """Every ordinary file in an archive; links, devices and holes have no bytes of their own here."""
    length = size_of(shard)
    version = None
    if is_url(shard):
        from shiftproof import remote

        version = remote.known(shard).version
    try:
        with open_binary(shard) as file, tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                if not member.isreg() or member.issparse():
                    continue
                if member.offset_data + member.size > length:
                    raise BadInput(f"{shard} breaks off inside {member.name}; fetch it again")
                place = TarImage(shard, member.offset_data, member.size, version)
                yield Member(member.name, place, partial(_part_of, file, place))
    except (tarfile.TarError, EOFError, ValueError) as problem:
        raise BadInput(f"{shard} is not a whole, uncompressed tar archive: {problem}") from problem


def _part_of(file: BinaryIO, place: TarImage) -> bytes:
    before = file.tell()
    file.seek(place.offset)
    data = file.read(place.size)
    file.seek(before)
    return data


def safe_id(member: str) -> str:
    """A member's name as a path that stays below whatever it is joined to.

    >>> safe_id("/../a/./../b.jpg")
    'a/b.jpg'
    """
    return "/".join(step for step in member.replace("\\", "/").split("/") if step not in ("", ".", ".."))


def _add(groups: dict[str, _Sample], prefix: str, member: Member) -> None:
    inner, place = safe_id(member.name), member.place
    folder, _, file = inner.rpartition("/")
    stem, _, ending = file.partition(".")
    if file.startswith("."):
        return
    group = groups.setdefault(f"{prefix}{folder}/{stem}", _Sample())
    if ending in ("cls", "json") and place.size > LARGEST_ANNOTATION:
        group.broken = f"{member.name} has {place.size:,} bytes, too many for the annotation of one image"
    elif ending == "cls":
        group.labels = label_keys(member.read().decode("utf-8", "replace"))
    elif ending == "json":
        _add_json(group, member.name, member.read())
    elif is_image_name(file):
        # a later member of the same name replaces the earlier one, as it would on disk
        group.pictures[prefix + inner] = place


def _add_json(group: _Sample, member: str, text: bytes) -> None:
    try:
        data = parse_json(text, member)
    except BadInput as problem:
        group.broken = str(problem)
        return
    if not isinstance(data, dict):
        group.broken = f"{member} should be a JSON object of labels and facts"
        return
    label = next((data[name] for name in LABEL_FIELDS if data.get(name) is not None), None)
    if label is not None:
        group.labels = label_keys(label)
    plain = (str, int, float, bool)
    group.facts = {name: fact for name, fact in data.items() if name not in LABEL_FIELDS and isinstance(fact, plain)}


def _annotated(groups: Iterable[_Sample], classes: Classes | None) -> Labelled:
    """One image a group, that of the shortest name: others are masks and the like."""
    with_picture = [group for group in groups if group.pictures]
    keys = [key for group in with_picture for key in group.labels]
    found, places = places_of(keys, classes)
    samples = [
        Sample(min(group.pictures, key=len), tuple(places[key] for key in group.labels), group.facts)
        for group in with_picture
    ]
    further = sum(len(group.pictures) - 1 for group in with_picture)
    notes = (f"further images of a sample, ignored: {further:,}",) if further else ()
    return sorted(samples, key=lambda sample: sample.id), found if keys else None, notes


def _in_folders(pictures: Iterable[str], classes: Classes | None, *, prefixed: bool) -> Labelled:
    """Every picture is an image, labelled by its folder inside the archive."""
    if not prefixed:
        return labelled(group_by_folder(pictures), classes)
    # the names of shards are no folders of the dataset: labels come from the names after them
    ids = sorted(pictures)
    inner, found, notes = labelled(group_by_folder({image_id.partition("/")[2] for image_id in ids}), classes)
    labels = {sample.id: sample.labels for sample in inner}
    return [Sample(image_id, labels[image_id.partition("/")[2]]) for image_id in ids], found, notes
