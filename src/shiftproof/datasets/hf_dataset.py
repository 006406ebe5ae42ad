"""Datasets as Hugging Face keeps them: images in a column of Parquet or Arrow files, in a folder, at a URL or on the Hub."""

from __future__ import annotations

import dataclasses
import os
import re

from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.layout import Example, layout
from shiftproof.datasets.listing import SPLITS, folder_name, list_files
from shiftproof.errors import BadInput, listed
from shiftproof.places import absolute, is_file, is_folder, is_url
from shiftproof.types import Classes

ENDINGS = (".arrow", ".parquet")

SAVED = ("dataset_dict.json", "state.json")
"""Files of what `save_to_disk` writes: of several splits, and of one."""

SAME_SPLIT = {"training": "train", "val": "validation", "valid": "validation", "dev": "validation", "testing": "test"}

HUB, MADE = "hf://datasets/", "@~parquet"
"""Where datasets lie on the Hub, and what names the tables that it makes of those that come in other forms."""


@layout(
    holds="a folder that Hugging Face's `datasets` saved, `.arrow` files, `.parquet` files with a column of images, or "
    "a name on the Hub",
    labels="the column of class labels, or `label_column=`",
    endings=(".arrow",),
    recognise=lambda folder: (
        any(name in folder.files for name in SAVED)
        or (folder.holds_only_files and any(name.endswith(".parquet") for name in folder.files))
    ),
    example=Example({"data/test-00000-of-00001.parquet": "cat dog"}, options={"split": "test"}),
)
def open_hf_dataset(
    location: str,
    *,
    split: str | None = None,
    config: str | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    name: str | None = None,
    classes: Classes | None = None,
) -> ImageList:
    """The images in a column of Parquet or Arrow files, read a row group at a time.

    What is no folder or file is a name on the Hub. `split` is the folder or the beginning of the file names, such as
    ``test``; `config` a folder above it, where a dataset has several. Other columns of plain values are facts.
    """
    from shiftproof.datasets.image_tables import images_in_tables  # only where it is needed: it loads PyArrow

    root, files = _files(location, split, config)
    images = images_in_tables(files, root, image_column=image_column, label_column=label_column, classes=classes)
    own_name = name or folder_name(location.removesuffix(MADE))
    return dataclasses.replace(images, name=own_name, location=root if root.startswith(HUB) else None)


def _files(location: str, split: str | None, config: str | None) -> tuple[str, list[str]]:
    """The folder of the dataset, and those of its files that are of a split."""
    if is_file(location):
        return os.path.dirname(absolute(location)), [absolute(location)]
    root = absolute(location) if is_url(location) or is_folder(location) else f"{HUB}{location}"
    paths = _tables_below(root)
    if not paths and root.startswith(HUB):
        root = f"{root}{MADE}"
        paths = _tables_below(root)
    if not paths:
        raise BadInput(f"no {' or '.join(ENDINGS)} files below {location}")
    if config is not None:
        paths = [path for path in paths if config in path.split("/")]
    by_split: dict[str | None, list[str]] = {}
    for path in paths:
        by_split.setdefault(_split_of(path), []).append(path)
    known = listed(sorted(filter(None, by_split)))
    wanted = None if split is None else SAME_SPLIT.get(split.lower(), split.lower())
    if wanted is None and len(by_split) > 1:
        raise BadInput(f"{location} holds the splits {known}; name one with split=")
    chosen = paths if wanted is None else by_split.get(wanted, [] if any(by_split) else paths)
    if not chosen:
        raise BadInput(f"{location} has no split {split!r}; it has {known or 'none'}")
    return root, [f"{root}/{path}" for path in sorted(chosen)]


def _tables_below(root: str) -> list[str]:
    return list_files(root, lambda file: file.endswith(ENDINGS) and not file.startswith("cache-")).ids()


def _split_of(path: str) -> str | None:
    """The split that a path names in one of its steps.

    >>> _split_of("data/val-00000-of-00001.parquet"), _split_of("default/test/0000.parquet"), _split_of("a.parquet")
    ('validation', 'test', None)
    """
    for step in reversed(path.lower().split("/")):
        word = re.split(r"[-_.]", step)[0]
        if word in SPLITS:
            return SAME_SPLIT.get(word, word)
    return None
