"""Batches to a GPU and results back, through page-locked memory that is locked once; copies are queued, not waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

AT_ONCE = 2
"""Batches in work at a time: while a GPU computes one, the next is copied to it and the rows of the last are stored."""

ALIGNMENT = 64
"""Bytes; each result begins at a multiple of it."""


class Event(Protocol):
    """A place in a queue of work."""

    def synchronize(self) -> None:
        """Waits until all work before it is done."""


class Accelerator(Protocol):
    """What is asked of a device that works through queues: all but `page_locked` return before the work is done."""

    def page_locked(self, size: int) -> Tensor:
        """Bytes of host memory that the device reads and writes by itself."""

    def upload(self, staged: Tensor) -> tuple[Tensor, Event]:
        """A copy on the device, and when it is there."""

    def wait_for(self, uploaded: Tensor, event: Any) -> None:
        """Lets what is computed from now on begin after the event."""

    def download(self, tensors: Sequence[Tensor], staged: Sequence[Tensor]) -> Event:
        """Copies results to the host once they are computed; the event says when that is."""


class Cuda:
    """A CUDA device; uploads have a stream of their own, beside the one that computes."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.uploads: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch has no types for it

    def page_locked(self, size: int) -> Tensor:
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def upload(self, staged: Tensor) -> tuple[Tensor, Event]:
        with torch.cuda.stream(self.uploads):
            tensor = staged.to(self.device, non_blocking=True)
        return tensor, self._event(self.uploads)

    def wait_for(self, uploaded: Tensor, event: Any) -> None:
        computing = torch.cuda.current_stream(self.device)
        computing.wait_event(event)
        # its memory belongs to the stream of uploads, which would give it to the next one while it is computed with
        uploaded.record_stream(computing)

    def download(self, tensors: Sequence[Tensor], staged: Sequence[Tensor]) -> Event:
        for tensor, place in zip(tensors, staged, strict=True):
            place.copy_(tensor, non_blocking=True)
        return self._event(torch.cuda.current_stream(self.device))

    @staticmethod
    def _event(stream: torch.cuda.Stream) -> Event:
        # waiting for it leaves the core to the workers
        event: torch.cuda.Event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]  # as above
        event.record(stream)
        return event


@dataclass
class Buffer:
    """Page-locked host memory, and the event after which it may be overwritten."""

    memory: Tensor | None = None
    in_use: Event | None = None

    def take(self, tensors: Sequence[Tensor], accelerator: Accelerator) -> list[Tensor]:
        """Room for tensors like these; the copy that last read the memory, or wrote it, is waited for."""
        if self.in_use is not None:
            self.in_use.synchronize()
            self.in_use = None
        starts, end = [], 0
        for tensor in tensors:
            starts.append(end)
            end += -(-tensor.nbytes // ALIGNMENT) * ALIGNMENT
        if self.memory is None or self.memory.nbytes < end:
            self.memory = accelerator.page_locked(end)
        return [
            self.memory[start : start + tensor.nbytes].view(tensor.dtype).view(tensor.shape)
            for start, tensor in zip(starts, tensors, strict=True)
        ]


class Uploaded(NamedTuple):
    """A batch on its way to the device."""

    tensor: Tensor
    event: Event


class Transfers:
    """Copies of batches to a device and of results from it, by a few buffers that are used again."""

    def __init__(self, accelerator: Accelerator) -> None:
        self._accelerator = accelerator
        self._up, self._down = (SimpleQueue[Buffer]() for _ in range(2))
        for _ in range(AT_ONCE):
            self._up.put(Buffer())
            self._down.put(Buffer())

    def upload(self, batch: Tensor) -> Uploaded:
        """Begins to copy a batch to the device; its own memory is free again when this returns."""
        with _taken(self._up) as buffer:
            (staged,) = buffer.take([batch], self._accelerator)
            staged.copy_(batch)
            tensor, event = self._accelerator.upload(staged)
            buffer.in_use = event
        return Uploaded(tensor, event)  # by now the buffer may be another thread's

    def arrived(self, uploaded: Uploaded) -> Tensor:
        """The batch on the device, for what is computed from now on."""
        self._accelerator.wait_for(*uploaded)
        return uploaded.tensor

    def begin_download(self, tensors: Sequence[Tensor]) -> Download:
        """Begins to copy results to the host, all of a batch together."""
        buffer = self._down.get()
        try:
            staged = buffer.take(tensors, self._accelerator)
            buffer.in_use = self._accelerator.download(tensors, staged)
        except BaseException:
            self._down.put(buffer)
            raise
        return Download(staged, buffer, self._down)


class Download(NamedTuple):
    """Results on their way to the host."""

    staged: Sequence[Tensor]
    buffer: Buffer
    free: SimpleQueue[Buffer]

    def tensors(self) -> list[Tensor]:
        """The results on the host, in memory of their own; waited for, once."""
        try:
            if self.buffer.in_use is not None:
                self.buffer.in_use.synchronize()
            return [one.clone() for one in self.staged]
        finally:
            self.free.put(self.buffer)


def transfers_of(device: torch.device) -> Transfers | None:
    """How batches reach a device; None where it shares the host's memory, or waits for each copy."""
    return Transfers(Cuda(device)) if device.type == "cuda" else None


@contextmanager
def tensor_float(device: torch.device, allowed: bool) -> Iterator[None]:
    """Whether float32 products may be rounded to TensorFloat-32; torch itself lets convolutions on CUDA do so."""
    if device.type != "cuda":
        yield
        return
    places: tuple[Any, ...] = (torch.backends.cudnn, torch.backends.cuda.matmul)
    before = [place.allow_tf32 for place in places]
    try:
        for place in places:
            place.allow_tf32 = allowed
        yield
    finally:
        for place, was in zip(places, before, strict=True):
            place.allow_tf32 = was


@contextmanager
def _taken(free: SimpleQueue[Buffer]) -> Iterator[Buffer]:
    buffer = free.get()
    try:
        yield buffer
    finally:
        free.put(buffer)
