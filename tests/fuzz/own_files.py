"""Models, and what shiftproof itself wrote and somebody sent on: stores, review projects, lines of the command."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from PIL import Image as Pillow

from fuzz.bench import Wrong
from fuzz.cases import ODD_TEXTS, Seed
from fuzz.documents import jsons
from fuzz.small_files import COCO, clip_bytes, files_made, photos, pixels, safetensors_seeds, zip_seeds
from shiftproof.errors import BadInput, StoreWarning
from shiftproof.types import Classes, Classifier, Dataset, Head, Seen
from small_tflite import tflite_bytes

if TYPE_CHECKING:
    from shiftproof.runs.records import Reached
    from shiftproof.runs.store import Store

# ---- models

FACTORY = (
    b"from torch import nn\ndef make():\n    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4))\n"
)


def _torch_file(*, _use_new_zipfile_serialization: bool = True, **beside: Any) -> bytes:
    """Weights; with what a training keeps beside them, wrapped and under a prefix as Lightning has them."""
    import torch
    from torch import nn

    state = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4)).state_dict()
    wrapped = {"state_dict": {f"model.{name}": tensor for name, tensor in state.items()}, **beside} if beside else state
    buffer = io.BytesIO()
    torch.save(wrapped, buffer, _use_new_zipfile_serialization=_use_new_zipfile_serialization)
    return buffer.getvalue()


def weight_seeds() -> list[Seed]:
    import torch
    from safetensors.numpy import save

    torch.manual_seed(0)
    tensors = {"2.weight": np.ones((4, 3), np.float32), "2.bias": np.zeros(4, np.float32)}
    files = {"factory.py": FACTORY}
    legacy = _torch_file(_use_new_zipfile_serialization=False)
    training = _torch_file(epoch=3, args=Namespace(rate=0.1))
    return [
        *zip_seeds("checkpoint", {**files, "weights.pth": _torch_file()}, "weights.pth"),
        *zip_seeds("training", {**files, "weights.ckpt": training}, "weights.ckpt"),
        Seed("legacy", {**files, "weights.pth": legacy}, "weights.pth"),
        *safetensors_seeds("safetensors", {**files, "weights.safetensors": save(tensors)}, "weights.safetensors"),
    ]


def read_weights(folder: Path) -> object:
    from shiftproof.models import load_model

    weights = next(folder.glob("weights.*"))
    return len(load_model(f"torch:{folder / 'factory.py'}:make", weights=str(weights), preprocess="size=8").ref.fingerprint)


def colour_network() -> bytes:
    from toys import save_colour_network

    return files_made(lambda folder: save_colour_network(folder / "model.onnx"))["model.onnx"]


def onnx_seeds() -> list[Seed]:
    import onnx

    named = onnx.load_from_string(colour_network())
    named.metadata_props.add(key="names", value="{0: 'blue', 1: 'green', 2: 'red'}")
    return [
        Seed("onnx", {"model.onnx": colour_network()}, "model.onnx"),
        Seed("onnx-names", {"model.onnx": named.SerializeToString()}, "model.onnx"),
    ]


def read_onnx(folder: Path) -> object:
    from shiftproof.models import load_model

    return len(load_model(f"onnx:{folder / 'model.onnx'}", preprocess="unit,size=16").ref.fingerprint)


def trained_seeds() -> list[Seed]:
    files = files_made(_small_training)
    several = {f"seed-0/{name}": data for name, data in files.items()}
    above = {"format": 1, "parts": ["seed-0"], "chosen": "seed-0", "why": "the only one"}
    alone = files_made(partial(_small_training, with_graph=False))
    return [
        Seed("trained", files, "training.json", jsons),
        Seed("trained-several", {**several, "training.json": json.dumps(above).encode()}, "training.json", jsons),
        Seed("trained-head", alone, "training.json", jsons),
        *safetensors_seeds("trained-weights", alone, "weights.safetensors"),
    ]


def _small_training(folder: Path, *, with_graph: bool = True) -> None:
    """A head on colours; without a graph it goes behind a file that lies beside it."""
    from shiftproof.models import load_model
    from shiftproof.training.trained import Record, Source, write_trained

    source, preprocessing = Source("colours.onnx", "0"), "unit,size=16"
    if not with_graph:
        (folder / "colours.onnx").write_bytes(colour_network())
        first = load_model(str(folder / "colours.onnx"), preprocess=preprocessing)
        source = Source("colours.onnx", first.ref.fingerprint, {"preprocess": preprocessing})
        preprocessing = str(first.preprocessing)
    record = Record(
        key="0",
        source=source,
        dataset={"name": "photos"},
        split={"training": 4, "validation": ["a.png"]},
        recipes=("linear-probe",),
        level="head",
        seed=0,
        options={},
        classes=Classes(("blue", "green", "red")),
        preprocessing=preprocessing,
        seen=Seen("photos", ("fog",)),
        accuracy={"clean": 1.0},
    )
    head = {"weight": np.eye(3, dtype=np.float32), "bias": np.zeros(3, np.float32)}
    write_trained(folder, record, head, _colour_graph() if with_graph else None)


def _colour_graph() -> bytes:
    from shiftproof.models.classifiers.onnx_head import with_head
    from shiftproof.models.loaded import NetworkGraph

    head = Head(np.eye(3, dtype=np.float32), np.zeros(3, np.float32))
    return with_head(NetworkGraph(colour_network, "scores", "features"), head, ["blue", "green", "red"])


def read_trained(folder: Path) -> object:
    """Opens the folder as a model and runs it, as a record, and as what a network is trained on from."""
    from shiftproof.models import load_model
    from shiftproof.options import ModelSettings
    from shiftproof.training import trained

    with contextlib.chdir(folder):
        model: Any = load_model(f"trained:{folder}")
        inputs = np.zeros((1, 3, 16, 16), np.float32)
        scores = model(inputs).scores.shape if model.preprocessing.size == (16, 16) else None
        record = trained.read_trained(folder)
        first = trained.architecture_of(str(folder), ModelSettings())
        return (
            len(model.ref.fingerprint),
            model.seen.augmentations,
            model.notes,
            scores,
            record and len(record.to_json()),
            first,
        )


def tflite_seeds() -> list[Seed]:
    how: dict[str, dict[str, Any]] = {
        "float": {"softmax": True, "normalisation": ([127.5], [127.5])},
        "quantised": {"dtype": "int8"},
        "labels": {"labels": {"labels.txt": "ant\nbee\ncat\ndog\neel"}},
    }
    return [Seed(name, {"model.tflite": tflite_bytes(**options)}, "model.tflite") for name, options in how.items()]


def read_tflite(folder: Path) -> object:
    """Loads the file, and runs it where LiteRT takes it."""
    from shiftproof.models import load_model

    model: Any = load_model(str(folder / "model.tflite"))
    size = model.preprocessing.size
    if size is None or max(size) > 64:
        return len(model.ref.fingerprint)
    inputs = model.preprocessing.from_picture(np.zeros((*size, 3), np.uint8))[None]
    return model(inputs, features=model.has_features).scores.shape


# ---- what shiftproof itself wrote, and somebody sent on


@cache
def store_files(*, with_network: bool = False) -> dict[str, bytes]:
    """Photos and what a model said of them; with a network, a file of it and its answers too."""
    from shiftproof import predict, run
    from shiftproof.datasets import open_dataset
    from shiftproof.models import load_model, wrap_model
    from shiftproof.runs.digests import digest_of
    from shiftproof.runs.store import Store
    from toys import COLOURS, colour_scores, save_colour_network

    def make(folder: Path) -> None:
        for number, (colour, rgb) in enumerate(COLOURS.items()):
            (folder / "photos" / colour).mkdir(parents=True)
            for copy in range(2):
                pixels = np.full((6, 6, 3), rgb, np.uint8) - np.uint8(7 * copy + number)
                Pillow.fromarray(pixels).save(folder / "photos" / colour / f"{copy}.png")
        model = wrap_model(
            lambda inputs: (colour_scores(inputs), np.asarray(inputs, np.float32).mean(axis=(2, 3))),
            name="colours",
            version="1",
            class_names=sorted(COLOURS),
            size=(4, 4),
            preprocess="squash,mean=0,std=1",
            has_features=True,
        )
        models: list[Classifier] = [model]
        if with_network:
            save_colour_network(folder / "model.onnx")
            models.append(load_model(str(folder / "model.onnx"), classes=sorted(COLOURS)))
        for asked in models:
            predict(asked, open_dataset(folder / "photos"), store=folder / "runs", keep="features", workers=1)
        one, other = (digest_of(path.read_bytes()) for path in sorted((folder / "photos" / "red").iterdir()))
        Store(folder / "runs").save_alike(open_dataset(folder / "photos").ref, [(one, other)])
        run(model, folder / "photos", studies=["accuracy"], store=folder / "runs")  # keeps in mind that it is whole
        with contextlib.closing(sqlite3.connect(folder / "runs" / "digests.sqlite", isolation_level=None)) as digests:
            digests.executescript("PRAGMA journal_mode=DELETE; PRAGMA page_size=512; VACUUM")

    return files_made(make)


def store_seeds() -> list[Seed]:
    files = store_files()
    own = ("rows/*.safetensors", "models/*/model.json", "rows/*/run.json", "duplicates/*", "models/*/profile-*.json")
    chunk, model, run, alike, profile = (next(name for name in files if fnmatch(name, f"runs/{pattern}")) for pattern in own)
    changes = {**files, "runs/changes.json": b'{"rename": {}}'}
    return [
        *safetensors_seeds("chunk", files, chunk),
        Seed("model", {**files, model: _without_checksum(files[model])}, model, jsons),
        Seed("model-with-checksum", files, model),
        Seed("run", files, run, jsons),
        Seed("changes", changes, "runs/changes.json", jsons),
        Seed("alike", files, alike),
        Seed("profile", files, profile),
        Seed("digests", files, "runs/digests.sqlite"),
    ]


def _without_checksum(data: bytes) -> bytes:
    """The file as older versions wrote it: any text in it counts."""
    return json.dumps({name: value for name, value in json.loads(data).items() if name != "checksum"}).encode()


def read_store(folder: Path) -> object:
    """The numbers that studies would see; other names or times may change unseen, other numbers may not."""
    from shiftproof.datasets import open_dataset
    from shiftproof.runs.load import load_predictions
    from shiftproof.runs.store import Store
    from shiftproof.runs.stored_models import stored_models
    from shiftproof.types import Run

    store, images = Store(folder / "runs"), open_dataset(folder / "photos")
    stored_models(store)
    models = store.models()
    if not models:
        raise BadInput("no models")
    predictions = load_predictions(Run(models[0].ref, images.ref), images, store=store, keep="features")
    assert predictions.logits is not None
    assert predictions.features is not None
    assert predictions.top5 is not None
    top5 = predictions.top5
    arrays = (predictions.labels, predictions.logits, predictions.features, top5.classes, top5.scores)
    return [predictions.gives, *(array.tobytes() for array in arrays), _alike(images, store), _reached(images, store)]


@contextlib.contextmanager
def _damage_refused(path: str) -> Iterator[None]:
    """BadInput where the store says that it set a file aside whose path has this in it."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
    for warning in said:
        if issubclass(warning.category, StoreWarning) and path in str(warning.message):
            raise BadInput(str(warning.message))


def _alike(images: Dataset, store: Store) -> Mapping[str, str]:
    """Which images look alike; BadInput where the store says that it does not know any more."""
    from shiftproof.runs.load import alike_in

    with _damage_refused(f"{store.root}/duplicates/"):
        return alike_in(images, store)


def _reached(images: Dataset, store: Store) -> Reached:
    """How far the profile of the first model has come; BadInput where the store does not know any more."""
    with _damage_refused("/profile-"):
        found = store.reached(store.models()[0].ref, images.ref)
    if found is None:
        raise BadInput("no profile")
    return found


def profile_seeds() -> list[Seed]:
    """Records of profiles without a checksum, in which any number counts."""
    files = store_files()
    path = next(name for name in files if fnmatch(name, "runs/models/*/profile-*.json"))
    return [Seed("profile", {**files, path: _without_checksum(files[path])}, path, jsons)]


def read_profile(folder: Path) -> object:
    """What is measured as far as the profile has come."""
    from shiftproof import measure_stored
    from shiftproof.datasets import open_dataset
    from shiftproof.runs.store import Store

    store, images = Store(folder / "runs"), open_dataset(folder / "photos")
    found = _reached(images, store)
    numbers = [found.images, *filter(None, found.units.values()), *found.drawn.values()]
    if not all(0 <= number < np.inf for number in (*numbers, found.seconds, found.minutes, found.pace)):
        raise Wrong(f"a profile that cannot be: {found}")
    results = measure_stored("colours", images, studies=["accuracy"], store=store)
    return [(one.metric, one.value, one.images) for one in results.measurements]


def alike_seeds() -> list[Seed]:
    """Lists of images that look alike as older versions wrote them, in which any digest counts."""
    files = store_files()
    path = next(name for name in files if name.startswith("runs/duplicates/"))
    return [Seed("alike", {**files, path: _without_checksum(files[path])}, path, jsons)]


def read_alike(folder: Path) -> object:
    from shiftproof.datasets import open_dataset
    from shiftproof.runs.store import Store

    return _alike(open_dataset(folder / "photos"), Store(folder / "runs"))


def read_merged(folder: Path) -> object:
    from shiftproof.runs.store import Store

    (folder / "all").mkdir()
    merged = Store(folder / "all" / "runs").absorb(Store(folder / "runs"))
    for damaged in merged.damaged:
        if damaged.path.parent.name == "duplicates":
            raise damaged  # the only loss that is no missing run afterwards
    (folder / "photos").rename(folder / "all" / "photos")
    return read_store(folder / "all")


def project_seeds() -> list[Seed]:
    from shiftproof.curation.project import Item, Project, ReviewClass, save_project
    from shiftproof.review.database import Database
    from shiftproof.review.service import ReviewService
    from shiftproof.review.submission import accept_votes

    def make(folder: Path) -> None:
        (folder / "images").mkdir()
        Pillow.fromarray(pixels()).save(folder / "images" / "1.png")
        asked = tuple(Item(f"item {number}", ("1.png",), label="bird") for number in range(3))
        gold = Item("known", ("1.png",), role="gold", answer={"choice": "keep"})
        birds = (ReviewClass("bird", "bird", references=("1.png",)),)
        project = Project(folder, "birds", "clarity", (*asked, gold), birds, reviewers_each=1)
        save_project(project)
        database = Database(folder / "review.sqlite")
        service = ReviewService(project, database)
        database.invite("Ada")
        person = database.reviewers()[0]
        service.queue(person, "first", 9)
        item = service.opaque_name("item item 0")
        vote = {"id": "vote 000001", "item": item, "round": "first", "milliseconds": 2000, "answer": {"choice": "keep"}}
        assert accept_votes(service, person, [vote]).accepted
        database.close()
        with contextlib.closing(sqlite3.connect(folder / "review.sqlite", isolation_level=None)) as votes:
            # in pages of half a kilobyte: more of its bytes mean something, and a file that fails is small enough to keep
            votes.executescript("PRAGMA journal_mode=DELETE; PRAGMA page_size=512; VACUUM")

    files = files_made(make)
    votes = files["review.sqlite"]
    revision = b'{"number": 2, "earlier": {"item 0": "rejected", "item 1": "kept"}, "items": 2, "votes": 1}'
    return [
        Seed("project", files, "project.json", jsons),
        Seed("items", files, "items.jsonl", jsons),
        Seed("revision", {**files, "revision.json": revision}, "revision.json", jsons),
        Seed("votes", files, "review.sqlite"),
        Seed("rows", files, "review.sqlite", jsons, _rows_in(votes), partial(_with_rows, database=votes), mutated=False),
    ]


TABLES = ("votes", "reviewers", "assignments", "facts")


def _rows_in(database: bytes) -> bytes:
    """What the tables of a review hold, as JSON; answers as what their text says."""
    with contextlib.closing(sqlite3.connect(":memory:")) as opened:
        opened.deserialize(database)
        opened.row_factory = sqlite3.Row
        tables = {table: [dict(row) for row in opened.execute(f"SELECT * FROM {table}")] for table in TABLES}
    for vote in tables["votes"]:
        vote["answer"] = json.loads(vote["answer"])
    return json.dumps(tables).encode()


def _with_rows(rows: bytes, *, database: bytes) -> bytes:
    """The database with these rows; values that SQLite has no kind for as their JSON, and what it does not take left out."""
    tables = json.loads(rows)
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        opened.deserialize(database)
        for table in TABLES if isinstance(tables, dict) else ():
            opened.execute(f"DELETE FROM {table}")
            for row in tables.get(table) or () if isinstance(tables.get(table), list) else ():
                columns = [name for name in row if name.isidentifier()] if isinstance(row, dict) else []
                values = [_cell(row[name]) for name in columns]
                with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeEncodeError):
                    names, places = ",".join(columns), ",".join("?" * len(columns))
                    opened.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", values)
        return opened.serialize()


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def read_project(folder: Path) -> object:
    from shiftproof.curation.project import load_project
    from shiftproof.review.database import Database
    from shiftproof.review.jobs import reviewed
    from shiftproof.review.pages import check_all_there
    from shiftproof.review.revision import changes, load_revision

    check_all_there(load_project(folder))
    project, found = (one := reviewed(folder)).project, one.summary
    json.dumps(found.as_json())
    changes(load_revision(folder), found.verdicts)
    database = Database(folder / "review.sqlite")
    votes = database.votes()
    database.close()
    if len(votes) != found.votes:
        raise Wrong(f"votes: {len(votes)} by rows, {found.votes} by columns")
    return len(project.items)


# ---- the command

LINES: Mapping[str, str] = {
    "check": "check photos",
    "check-store": "check --store runs --json",
    "check-boxes": "check boxes.json --kind coco",
    "list": "list models",
    "plan": "plan onnx:model.onnx photos",
    "measure": "measure colours photos",
    "measure-clusters": "measure colours photos --studies accuracy --cluster clusters.csv",
    "report": "report colours photos",
    "compare": "compare colours model photos --studies accuracy",
    "threshold": "threshold onnx:model.onnx photos --ood-detector msp --false-alarms 0.1 --ood out=boxes.json",
    "threshold-cheapest": "threshold onnx:model.onnx photos --ood-detector energy --cheapest --ood boxes.json -o x.json",
    "predict": "predict onnx:model.onnx photos",
    "predict-shard": "predict onnx:model.onnx photos --store other --shard 1/2 --keep logits",
    "run": "run onnx:model.onnx photos --studies accuracy",
    "probe": "probe photos/red/0.png --model onnx:model.onnx",
    "merge": "merge other runs",
    "merge-json": "merge new runs --json",
    "models": "models --store runs",
    "models-rename": "models rename colours others",
    "models-forget": "models forget colours",
    "corrupt": "corrupt photos written --corruptions fog --severities 1",
    "perturb": "perturb photos written --perturbations tilt",
    "verdicts": "verdicts project",
    "verdicts-report": "verdicts project -o votes.html",
    "review": "review project --port 0",
    "review-invite": "review project --invite Grace --port 0",
    "curate-adversarial": "curate adversarial photos project2 --filter onnx:model.onnx",
    "curate-boxes": "curate boxes photos project2",
    "curate-crops": "curate crops boxes.json written --reference boxes.json",
    "curate-duplicates": "curate duplicates photos",
    "curate-duplicates-against": "curate duplicates photos --against photos --bits 2 -o pairs.csv --store runs",
    "curate-export": "curate export project written",
    "curate-export-manifest": "curate export project written --layout manifest --before-review",
    "curate-failure-modes": "curate failure-modes project project2",
    "curate-revise": "curate revise project --continue-from project",
    "curate-novel": "curate novel photos project2 --filter onnx:model.onnx?classes=names.txt --id-classes none",
    "curate-frames": "curate frames clips project2",
    "curate-human-test": "curate human-test photos -o project2 --training-per-class 0 --qualify 0 --test 3",
    "curate-novel-classes": "curate novel-classes --id-classes ilsvrc2012 --candidates classes.txt -o novel",
    "curate-pairs": "curate pairs photos photos --feature-model colours",
}
"""What each command is given before odd options come on top; `demo` takes nothing from strangers."""


PLACES = ("/dev/zero", "/proc/self")
"""Where a line may ask to write, as ODD_TEXTS name them, or beside it until the file is whole; nothing can be made there."""

KNOWN = """photos runs project model.onnx boxes.json classes.txt clusters.csv clips a.png new.csv 1 0.5 1/2 none red colours
fog energy a=b a=photos photos?labels=none"""
"""Values that fit some option or other."""


def _odd_options(content: bytes) -> st.SearchStrategy[bytes]:
    """The line with options of its command behind it, some with values of their kind and some without."""
    import click

    from shiftproof.cli.main import cli

    line: list[str] = json.loads(content)
    command: Any = cli
    while isinstance(command, click.Group) and line and line[0] in command.commands:
        command, line = command.commands[line[0]], line[1:]
    words = json.loads(content)
    odd = st.sampled_from([text for text in ODD_TEXTS if "\0" not in text and "\ud800" not in text]) | st.integers().map(str)
    known = st.sampled_from(KNOWN.split())

    def with_value(option: Any) -> st.SearchStrategy[list[str]]:
        if option.is_flag:
            return st.just([option.opts[-1]])
        choices = getattr(option.type, "choices", None)
        values = odd | known | st.sampled_from(list(map(str, choices))) if choices else odd | known
        return values.map(lambda value: [option.opts[-1], value])

    options = [option for option in command.params if isinstance(option, click.Option)]
    more = (
        st.lists(st.one_of([with_value(option) for option in options]), min_size=1, max_size=3) if options else st.just([])
    )
    swapped = st.none() | st.tuples(st.integers(0, len(words) - 1), odd | known)

    def written(drawn: tuple[list[list[str]], tuple[int, str] | None]) -> bytes:
        said = [*words]
        if drawn[1] is not None:
            said[drawn[1][0]] = drawn[1][1]
        return json.dumps([*said, *(word for option in drawn[0] for word in option)]).encode()

    return st.tuples(more, swapped).map(written)


def command_seeds() -> list[Seed]:
    project = project_seeds()[0].files
    files = {
        **{f"here/{name}": data for name, data in store_files(with_network=True).items()},
        **{f"here/project/{name}": data for name, data in project.items()},
        "here/clips/a.mp4": clip_bytes("mpeg4", "mp4"),
        "here/clusters.csv": b"id,cluster\nred/0.png,one\nred/1.png,one\nblue/0.png,two\n",
        "here/names.txt": b"blue\ngreen\nred\n",
        "here/classes.txt": b"n01440764\nn03001627\n",
        "here/boxes.json": json.dumps(COCO).encode(),
        **{f"here/{name}": data for name, data in photos().items()},
    }
    return [
        Seed(name, {**files, "line.json": json.dumps(line.split()).encode()}, "line.json", _odd_options, mutated=False)
        for name, line in LINES.items()
    ]


def read_command(folder: Path) -> object:
    """Runs the command as it is typed; 0, 1 and 2 are its own ways to end."""
    import shiftproof.cli.main
    import shiftproof.review.server

    shiftproof.review.server.serve = lambda *_, **__: None  # nobody would end it
    os.chdir(folder / "here")
    sys.argv = ["shiftproof", *json.loads((folder / "line.json").read_text())]
    told = io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        try:
            shiftproof.cli.main.main()
        except SystemExit as ended:
            code = ended.code or 0
    if code not in (0, 1, 2):
        raise Wrong(f"exit code: {code}")
    if "Traceback (most recent call last)" in told.getvalue():
        raise Wrong(f"a traceback was printed: {told.getvalue()[-800:]}")
    if code:
        raise BadInput(told.getvalue()[-300:])
    return code
