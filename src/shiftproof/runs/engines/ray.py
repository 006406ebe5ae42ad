"""Jobs on a Ray cluster: actors that hold the model get piece after piece, placed where Ray finds CPUs and GPUs for them.

An actor that dies, or whose node does, gives back what it had; another takes its place, and a node that joins gets actors
too. An actor that sees the store writes its rows there; others send them to this process, so the store need not be shared.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import ray
from ray import cloudpickle
from ray.exceptions import RayError

from shiftproof.errors import BadInput, listed
from shiftproof.options import EngineSettings
from shiftproof.runs.engines import (
    Cost,
    JobT,
    Opened,
    Opener,
    Rates,
    Spent,
    Tell,
    Terms,
    Unfit,
    Work,
    WorkFailed,
    failure_told,
    measured,
)
from shiftproof.runs.engines.queue import JobQueue, Piece
from shiftproof.runs.workers import portable

QUEUED = 2
"""Pieces that an actor has at a time: one in work, one waiting, so that it never idles."""

LOOK_SECONDS = 2.0
"""How often it is looked whether nodes joined."""


def open_ray(address: str, settings: EngineSettings, tell: Tell) -> RayEngine:
    """A Ray cluster: the one at an address, the one that runs on this machine, or else one of this machine alone."""
    return RayEngine(address, settings, tell)


class Actor:
    """A worker process on some node. What it gets and gives are bytes, so that versions are compared before all else."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._opened: Opened | None = None

    def begin(self, terms: bytes, work: bytes) -> tuple[str, Exception | None]:
        """Opens work; the node it is on, and why it cannot."""
        node = ray.get_runtime_context().get_node_id()
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        try:
            asked: Terms = pickle.loads(terms)  # noqa: S301 from our own driver
            asked.meet(self._cores)
            self._opened = pickle.loads(work).open()  # noqa: S301 the same
        except Exception as problem:  # whatever it is, it is told where the work came from
            return node, portable(problem)
        return node, None

    def do(self, jobs: bytes) -> tuple[Any, Spent]:
        """The answers to some jobs, or the error that one of them raised."""
        try:
            if self._opened is None:
                raise Unfit("it was given jobs before the work")
            return measured(self._opened, pickle.loads(jobs))  # noqa: S301 the same
        except Exception as problem:  # as above
            return portable(problem), Spent()


@dataclass(eq=False)
class Hand:
    """An actor, seen from here."""

    actor: Any
    node_id: str = ""
    node: str = ""
    since: float = 0.0  # when it was placed
    ready: bool = False  # whether it has opened the work
    pieces: deque[Piece] = field(default_factory=deque)  # oldest first


class RayEngine:
    """Actors on a Ray cluster, for all work of one job."""

    needs_shared_store = False

    def __init__(self, address: str, settings: EngineSettings, tell: Tell) -> None:
        self.openers: dict[str, Opener] = {}
        self.tell = tell
        self._address, self._settings = address, settings
        self._hands: list[Hand] = []
        self._awaited: dict[Any, tuple[Hand, Piece | None]] = {}  # answers to come; without a piece, whether it has begun
        self._unfit: dict[str, str] = {}  # nodes that are not used, and why
        self.cost = Cost()
        self._connected = self._ours = False
        self._looked = 0.0
        self._room = 0  # for so many actors
        self._barren = 0  # actors that died since the last piece was done

    def pickled(self, value: object) -> bytes:
        return bytes(cloudpickle.dumps(value))

    def each(self, work: Work, jobs: Iterable[JobT], *, total: int, status: Tell) -> Iterator[list[tuple[JobT, Any]]]:
        queue = JobQueue(work, jobs, total)
        if not queue:
            return
        self._connect()
        sent = (pickle.dumps(Terms.here()), self.pickled(work))
        rates = Rates()
        for hand in self._hands:
            self._begin(hand, sent)
        try:
            while queue or any(hand.pieces for hand in self._hands):
                self._hire(sent)
                self._hand_out(queue)
                for ref in self._ready():
                    if done := self._received(ref, queue, rates, work):
                        yield done
                if rates.due():
                    waiting = [(hand.node, hand.pieces[0].age) for hand in self._hands if hand.pieces]
                    status(rates.told(sum(hand.ready for hand in self._hands), waiting, len(queue.failed)))
        finally:
            self._awaited.clear()  # where the caller has enough, nobody waits for the rest
            for hand in self._hands:
                hand.pieces.clear()
        if queue.failed:
            raise failure_told(queue.failed)

    def close(self) -> None:
        if not self._connected:
            return
        for hand in list(self._hands):
            self._dismiss(hand)
        self.tell(self.cost.told("ray"))
        if self._ours:
            ray.shutdown()
        self._connected = False

    def _connect(self) -> None:
        if self._connected:
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._ours = not ray.is_initialized()
        if self._ours:
            where: dict[str, Any] = {"address": self._address} if self._address else {}
            try:
                ray.init(**where, log_to_driver=False, logging_level="ERROR", namespace="shiftproof")
            except (ConnectionError, RuntimeError, ValueError, TimeoutError) as problem:
                cluster = f"a Ray cluster at {self._address}" if self._address else "Ray"
                why = str(problem).strip().partition("\n")[0]
                raise BadInput(f"cannot connect to {cluster}: {why}; ray start --head prints its address") from problem
        self._connected = True
        if self._settings.dashboard:
            url = ray._private.worker.get_dashboard_url()
            self.tell(f"Ray's dashboard: http://{url}" if url else "this cluster has no dashboard: it needs 'ray[default]'")

    def _hire(self, sent: tuple[bytes, bytes]) -> None:
        """An actor for whatever nodes have room for and has none."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        nodes = [node for node in ray.nodes() if node["Alive"]]
        self._room = sum(self._room_on(node["Resources"]) for node in nodes if node["NodeID"] not in self._unfit)
        if self._room == 0 and self._unfit:
            raise Unfit(f"no node can be used; the last: {[*self._unfit.values()][-1]}")
        if self._room == 0:
            asked = f"{self._settings.worker_cpus} CPUs and {self._settings.worker_gpus:g} GPUs"
            have = listed(f"{_named(node)} has {_counted(node['Resources'])}" for node in nodes)
            raise BadInput(f"no node of the cluster has {asked} for a worker: {have}")
        while len(self._hands) < min(self._room, self._settings.max_workers or self._room):
            self._hands.append(Hand(self._hired()))
            self._begin(self._hands[-1], sent)

    def _room_on(self, resources: dict[str, float]) -> int:
        settings = self._settings
        by_cpu = resources.get("CPU", 0) // settings.worker_cpus
        return int(min(by_cpu, resources.get("GPU", 0) / settings.worker_gpus) if settings.worker_gpus else by_cpu)

    def _hired(self) -> Any:
        settings = self._settings
        # Ray places actors; it is only told where they would be of no use
        besides = {"label_selector": {"ray.io/node-id": f"!in({','.join(self._unfit)})"}} if self._unfit else {}
        placed = {"num_cpus": settings.worker_cpus, "num_gpus": settings.worker_gpus, "scheduling_strategy": "SPREAD"}
        return ray.remote(Actor).options(**placed, **besides, max_restarts=0).remote(settings.worker_cpus)

    def _begin(self, hand: Hand, sent: tuple[bytes, bytes]) -> None:
        hand.ready = False
        self._awaited[hand.actor.begin.remote(*sent)] = (hand, None)

    def _hand_out(self, queue: JobQueue) -> None:
        for depth in range(1, QUEUED + 1):
            for hand in self._hands:
                if hand.ready and len(hand.pieces) < depth and (piece := queue.take(len(self._hands))):
                    hand.pieces.append(piece)
                    self._awaited[hand.actor.do.remote(self.pickled(piece.jobs))] = (hand, piece)

    def _ready(self) -> list[Any]:
        """Answers that have come; waits a little for the first."""
        ready: list[Any]
        ready, others = ray.wait([*self._awaited], timeout=LOOK_SECONDS)
        if ready and others:
            ready += ray.wait(others, num_returns=len(others), timeout=0)[0]
        return ready

    def _received(self, ref: Any, queue: JobQueue, rates: Rates, work: Work) -> list[tuple[Any, Any]]:
        """The jobs that an answer is to; none where it tells something else."""
        if ref not in self._awaited:
            return []  # of an actor that has gone meanwhile
        hand, piece = self._awaited.pop(ref)
        try:
            answer = ray.get(ref)
        except RayError as lost:
            self._lost(hand, lost, queue)
            return []
        if piece is None:
            self._begun(hand, *answer)
            return []
        result, spent = answer
        fault = str(result) if isinstance(result, Unfit) else None
        if fault is None and isinstance(result, Exception):
            raise result
        if fault is None:
            faults = (work.fault(job, one) for job, one in zip(piece.jobs, result, strict=True))
            fault = next(filter(None, faults), None)
        if fault is not None:
            self._exclude(hand, fault, queue)
            return []
        hand.pieces.remove(piece)
        if hand.pieces:
            hand.pieces[0].sent = time.monotonic()
        queue.done(piece, spent.seconds)
        self._barren = 0
        self.cost.add(spent)
        rates.add(hand.node, piece.size)
        return list(zip(piece.jobs, result, strict=True))

    def _begun(self, hand: Hand, node_id: str, problem: Exception | None) -> None:
        if not hand.since:
            hand.since, hand.node_id, hand.node = time.monotonic(), node_id, _name_of(node_id)
            self.cost.nodes.add(node_id)
        if isinstance(problem, Unfit):
            self._exclude(hand, str(problem), None)
        elif problem is not None:
            raise problem
        hand.ready = True

    def _exclude(self, hand: Hand, why: str, queue: JobQueue | None) -> None:
        """No more work for a node that cannot do it."""
        self.tell(f"note: {hand.node} is not used: {why}")
        self._unfit[hand.node_id] = why
        for other in [one for one in self._hands if one.node_id == hand.node_id]:
            self._gone(other, None, queue)

    def _lost(self, hand: Hand, why: RayError, queue: JobQueue) -> None:
        """An actor that died, or cannot be reached: what it had is for others."""
        self._gone(hand, f"its worker died: {_first_line(why)}", queue)
        self._barren += 1
        if self._barren > max(3, 2 * self._room):
            raise WorkFailed(
                f"{self._barren} workers died one after the other and finished nothing ({_first_line(why)}); "
                "is shiftproof installed on every node, and memory enough for the model? What was committed is kept"
            )

    def _gone(self, hand: Hand, reason: str | None, queue: JobQueue | None) -> None:
        for place, piece in enumerate(hand.pieces):
            if queue is not None:
                queue.give_back(piece, reason if place == 0 else None)  # the others it had not begun
        hand.pieces.clear()
        self._dismiss(hand)
        self._looked = 0.0

    def _dismiss(self, hand: Hand) -> None:
        self._hands.remove(hand)
        self._awaited = {ref: whose for ref, whose in self._awaited.items() if whose[0] is not hand}
        if hand.since:
            seconds = time.monotonic() - hand.since
            self.cost.cpu_seconds += seconds * self._settings.worker_cpus
            self.cost.gpu_seconds += seconds * self._settings.worker_gpus
        with contextlib.suppress(RayError):
            ray.kill(hand.actor)


def _name_of(node_id: str) -> str:
    return next((_named(node) for node in ray.nodes() if node["NodeID"] == node_id), node_id[:8])


def _named(node: dict[str, Any]) -> str:
    """The address of a node, with some letters of its id where several have it."""
    address = str(node["NodeManagerAddress"])
    alike = sum(other["NodeManagerAddress"] == address for other in ray.nodes())
    return address if alike == 1 else f"{address}/{node['NodeID'][:4]}"


def _counted(resources: dict[str, float]) -> str:
    return f"{resources.get('CPU', 0):g} CPUs and {resources.get('GPU', 0):g} GPUs"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
