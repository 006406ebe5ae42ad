"""The image files below a folder, found without opening any of them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from shiftproof.datasets.classes import WNID
from shiftproof.datasets.records import OWN_FILES
from shiftproof.errors import BadInput, listed
from shiftproof.places import absolute, is_url

IMAGE_ENDINGS = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})

CLIP_ENDINGS = frozenset(
    {".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".m2ts", ".ogv", ".wmv", ".flv", ".3gp"}
)

SPLITS = frozenset({"train", "training", "val", "valid", "validation", "test", "testing", "dev"})
WRAPPERS = SPLITS | {"images", "image", "imgs", "photos", "pictures", "data"}
"""Names of a folder that holds a whole dataset rather than one class."""


@dataclass(frozen=True)
class Listing:
    """Image names by the folder they lie in; "" is the root, other folders are POSIX paths below it."""

    folders: Mapping[str, list[str]]
    others: tuple[str, ...] = ()  # files that are not images by their ending
    again: tuple[str, ...] = ()  # links to folders that were read already

    def ids(self) -> list[str]:
        """Every image as a path below the root, in order."""
        return sorted(f"{folder}/{name}" if folder else name for folder, names in self.folders.items() for name in names)

    def notes(self) -> tuple[str, ...]:
        """What was ignored, in sentences."""
        linked = f"links to folders that were read already, ignored: {listed(self.again, most=3)}"
        ending = f"files without the ending of an image, ignored: {listed(self.others, most=3)}"
        return (*((linked,) if self.again else ()), *((ending,) if self.others else ()))


class _Folder(NamedTuple):
    path: str
    below: str  # its path below the root; "" is the root
    real: str  # without links


def is_image_name(name: str) -> bool:
    """Whether a file name has the ending of an image; hidden files, such as ``._photo.jpg``, do not count.

    >>> is_image_name("Photo.JPEG"), is_image_name("._Photo.JPEG"), is_image_name("notes.txt")
    (True, False, False)
    """
    return os.path.splitext(name)[1].lower() in IMAGE_ENDINGS and not name.startswith(".")


def is_video_name(name: str) -> bool:
    """Whether a file is called as the videos of ImageNet-P are."""
    return name.lower().endswith(".mp4") and not name.startswith(".")


def is_clip_name(name: str) -> bool:
    """Whether a file name has the ending of a video."""
    return os.path.splitext(name)[1].lower() in CLIP_ENDINGS and not name.startswith(".")


def list_images(root: str) -> Listing:
    """Every image below a folder; links are followed, but no folder is read twice."""
    return list_files(root, is_image_name)


def list_files(root: str, belongs: Callable[[str], bool]) -> Listing:
    """Every file below a folder whose name `belongs`."""
    folders: dict[str, list[str]] = {}
    others: list[str] = []
    again: list[str] = []
    for folder, names in sorted(_walk(root, again)):
        images = sorted(name for name in names if belongs(name))
        if images:
            folders[folder] = images
        prefix, known = f"{folder}/" if folder else "", {*images, *OWN_FILES}
        others += [prefix + name for name in names if name not in known and not name.startswith(".")]
    return Listing(folders, tuple(sorted(others)), tuple(again))


def group_by_folder(ids: Iterable[str]) -> Listing:
    """The listing of images that are named by path but lie elsewhere, such as in an archive."""
    folders: dict[str, list[str]] = {}
    for image_id in sorted(ids):
        folder, _, name = image_id.rpartition("/")
        folders.setdefault(folder, []).append(name)
    return Listing(folders)


def subfolders(root: str) -> list[str]:
    """Names of the folders directly inside one, hidden ones left out."""
    return visible_entries(root)[0]


def visible_entries(root: str) -> tuple[list[str], list[str]]:
    """Names of the folders and of the files directly inside a folder, hidden ones left out."""
    if is_url(root):
        return _visible_away(root)
    folders: list[str] = []
    files: list[str] = []
    with _scan(root) as entries:
        for entry in entries:
            if _is_visible_folder(entry):
                folders.append(entry.name)
            elif _is_file(entry) and not entry.name.startswith("."):
                files.append(entry.name)
    return sorted(folders), sorted(files)


def _visible_away(url: str) -> tuple[list[str], list[str]]:
    from shiftproof import remote

    folders, files = remote.entries(url)
    return [name for name in folders if not _is_hidden(name)], [name for name in files if not name.startswith(".")]


def folder_name(location: str) -> str:
    """The name of a dataset that was given none."""
    return os.path.basename(absolute(location)) or location


def inner_root(location: str) -> str:
    """The folder that holds the dataset: one that contains nothing but another folder is stepped into."""
    root = absolute(location)
    entered: set[object] = set()
    # by what it is on the disk: resolving the path at every step would take longer the deeper it leads
    while (place := _on_disk(root)) not in entered:
        entered.add(place)
        folders, files = visible_entries(root)
        if len(folders) != 1 or any(_belongs_to_a_dataset(file) for file in files) or WNID.fullmatch(folders[0]):
            return root
        inner = os.path.join(root, folders[0])
        if folders[0].lower() not in WRAPPERS and not subfolders(inner):
            return root
        root = inner
    raise BadInput(f"{location} leads back to itself: {root} is a link to a folder above it")


def _on_disk(folder: str) -> object:
    if is_url(folder):
        return folder
    try:
        status = os.stat(folder)
    except OSError as problem:
        raise BadInput(f"{folder} cannot be listed: {problem.strerror}") from problem
    return status.st_dev, status.st_ino


def _belongs_to_a_dataset(file: str) -> bool:
    if is_image_name(file) or is_clip_name(file):
        return True
    return file.endswith((".npy", ".tar", "_annotations.txt")) or file.startswith("manifest.")


def _walk(root: str, again: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Names of the files in each folder: in those that lie below the root themselves, then in those that links lead to.

    Pipes and links to nothing are among the names, so that they are skipped later and not lost without a word. `again`
    takes the links to folders that were read before, or that hold the link.
    """
    if is_url(root):
        yield from _walk_away(root)
        return
    inside = [_Folder(root, "", os.path.realpath(root))]
    linked: deque[_Folder] = deque()
    entered: set[str] = set()
    while inside or linked:
        path, below, real = inside.pop() if inside else linked.popleft()
        if real in entered:
            again.append(below)
            continue
        entered.add(real)
        names: list[str] = []
        found: list[_Folder] = []
        with _scan(path) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if not _is_visible_folder(entry):
                    names += [] if _is_folder(entry) else [entry.name]
                    continue
                inner = f"{below}/{entry.name}" if below else entry.name
                if not entry.is_symlink():
                    found.append(_Folder(entry.path, inner, os.path.join(real, entry.name)))
                elif os.path.join(real, "").startswith(os.path.join(target := os.path.realpath(entry.path), "")):
                    again.append(inner)
                else:
                    linked.append(_Folder(entry.path, inner, target))
        inside += reversed(found)  # the first is taken first
        yield below, names


def _walk_away(url: str) -> Iterator[tuple[str, list[str]]]:
    """The same at a URL: in one listing, which has no links."""
    from shiftproof import remote

    return ((below, sorted(names)) for below, names in remote.walk(url) if not any(map(_is_hidden, below.split("/"))))


def _scan(path: str) -> os._ScandirIterator[str]:
    try:
        return os.scandir(path)
    except OSError as problem:
        raise BadInput(f"{path} cannot be listed: {problem.strerror}") from problem


def _is_visible_folder(entry: os.DirEntry[str]) -> bool:
    return _is_folder(entry) and not _is_hidden(entry.name)


def _is_hidden(folder: str) -> bool:
    return folder.startswith((".", "__MACOSX"))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False
