"""Tensors out of torch's checkpoint files, without torch and without running anything the file says.

Since torch 1.6 such a file is a zip archive: a pickle that describes the tensors, ``data.pkl``, and the bytes of each
storage beside it. Before, it was a row of pickles (magic number, protocol, system, the objects, the names of the storages)
and then the bytes of each storage. Either way the pickle is a small program. Here it is followed instruction by instruction,
and only by those that make tensors, dictionaries and plain values: nothing that it names is imported or called. What else
stands beside the weights in the checkpoint of a training, such as its settings, stays unread.
"""

from __future__ import annotations

import pickletools
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, listed
from shiftproof.files import readable_file, repeated

MAGIC = 0x1950A86A20F9469CFC6C
ZIP = b"PK\x03\x04"

WRAPPINGS = ("state_dict", "model_state_dict", "model")
"""Under which keys training scripts put the weights among other things."""

DTYPES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "<u2",  # numpy has none: read as bits and made float32, which holds them exactly
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "?",
    "ComplexFloatStorage": "<c8",
    "ComplexDoubleStorage": "<c16",
}

MOST_INSTRUCTIONS = 4 * 1024 * 1024
"""Bytes of pickle that are followed: some 15,000 tensors. The numbers themselves lie elsewhere."""

MOST_AXES = 64
MOST_ARGUMENTS = 8
"""Of what a pickle calls; those of a tensor are seven. A few bytes that name a long list must not have it copied."""

SAFER = "safer is an ONNX file (onnx:FILE), or .safetensors weights, by --weights FILE, for a torch:MODULE:FACTORY"
"""What to do instead of opening a file that can run code."""


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

    def readline(self) -> bytes: ...


class Named(NamedTuple):
    """Something that a pickle names; it stays a name."""

    module: str
    name: str


@dataclass(frozen=True)
class Unread:
    """Where a pickle has an object that is no tensor: nothing of it is made, whatever the pickle says to do with it."""

    what: str


@dataclass
class Storage:
    """A flat row of numbers that tensors look into; its bytes come after all the pickles."""

    kind: str
    length: int
    values: NDArray[Any] | None = None

    @property
    def size(self) -> int:
        """In bytes."""
        return self.length * np.dtype(DTYPES[self.kind]).itemsize

    def fill(self, file: IO[bytes]) -> None:
        """Take the numbers from where the file stands."""
        values = np.empty(self.length, DTYPES[self.kind])
        left = values.view(np.uint8)
        while left.size:
            data = file.read(min(left.size, 1 << 24))
            if not data:
                raise BadInput("it is cut short")
            left[: len(data)] = np.frombuffer(data, np.uint8)
            left = left[len(data) :]
        if self.kind == "BFloat16Storage":
            values = (values.astype("<u4") << 16).view("<f4")
        self.values = values


@dataclass(frozen=True)
class StoredTensor:
    """A view of a storage, as the file describes it."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def to_array(self) -> NDArray[Any]:
        """The numbers where they lie in the storage: a tensor that repeats few numbers takes no more memory than these."""
        values = self.storage.values
        last = self.offset + sum((size - 1) * step for size, step in zip(self.shape, self.strides, strict=True))
        if values is None or min((self.offset, *self.strides, *self.shape), default=0) < 0 or last >= max(len(values), 1):
            raise BadInput("a tensor reaches outside its storage")
        strides = tuple(step * values.itemsize for step in self.strides)
        return np.lib.stride_tricks.as_strided(values[self.offset :], self.shape, strides)


class Checkpoint(NamedTuple):
    """The tensors of a checkpoint by name, and what there is to say about the file."""

    arrays: dict[str, NDArray[Any]]
    notes: tuple[str, ...] = ()


def load_checkpoint(path: Path) -> Checkpoint:
    """The tensors of a checkpoint; common wrappings are taken off, what is no tensor is left out.

    Other Python objects may stand beside a wrapped state_dict; in it, or without one, they are refused.
    """
    readable_file(path)
    unread: list[Unread] = []
    try:
        with path.open("rb") as file:
            whole = (_from_archive if file.peek(4).startswith(ZIP) else _from_legacy)(file, unread)
        state, others = _unwrapped(whole)
        named = state.items() if isinstance(state, dict) else ()
        arrays = {_text(name): value.to_array() for name, value in named if isinstance(value, StoredTensor)}
    except BadInput as problem:
        raise BadInput(f"{path}: {problem}") from problem
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, struct.error) as problem:
        raise BadInput(f"{path} is damaged or no checkpoint of torch: {str(problem)[:200]}") from problem
    # of zipfile: a place before the file's beginning, a way of packing it does not know, an encrypted member
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as problem:
        raise BadInput(f"{path} is no whole zip archive, as checkpoints are, perhaps cut short: {problem}") from problem
    if not arrays:
        raise BadInput(f"{path} should hold a state_dict, names with their tensors")
    return Checkpoint(arrays, (*_told_unread(path, unread), *_told_others(path, others)))


def _unwrapped(objects: Any) -> tuple[Any, list[str]]:
    """The state_dict among what a training keeps, and other keys under which there is one with the same names."""
    others: list[str] = []
    for key in WRAPPINGS:
        if isinstance(objects, dict) and isinstance(objects.get(key), dict):
            outer, objects = objects, objects[key]
            alike = (name for name, value in outer.items() if isinstance(value, dict) and value.keys() >= objects.keys())
            others += [name for name in alike if isinstance(name, str) and name.isprintable() and name != key]
    return objects, others


def _refuse_unread(objects: Any, unread: list[Unread]) -> None:
    """Nothing where all that is unread stands beside the weights, else BadInput."""
    state, _ = _unwrapped(objects)
    if unread and (state is objects or any(isinstance(value, Unread) for value in state.values())):
        raise _refusal(unread[0].what)


def _told_unread(path: Path, unread: list[Unread]) -> tuple[str, ...]:
    names = listed(dict.fromkeys(one.what for one in unread), most=3)
    return (f"{path.name} holds Python objects beside its weights, which are not read: {names}",) if unread else ()


def _told_others(path: Path, others: list[str]) -> tuple[str, ...]:
    return (f"{path.name} holds these weights also as {listed(others, most=3)}, which are not used",) if others else ()


def _from_archive(file: IO[bytes], unread: list[Unread]) -> Any:
    """What the zip archive of a checkpoint holds; its storages are filled."""
    storages: dict[str, Storage] = {}
    with zipfile.ZipFile(file) as archive:
        found = [name for name in archive.namelist() if name.rpartition("/")[2] == "data.pkl" and name.count("/") <= 1]
        if len(found) != 1:
            raise BadInput(f"a checkpoint's archive should hold one data.pkl, got {len(found)}")
        if twice := repeated(archive.namelist()):  # each reader of such an archive takes another of them
            raise BadInput(f"its archive holds {twice[:100]!r} twice")
        folder = found[0].removesuffix("data.pkl")
        if f"{folder}byteorder" in archive.namelist() and _member(archive, f"{folder}byteorder", 16) != b"little":
            raise BadInput("the checkpoint was written on a big-endian machine")
        objects = _followed(BytesIO(_member(archive, found[0], MOST_INSTRUCTIONS)), storages, unread)
        _refuse_unread(objects, unread)
        room = file.seek(0, 2)  # members that share bytes could come to more than the file
        for key, storage in storages.items():
            info, room = archive.getinfo(f"{folder}data/{key}"), room - storage.size
            if info.file_size != storage.size or info.compress_type != zipfile.ZIP_STORED or room < 0:
                raise BadInput(f"data/{key} should be {storage.size:,} bytes as they are, as torch.save stores them")
            with archive.open(info) as part:
                storage.fill(part)
                part.read(1)  # at its end the member's checksum is verified
    return objects


def _member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    if archive.getinfo(name).compress_type != zipfile.ZIP_STORED:
        raise BadInput(f"{name} is compressed, which torch.save never does")
    with archive.open(name) as part:
        data = part.read(most + 1)
    if len(data) > most:
        raise BadInput(f"{name} is larger than {most:,} bytes")
    return data


def _from_legacy(file: IO[bytes], unread: list[Unread]) -> Any:
    """What the row of pickles of an older checkpoint holds; its storages are filled."""
    start = file.read(24)
    file.seek(0)
    storages: dict[str, Storage] = {}
    try:
        begins_well = _followed(_Limited(file, 100), storages, []) == MAGIC
    except (ValueError, IndexError, KeyError, TypeError, BadInput):
        begins_well = False
    if not begins_well:
        raise BadInput(
            f"not a checkpoint of torch: it begins with {start!r}; weights are .safetensors or what torch.save wrote"
        )
    _followed(_Limited(file), storages, unread)  # the protocol
    system = _followed(_Limited(file), storages, unread)
    if not system["little_endian"]:
        raise BadInput("the checkpoint was written on a big-endian machine")
    objects = _followed(_Limited(file), storages, unread)
    _refuse_unread(objects, unread)
    keys = _followed(_Limited(file), storages, unread)
    place, end = file.tell(), file.seek(0, 2)
    file.seek(place)
    for key in keys:
        storage = storages[_text(key)]
        (length,) = struct.unpack("<q", file.read(8))
        if length != storage.length or storage.size > end - file.tell():
            raise BadInput("it is cut short")
        storage.fill(file)
    return objects


class _Limited:
    """A file of which one pickle is read, and no more than so many bytes."""

    def __init__(self, file: IO[bytes], most: int = MOST_INSTRUCTIONS) -> None:
        self.file, self.left = file, most

    def read(self, size: int, /) -> bytes:
        if size > self.left:
            raise ValueError("its pickle is too long")
        self.left -= size
        return self.file.read(size)

    def readline(self) -> bytes:
        line = self.file.readline(self.left)
        self.left -= len(line)
        return line


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *more: Any) -> StoredTensor:
    if any(more[2:]):  # behind the gradient and its hooks: that the numbers are to be negated or conjugated
        raise BadInput(
            "a tensor is stored with other signs than it has; save a copy of it, with .resolve_neg().resolve_conj()"
        )
    if not all(isinstance(sizes, tuple) and len(sizes) <= MOST_AXES for sizes in (shape, strides)):
        raise BadInput("a tensor has no shape, or too many axes")
    if not isinstance(storage, Storage) or not all(type(size) is int for size in (offset, *shape, *strides)):
        raise BadInput("a tensor is not described by whole numbers")
    return StoredTensor(storage, offset, shape, strides)


def _dictionary(pairs: Any = None) -> dict[Any, Any]:
    if pairs is None:
        return {}
    if not isinstance(pairs, list):
        raise _refusal(f"a dictionary made of {type(pairs).__name__}")
    made = {_key(key): value for key, value in pairs}
    pairs.clear()  # it is used once; a few bytes that name it again must not copy it again
    return made


MAKERS: Mapping[Named, Callable[..., Any]] = {
    Named("collections", "OrderedDict"): _dictionary,
    Named("torch._utils", "_rebuild_tensor_v2"): _tensor,
    Named("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
    Named("torch", "Size"): lambda sizes: sizes,
}
"""What stands here for the few functions that a pickle of tensors calls."""

STORAGES = {Named("torch", kind) for kind in DTYPES}

NUMBERS_AND_TEXT = {
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
OTHERS = {
    *("PROTO", "FRAME", "STOP", "MARK", "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET", "TUPLE", "LIST"),
    *("EMPTY_DICT", "EMPTY_LIST", "SETITEM", "SETITEMS", "APPEND", "APPENDS", "DICT"),
    *("GLOBAL", "STACK_GLOBAL", "REDUCE", "NEWOBJ", "BINPERSID", "BUILD"),
}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


FOLLOWED = NUMBERS_AND_TEXT | OTHERS | CONSTANTS.keys() | TUPLES.keys()
INSTRUCTIONS = {instruction.code.encode("latin-1"): instruction for instruction in pickletools.opcodes}


def _instructions(file: Readable) -> Iterator[tuple[str, Any]]:
    """The instructions of a pickle with their arguments; BadInput at the first that no pickle of tensors has."""
    name = ""
    while name != "STOP":
        code = file.read(1)
        if not code:
            raise BadInput("it is cut short")
        instruction = INSTRUCTIONS[code]
        name = instruction.name
        if name not in FOLLOWED:
            raise _refusal(f"the pickle instruction {name}")
        if name == "GLOBAL":
            yield name, [file.readline().decode().removesuffix("\n") for _ in ("module", "name")]
        else:
            yield name, instruction.arg and instruction.arg.reader(file)  # type: ignore[arg-type]  # it only reads


def _followed(file: Readable, storages: dict[str, Storage], unread: list[Unread]) -> Any:
    """What a pickle describes, once all its instructions are followed; what it describes otherwise is added to `unread`."""
    stack: list[Any] = []
    below: list[list[Any]] = []  # what was on the stack when a mark was set
    memo: dict[int, Any] = {}
    for name, argument in _instructions(file):
        if name in NUMBERS_AND_TEXT:
            stack.append(argument)
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name in TUPLES:
            count = TUPLES[name]
            if count > len(stack):
                raise IndexError("a pickle takes more than it put down")
            stack[len(stack) - count :] = [tuple(stack[len(stack) - count :])]
        elif name == "MARK":
            below.append(stack)
            stack = []
        elif name in ("TUPLE", "LIST"):
            made = tuple(stack) if name == "TUPLE" else stack
            stack = below.pop()
            stack.append(made)
        elif name in ("EMPTY_DICT", "EMPTY_LIST"):
            stack.append({} if name == "EMPTY_DICT" else [])
        elif name in ("SETITEMS", "APPENDS", "DICT"):
            items, stack = stack, below.pop()
            if name == "DICT":
                stack.append({})
            _put(stack[-1], items)
        elif name in ("SETITEM", "APPEND"):
            count = 2 if name == "SETITEM" else 1
            items = stack[-count:]
            del stack[-count:]
            _put(stack[-1], items)
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            names = argument or [stack.pop(-2), stack.pop()]
            if not all(isinstance(part, str) for part in names):
                raise _refusal("something that is not called by text")
            asked = Named(*names)
            known = asked in MAKERS or asked in STORAGES
            stack.append(asked if known else _noted(unread, repr(".".join(asked)[:100])))
        elif name in ("REDUCE", "NEWOBJ"):
            arguments, asked = stack.pop(), stack.pop()
            if isinstance(asked, Unread):
                stack.append(asked)
                continue
            if name == "NEWOBJ" or not isinstance(asked, Named) or asked not in MAKERS or not _few(arguments):
                raise _refusal(f"a call of {type(asked).__name__}")
            stack.append(MAKERS[asked](*arguments))
        elif name == "BINPERSID":
            saved = stack.pop()
            if not _few(saved):
                raise _refusal(f"a stored {type(saved).__name__}")
            stack.append(_storage(storages, *saved))
        elif name == "BUILD":
            stack.pop()  # notes of torch about its modules' versions
            if not isinstance(stack[-1], (dict, Unread)):
                raise _refusal(f"the inside of {type(stack[-1]).__name__}")
    return stack.pop()


def _put(into: Any, items: list[Any]) -> None:
    """Items into a list, or keys and values by turns into a dictionary."""
    if isinstance(into, list):
        into.extend(items)
    elif isinstance(into, dict):
        into.update(zip(map(_key, items[::2]), items[1::2], strict=True))
    elif not isinstance(into, Unread):
        raise _refusal(f"items of {type(into).__name__}")


def _noted(unread: list[Unread], what: str) -> Unread:
    unread.append(Unread(what))
    return unread[-1]


def _few(arguments: Any) -> bool:
    return isinstance(arguments, tuple) and len(arguments) <= MOST_ARGUMENTS


def _key(key: Any) -> Any:
    # the hash of a tuple nested deep enough ends the process, and numbers without limit can all have the same
    if not isinstance(key, (str, bytes)) and not (isinstance(key, int) and abs(key) < 2**31):
        raise _refusal(f"a key of type {type(key).__name__}")
    return key


def _storage(storages: dict[str, Storage], *saved: Any) -> Storage:
    what, asked, key, _location, length, *view = saved
    known = isinstance(asked, Named) and asked in STORAGES
    if what != "storage" or any(view) or not known or type(length) is not int or length < 0:
        raise _refusal("something stored that is no tensor")
    storage = storages.setdefault(_text(key), Storage(asked.name, length))
    if (storage.kind, storage.length) != (asked.name, length):
        raise BadInput(f"storage {key} is described in two ways")
    return storage


def _text(name: Any) -> str:
    """The name, if it is text that can be printed."""
    if not isinstance(name, str) or not name.isprintable():
        raise BadInput(f"tensors should be called by text, got {repr(name[:100]) if isinstance(name, str) else type(name)}")
    return name


def _refusal(what: str) -> BadInput:
    return BadInput(
        f"reading it asks for {what}: it holds pickled Python objects, which could run any code, and only tensors are read; "
        f"save its state_dict alone; {SAFER}"
    )
