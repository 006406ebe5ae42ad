"""Files at a URL, through fsspec: read by way of a cache on this machine, and written whole, by one put.

Object storage has no folders, links, renames or locks: a key appears whole or not at all. What a driver raises becomes an
error of ours: FileNotFoundError where there is no such file, OutOfReach where a server refuses or does not answer.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import posixpath
import re
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

import xxhash

from shiftproof.errors import BadInput, MissingExtra, OutOfReach, ShiftproofError
from shiftproof.files import cache_folder

try:
    from fsspec.core import url_to_fs
except ModuleNotFoundError:
    url_to_fs = None

EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "http": "http", "https": "http"}
"""Which extra brings the driver of which protocol."""

CACHE_GB = 10.0
"""Largest size of the cache of files, where SHIFTPROOF_CACHE_GB does not say another."""

CONCURRENT = 16
"""Requests at once: each waits for the network most of its time."""

PAGE = 2**20
"""Bytes that are fetched at once of a file that is read in part."""

TIMES = ("LastModified", "last_modified", "updated", "mtime", "created")
MARKS = ("ETag", "etag", "blob_id", *TIMES)
"""What drivers call the time of a file, and what changes with the file."""

Item = TypeVar("Item")


def _opened(url: str) -> tuple[Any, str]:
    """The file system that a URL belongs to, and its path there; MissingExtra where the driver is not installed."""
    protocol = url.partition("://")[0].lower()
    try:
        if url_to_fs is None:
            raise ImportError("fsspec is not installed")
        # what another machine writes must be seen: no listing is remembered by the driver
        found, path = url_to_fs(url, use_listings_cache=False)
    except ValueError as problem:
        raise BadInput(f"no driver is known for {protocol}:// URLs; there are s3, gs, az, http, hf and others") from problem
    except ImportError as problem:
        if protocol in EXTRAS:
            raise MissingExtra(f"reading {protocol}:// URLs", EXTRAS[protocol]) from problem
        raise BadInput(f"{protocol}:// URLs need a driver that is not installed: {problem}") from problem
    if ".." in path:
        path = posixpath.normpath(path)
    return found, path.rstrip("/")


@contextmanager
def _asking(url: str) -> Iterator[tuple[Any, str]]:
    """The file system of a URL and the path there; what its driver raises meanwhile becomes an error of ours."""
    driver = _opened(url)
    try:
        yield driver
    except (ShiftproofError, FileExistsError, IsADirectoryError, NotADirectoryError):
        raise
    except FileNotFoundError as problem:
        bucket = "bucket" in str(problem).lower() and "does not exist" in str(problem)
        raise FileNotFoundError(errno.ENOENT, f"no such {'bucket' if bucket else 'file'}", url) from problem
    except PermissionError as problem:
        raise OutOfReach(
            url, f"access is denied ({_told(problem)}); see which credentials the environment holds"
        ) from problem
    except NotImplementedError as problem:
        raise BadInput(f"{url}: {url.partition(':')[0]}:// URLs cannot be listed or written") from problem
    except (TypeError, AttributeError, NameError, AssertionError):
        raise  # a bug, here or in the driver
    except Exception as problem:  # drivers have no family of errors in common
        raise OutOfReach(url, _told(problem)) from problem


def _told(problem: Exception) -> str:
    """What a driver says, in a line, without what a URL in it might hold."""
    text = " ".join(str(problem).split()) or type(problem).__name__
    return re.sub(r"(://)[^/@\s]*@|\?\S+", r"\1", text)[:300]


# what is there


class Known(NamedTuple):
    """What a listing says of a file."""

    size: int
    version: str | None  # changes when the file does; None where the server does not tell


_known: dict[str, Known] = {}
"""What the last listing said of each file, so that it need not be asked of each."""


def _to_known(info: Mapping[str, Any]) -> Known:
    size = int(info.get("size") or 0)
    mark = next((mark for name in MARKS if (mark := info.get(name))), None)
    return Known(size, None if mark is None else f"{size}\0{mark}")


def known(url: str, *, fresh: bool = False) -> Known:
    """Size and version of a file, as the last listing or the server says; FileNotFoundError where there is none."""
    if fresh or url not in _known:
        with _asking(url) as (driver, path):
            info = driver.info(path)
        if info["type"] != "file":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), url)
        _known[url] = _to_known(info)
    return _known[url]


def listed_version(url: str) -> str | None:
    """The version of a file where a listing told it; the server is not asked."""
    found = _known.get(url)
    return None if found is None else found.version


def size_of(url: str) -> int:
    return known(url, fresh=True).size


def is_folder(url: str) -> bool:
    if url.startswith(("http://", "https://")) and posixpath.splitext(url)[1]:
        return False  # the driver would fetch the whole file to look for links in it
    if url.startswith(("http://", "https://")):
        with _asking(url) as (driver, path):
            return bool(driver.isdir(path))
    return _type_at(url) == "directory"


def is_file(url: str) -> bool:
    return _type_at(url) == "file"


def exists(url: str) -> bool:
    return _type_at(url) is not None


def _type_at(url: str) -> str | None:
    """What lies at a URL; None for nothing. Not by the drivers' own questions: those take an outage for a no."""
    try:
        with _asking(url) as (driver, path):
            info = driver.info(path)
    except FileNotFoundError:
        return None
    return str(info["type"])


def entries(url: str) -> tuple[list[str], list[str]]:
    """Names of the folders and of the files directly inside a folder, in order; none where there is no such folder."""
    url = url.rstrip("/")
    with _asking(url) as (driver, path):
        try:
            found = driver.ls(path, detail=True)
        except FileNotFoundError:
            return [], []
    folders, files = [], []
    for info in found:
        name = str(info["name"]).rstrip("/").rpartition("/")[2]
        if info["type"] == "directory":
            folders.append(name)
        elif str(info["name"]).rstrip("/") != path:  # a key that ends in a slash stands for the folder itself
            files.append(name)
            _known[f"{url}/{name}"] = _to_known(info)
    return sorted(folders), sorted(files)


def walk(url: str) -> Iterator[tuple[str, list[str]]]:
    """Every folder below a URL that holds files, as a path below it, with the names of its files."""
    url = url.rstrip("/")
    with _asking(url) as (driver, path):
        found = driver.find(path, detail=True)
    names: dict[str, list[str]] = {}
    for place, info in found.items():
        below = str(place)[len(path) :].lstrip("/")
        if below and not below.endswith("/"):
            folder, _, name = below.rpartition("/")
            names.setdefault(folder, []).append(name)
            _known[f"{url}/{below}"] = _to_known(info)
    yield from sorted(names.items())


def files_like(pattern: str) -> list[str]:
    """The files that a pattern with ``*`` in its last steps stands for."""
    with _asking(pattern) as (driver, path):
        found = driver.glob(path, detail=True)
    start = pattern[: len(pattern.rstrip("/")) - len(path)]
    urls = {start + str(place): info for place, info in found.items() if info["type"] == "file"}
    _known.update((url, _to_known(info)) for url, info in urls.items())
    return sorted(urls)


# reading


def read(url: str, version: str | None = None, *, most: int | None = None, start: int = 0, size: int | None = None) -> bytes:
    """The bytes of a file, or `size` of them from `start` on, by way of the cache where the server tells versions.

    OSError for more than `most` bytes; FileNotFoundError where there is no such file.
    """
    if version is None or most is not None:
        found = known(url, fresh=version is None)
        version = found.version if version is None else version
        if most is not None and found.size > most:
            raise OSError(errno.EFBIG, f"{found.size:,} bytes, more than the {most:,} that are read")
    key = None if version is None else _key(url, version, start, size)
    if key is not None and (data := _from_cache(key)) is not None:
        return data
    with _asking(url) as (driver, path):
        part = {} if size is None and not start else {"start": start, "end": None if size is None else start + size}
        fetched = driver.cat_file(path, **part)
    data = bytes(fetched)
    if key is not None:
        _into_cache(key, data)
    return data


def open_binary(url: str) -> BinaryIO:
    """A file, of which only what is read is fetched, a page at a time."""
    with _asking(url) as (driver, path):
        return cast(BinaryIO, driver.open(path, "rb", block_size=PAGE))


def local_copy(url: str) -> Path:
    """The path of a whole copy on this machine, under the same name; fetched where there is none of this version."""
    found = known(url, fresh=True)
    folder = _folder() / "copies" / _key(url, found.version or uuid.uuid4().hex)
    copy = folder / url.rpartition("/")[2]
    if copy.is_file() and copy.stat().st_size == found.size:
        with suppress(OSError):
            os.utime(copy)
        return copy
    unfinished = folder / f".{uuid.uuid4().hex}.unfinished"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _asking(url) as (driver, path):
            driver.get_file(path, str(unfinished))
        if unfinished.stat().st_size != found.size:
            raise OutOfReach(url, "the file broke off while it was fetched")
        unfinished.replace(copy)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    _make_room(found.size)
    return copy


def ahead(items: Iterable[Item], fetch: Callable[[Item], object]) -> Iterator[Item]:
    """The items in order, while the next ones are fetched into the cache."""
    with ThreadPoolExecutor(CONCURRENT) as threads:
        waiting: deque[tuple[Item, Future[None]]] = deque()
        for item in items:
            waiting.append((item, threads.submit(_tried, fetch, item)))
            if len(waiting) > CONCURRENT:
                first, fetched = waiting.popleft()
                fetched.result()
                yield first
        for first, fetched in waiting:
            fetched.result()
            yield first


def fetch_together(items: Iterable[Item], fetch: Callable[[Item], object]) -> None:
    """Fetches all of these into the cache, many at a time."""
    if cache_limit():
        deque(ahead(items, fetch), maxlen=0)


def fetch_file(url: str) -> None:
    """Brings a file into the cache."""
    read(url, listed_version(url))


def _tried(fetch: Callable[[Item], object], item: Item) -> None:
    with suppress(OSError):  # told where it is read
        fetch(item)


# the cache on this machine


def _folder() -> Path:
    return cache_folder() / "files"


def cache_limit() -> int:
    """Bytes that the cache of files may take; 0 for none."""
    text = os.environ.get("SHIFTPROOF_CACHE_GB", "")
    try:
        return int(float(text or CACHE_GB) * 1e9)
    except ValueError as problem:
        raise BadInput(f"SHIFTPROOF_CACHE_GB should be a number of gigabytes, got {text!r}") from problem


def _key(*parts: object) -> str:
    return xxhash.xxh3_128_hexdigest("\0".join(map(str, parts)).encode("utf-8", "surrogateescape"))


def _from_cache(key: str) -> bytes | None:
    """Cached bytes; None where there are none, or not as they were written."""
    path = _folder() / key[:2] / key
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if xxhash.xxh3_128_digest(data[16:]) != data[:16]:
        return None
    with suppress(OSError):
        os.utime(path)  # the files that were not used for longest go first
    return data[16:]


def _into_cache(key: str, data: bytes) -> None:
    if len(data) > cache_limit() // 4:
        return
    path = _folder() / key[:2] / key
    unfinished = path.with_name(f".{uuid.uuid4().hex}.unfinished")
    with suppress(OSError):  # a cache that cannot be written costs time, never a result
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            unfinished.write_bytes(xxhash.xxh3_128_digest(data) + data)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        _make_room(len(data))


_added: int | None = None
"""Bytes that this process has cached since it last looked at how many there are; None before it first did."""


def _make_room(added: int) -> None:
    """Removes the files that were not used for longest, where there are more than the limit; looks only now and then."""
    global _added
    limit = cache_limit()
    if _added is not None and _added + added < limit // 20:
        _added += added
        return
    _added = 0
    found = []
    for folder, _, names in os.walk(_folder()):
        for name in names:
            with suppress(OSError):
                status = os.stat(path := os.path.join(folder, name))
                found.append((status.st_mtime_ns, status.st_size, path))
    held = sum(size for _, size, _ in found)
    for _, size, path in sorted(found) if held > limit else ():
        if held <= limit * 0.9:
            break
        with suppress(OSError):
            os.unlink(path)
        held -= size


# writing


def write(url: str, data: bytes, *, new: bool = False) -> None:
    """Writes a file by one put: it is there whole or not at all. FileExistsError where it should be `new` and is not."""
    with _asking(url) as (driver, path):
        try:
            driver.pipe_file(path, data, **({"mode": "create"} if new else {}))
        except FileNotFoundError as problem:  # of what is written, only the bucket can be missing
            raise OutOfReach(url, "no such bucket; make it first") from problem
    _known.pop(url, None)


def remove(url: str) -> None:
    """Removes a file; FileNotFoundError where there is none."""
    with _asking(url) as (driver, path):
        driver.info(path)  # deleting what is not there is no error on object storage
        driver.rm_file(path)
    _known.pop(url, None)


def remove_all(url: str) -> None:
    """Removes everything below a folder."""
    with suppress(FileNotFoundError), _asking(url) as (driver, path):
        driver.rm(path, recursive=True)


class Status(NamedTuple):
    """What `stat` says of a file at a URL."""

    st_size: int
    st_mtime: float


class RemotePath:
    """A file or folder at a URL, with those methods of a Path that stores and reports need."""

    __slots__ = ("url",)

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"RemotePath({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and other.url == self.url

    def __hash__(self) -> int:
        return hash(self.url)

    def __lt__(self, other: RemotePath) -> bool:
        return self.url < other.url

    def __truediv__(self, below: object) -> RemotePath:
        return RemotePath(f"{self.url}/{below}")

    @property
    def name(self) -> str:
        start, _, name = self.url.rpartition("/")
        return "" if start.endswith("/") else name

    @property
    def suffix(self) -> str:
        return posixpath.splitext(self.name)[1]

    @property
    def stem(self) -> str:
        return posixpath.splitext(self.name)[0]

    @property
    def parent(self) -> RemotePath:
        return RemotePath(self.url.rpartition("/")[0]) if self.name else self

    @property
    def parents(self) -> list[RemotePath]:
        found, path = [], self
        while path.name:
            path = path.parent
            found.append(path)
        return found

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.url.split("/"))

    def with_name(self, name: str) -> RemotePath:
        return self.parent / name

    def with_suffix(self, suffix: str) -> RemotePath:
        return self.with_name(self.stem + suffix)

    def relative_to(self, folder: RemotePath) -> str:
        return self.url.removeprefix(f"{folder.url}/")

    def is_relative_to(self, folder: object) -> bool:
        return f"{self.url}/".startswith(f"{folder}/")

    def resolve(self) -> RemotePath:
        return self

    def exists(self) -> bool:
        return exists(self.url)

    def is_file(self) -> bool:
        return is_file(self.url)

    def is_dir(self) -> bool:
        return is_folder(self.url)

    def is_symlink(self) -> bool:
        return False

    def mkdir(self, **_: object) -> None:
        """Nothing: what is written below a folder makes it."""

    def stat(self) -> Status:
        with _asking(self.url) as (driver, path):
            info = driver.info(path)
        time = next((mark for name in TIMES if (mark := info.get(name))), 0.0)
        return Status(int(info.get("size") or 0), time.timestamp() if isinstance(time, datetime) else float(time))

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """Files and folders below this one that a pattern stands for; a star stands for one step, or a part of it."""
        first, _, rest = pattern.partition("/")
        if not any(sign in first for sign in "*?["):
            folders, files = ([first], []) if rest else entries(self.url)
        else:
            folders, files = entries(self.url)
        if rest:
            for folder in fnmatch.filter(folders, first):
                yield from (self / folder).glob(rest)
        else:
            yield from (self / name for name in fnmatch.filter([*folders, *files], first))

    def read_bytes(self) -> bytes:
        return read(self.url)

    def write_bytes(self, data: bytes) -> int:
        write(self.url, data)
        return len(data)

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            remove(self.url)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rename(self, target: RemotePath) -> RemotePath:
        """A copy under another name, and then no file under this one."""
        with _asking(self.url) as (driver, path):
            driver.cp_file(path, _opened(target.url)[1])
        remove(self.url)
        return target
