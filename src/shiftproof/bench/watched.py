"""Watching at the bench: photos or scores go through a guard into a log, and the log becomes a page."""

from __future__ import annotations

import csv
import dataclasses
import io
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shiftproof.bench.steps import Bench, Tell
from shiftproof.datasets.image_list import image_opener
from shiftproof.datasets.subsets import View
from shiftproof.errors import BadInput
from shiftproof.files import alone, parse_json, read_regular
from shiftproof.options import PredictionSettings
from shiftproof.reports.build import save_report
from shiftproof.studies.guard.findings import results_of
from shiftproof.studies.guard.guard import GRAPH, Guard, checked_file
from shiftproof.studies.guard.options import WatchOptions
from shiftproof.studies.guard.watching import PAGE, Observation, Watch, WatchLog, observed, scores_in
from shiftproof.types import Classifier, Dataset

if TYPE_CHECKING:
    from shiftproof.runs.predict import Progress

STDIN = "-"
SCORES = (".csv", ".jsonl", ".npy")
END = "end"
LEFT = (
    "the last row of {} may still be being written, and is left for the next time; if it is whole, end it with a line break"
)
AT_ONCE = 256
"""Images that are judged and written to the log together."""


def is_scores(source: str) -> bool:
    """Whether a source is a file of scores, or standard input, and no photos.

    >>> is_scores("scores.csv"), is_scores("-"), is_scores("photos/")
    (True, True, False)
    """
    return source == STDIN or (source.lower().endswith(SCORES) and not Path(source).is_dir())


def scores_from(source: str, guard: Guard, tell: Tell) -> Iterator[Observation]:
    """Scores of a CSV file or of JSON lines with a column ``ood_score``, of a NumPy file, or as JSON lines from stdin.

    Of a file that is still being written, a last row that may be half there is left for another time, and that is told.
    """
    if source == STDIN:
        yield from scores_in(
            (parse_json(line, "a line of standard input") for line in sys.stdin if line.strip()), guard, source
        )
        return
    path = Path(source)
    try:
        data = read_regular(path)
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror or problem}") from problem
    rows: Iterable[Any]
    if path.suffix.lower() == ".npy":
        try:
            rows = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False).tolist()
        except (ValueError, EOFError, OSError, MemoryError) as problem:
            raise BadInput(f"{path} is no array of scores: {problem}") from problem
    else:
        rows = (_csv_rows if path.suffix.lower() == ".csv" else _json_rows)(data, path, tell)
    if not isinstance(rows, Iterable):
        raise BadInput(f"{path} should hold a row of scores")
    yield from scores_in(rows, guard, str(path))


def _csv_rows(data: bytes, path: Path, tell: Tell) -> Iterator[dict[str | None, str | None]]:
    """Rows that have come to their end: one without a line break could hold half a number."""
    ended, begun = _ended(data)
    # the row added here is read as itself, or as part of a quoted cell that is still open: the last is never the file's
    rows = csv.reader(io.StringIO(_text(ended, path) + END, newline=""))
    header: list[str] = []
    last: list[str] = []
    try:
        for row in rows:
            if last and header:
                yield dict(zip_longest(header, last))
            header, last = header or last, row
    except csv.Error as problem:
        raise BadInput(f"{path} is no table of scores, at line {rows.line_num:,}: {problem}") from problem
    if begun.strip() or last != [END]:
        tell(LEFT.format(path))


def _json_rows(data: bytes, path: Path, tell: Tell) -> Iterator[Any]:
    """Lines that have come to their end; an object is whole where it can be read, with a line break behind it or not."""
    ended, begun = _ended(data)
    for line in ended.splitlines():
        if line.strip():
            yield parse_json(line, str(path))
    if not begun.strip():
        return
    try:
        row = parse_json(begun, str(path))
    except BadInput:
        row = None
    if isinstance(row, dict):
        yield row
    else:
        tell(LEFT.format(path))


def _ended(data: bytes) -> tuple[bytes, bytes]:
    r"""The lines of a file that end in a line break, and what there is of one more.

    >>> _ended(b"-0.5\n-0.")
    (b'-0.5\n', b'-0.')
    """
    end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    return data[:end], data[end:]


def _text(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} is not text in UTF-8: {problem}") from problem


def watch_scores(log: WatchLog, source: str, done: int, tell: Tell) -> None:
    """Takes in the scores behind those of the log; from standard input all that come, one by one."""
    fresh = scores_from(source, log.watch.guard, tell)
    if source != STDIN:
        passed = sum(1 for _ in islice(fresh, done))
        if passed < done:
            raise BadInput(f"{source} has {passed:,} scores, and {done:,} were seen before; name another folder with -o")
    while some := list(islice(fresh, 1 if source == STDIN else AT_ONCE)):
        log.append(some)


def watch_photos(
    log: WatchLog,
    bench: Bench,
    model: Classifier,
    photos: Dataset,
    prediction: PredictionSettings,
    progress: Progress | None,
) -> int:
    """Takes in the photos that the log does not know, in the order of the dataset; how many could not be read.

    Predictions go into the store, so that what was predicted before a kill is not predicted again.
    """
    from shiftproof.runs.predict import predict_images

    guard, skipped = log.watch.guard, 0
    known = {one.id for one in log.watch.observations}
    fresh = (dataclasses.replace(sample, labels=()) for sample in photos.samples if sample.id not in known)
    keep = dataclasses.replace(prediction, keep="features" if guard.record.model.features else "logits")
    while some := list(islice(fresh, AT_ONCE)):
        found = predict_images(model, View(photos, None, some), store=bench.store, settings=keep, progress=progress)
        skipped += len(found.skipped_images)
        if not len(found):
            continue
        features = found.need_features() if guard.record.model.features else None
        log.append(observed(guard, found.ids, found.need_logits(), features))
    return skipped


def model_of(guard: Guard, bench: Bench, spec: str | None) -> Classifier:
    """The guarded network in the guard's own folder, which is data; another model only where its user names it."""
    record = guard.record
    if spec is not None:
        model: Classifier = bench.model(spec, classifier=True)
        if model.ref.fingerprint != record.model.fingerprint:
            raise BadInput(
                f"{spec} is not the model that the guard was made for ({record.model.name}, fingerprint "
                f"{record.model.fingerprint[:12]}); name that one with the same options, or write a guard for this one"
            )
        return model
    if guard.folder is None or record.model.scores is None or record.model.preprocessing is None:
        raise BadInput(f"the guard holds no {GRAPH}; name the model with --guarded-model, or watch a file of scores")
    from shiftproof.models import load_model

    checked_file(guard.folder, GRAPH, record)
    return load_model(
        f"onnx:{guard.folder / GRAPH}",
        name=record.model.name,
        preprocess=record.model.preprocessing,
        output=record.model.scores,
        features=record.model.features_tensor,
        gives=record.model.gives,
        device=bench.model_options.device,
        threads=bench.model_options.threads,
    )


def watch_stream(
    guard: Guard,
    source: str,
    folder: Path,
    options: WatchOptions,
    bench: Bench,
    prediction: PredictionSettings,
    progress: Progress | None,
) -> Watch:
    """Takes in what is new of a stream, and writes the page; `folder` holds what was seen before."""
    guard = guard if options.threshold is None else guard.at(options.threshold)
    watch = Watch(guard, false_alarm=options.false_alarm, window=options.window)
    scores = is_scores(source)
    photos = None if scores else bench.dataset(source)
    log = WatchLog(folder, watch)
    with alone(folder):
        done = log.resume()
        if photos is None:
            watch_scores(log, source, done, bench.tell)
        else:
            skipped = watch_photos(log, bench, model_of(guard, bench, options.guarded_model), photos, prediction, progress)
            if skipped:
                bench.tell(f"{skipped:,} photos could not be read and are not in the log")
        if len(watch):
            name = photos.ref.name if photos else "standard input" if source == STDIN else Path(source).name
            made = datetime.now(UTC).isoformat(timespec="seconds")
            results = results_of(watch, name, made=made, dataset=None if photos is None else photos.ref)
            opener = None if photos is None else image_opener([photos])
            save_report(folder / PAGE, results, open_image=opener, title=f"{guard.record.model.name} on {name}")
    return watch
