"""Files and folders wherever they lie: by path on this machine, by URL elsewhere.

A path goes to the operating system, as ever; a URL goes to `remote`, which is imported for the first one.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from shiftproof.errors import BadInput

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/{1,2}(?=[^/])")
"""How a URL begins; one slash is left of two where a path was made of it. One letter is a drive of Windows."""

ACCOUNTS = frozenset({"abfs", "abfss", "az", "adl", "wasb", "wasbs", "sftp", "ssh", "smb", "webhdfs"})
"""Protocols in which what stands before the @ is a container or a user, and no secret by itself."""

SECRET = re.compile(
    r"(?i)signature|credential|token|secret|passw|pwd|api[-_]?key|access[-_]?key|^sig$|^key$|^auth(orization)?$"
)
"""Names of parameters that hold one."""


def is_url(place: object) -> bool:
    """Whether a text is the URL of a file or folder elsewhere.

    >>> is_url("s3://bucket/photos"), is_url("photos"), is_url("C:/photos"), is_url("tar:photos.tar")
    (True, False, False, False)
    """
    text = place if isinstance(place, str) else str(place)
    return "://" in text and URL.match(text) is not None and not text.startswith("file://")


def given_place(place: str | os.PathLike[str]) -> str:
    """A place as the text that opens it; BadInput where it is a URL that holds a secret, which is not repeated."""
    text = os.fspath(place) if hasattr(place, "__fspath__") or isinstance(place, str) else str(place)
    if text.startswith("file://"):
        from urllib.request import url2pathname  # it loads ssl and email: a quarter of what help takes

        return url2pathname(urlsplit(text).path)
    if isinstance(place, Path) and ":" in text and (broken := URL.match(text)) and not os.path.exists(text):
        protocol = broken[0].partition(":")[0]
        raise BadInput(f"a Path cannot hold a URL: {protocol}:// lost a slash; give it as text, or as a UPath")
    check_url(text)
    return text


def check_url(text: str) -> None:
    """BadInput where a URL in a text holds a password, key or token, in a sentence that does not repeat it.

    >>> check_url("s3://bucket/photos?labels=none")
    >>> check_url("https://me:hush@example.org/photos.csv")
    Traceback (most recent call last):
    ...
    shiftproof.errors.BadInput: the URL at https://example.org holds a user name or password; keep it out of ...
    """
    if "://" not in (plain := unquote(text)):
        return
    for found in re.finditer(r"([A-Za-z][A-Za-z0-9+.-]+)://", plain):
        protocol, rest = found[1], plain[found.end() :]
        user, at, host = re.split(r"[/?#\s]", rest, maxsplit=1)[0].rpartition("@")
        said = re.split(r"[?#]", rest, maxsplit=1)[1:]
        names = [name for name, _ in parse_qsl("".join(said)) if SECRET.search(name)]
        what = f"the parameter {names[0]}, a secret" if names else ""
        if at and (":" in user or protocol.lower() not in ACCOUNTS):
            what = "a user name or password"
        if what:
            raise BadInput(
                f"the URL at {protocol}://{host} holds {what}; keep it out of the URL, since URLs are stored and shown: "
                "drivers read secrets from the environment (docs/storage.md)"
            )
        if "::" in rest:
            raise BadInput(f"{protocol}:// is followed by another URL; name one file or folder, without ::")


def as_path(place: str | os.PathLike[str]) -> Path:
    """The place as a path; at a URL as one that can be read and written in the same way, by `remote.RemotePath`."""
    text = given_place(place)
    if not is_url(text):
        return Path(text)
    from shiftproof.remote import RemotePath

    return cast(Path, RemotePath(text))


def absolute(place: str) -> str:
    """The place as it can be found from anywhere."""
    return place.rstrip("/") if is_url(place) else os.path.abspath(place)


def joined(folder: str, name: str) -> str:
    """The place of a file that is named relative to a folder, or by a path or URL of its own."""
    return name if is_url(name) else os.path.join(folder, name)


def is_folder(place: str) -> bool:
    return _remote().is_folder(place) if is_url(place) else os.path.isdir(place)


def is_file(place: str) -> bool:
    return _remote().is_file(place) if is_url(place) else os.path.isfile(place)


def exists(place: str) -> bool:
    return _remote().exists(place) if is_url(place) else os.path.exists(place)


def size_of(place: str) -> int:
    """Bytes of a file; OSError where there is none."""
    return int(_remote().size_of(place)) if is_url(place) else os.path.getsize(place)


def names_in(folder: str) -> list[str]:
    """Names of what lies directly in a folder."""
    if not is_url(folder):
        return os.listdir(folder)
    folders, files = _remote().entries(folder)
    return [*folders, *files]


def files_like(pattern: str) -> list[str]:
    """The files that a pattern with ``*`` stands for, in order."""
    return sorted(_remote().files_like(pattern) if is_url(pattern) else glob.glob(pattern))


def open_binary(place: str) -> BinaryIO:
    """A file, of which only what is read is fetched."""
    return cast(BinaryIO, _remote().open_binary(place)) if is_url(place) else open(place, "rb")


def local_file(place: str) -> str:
    """The path of a file on this machine: itself, or the copy in the cache."""
    return str(_remote().local_copy(place)) if is_url(place) else place


def local_path(place: str | os.PathLike[str], what: str) -> Path:
    """A path on this machine, for what is kept nowhere else; BadInput where it is a URL."""
    if is_url(text := given_place(place)):
        raise BadInput(f"{what} lies in a folder of this machine, not at a URL such as {text}; name a folder, and copy it")
    return Path(text)


def fetch_together(places: Iterable[str]) -> None:
    """Brings those of these files that lie at a URL into the cache, many at a time; paths cost nothing."""
    urls = [place for place in places if is_url(place)]
    if urls:
        _remote().fetch_together(urls, _remote().fetch_file)


def _remote() -> Any:
    from shiftproof import remote

    return remote
