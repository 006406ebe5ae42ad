"""Results in trackers, read back by the trackers' own libraries."""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import shiftproof as sp
from command import Shiftproof
from patience import wait_until
from shiftproof.errors import BadInput
from shiftproof.publishing import numbers_of, refusals_told
from shiftproof.publishing.huggingface import BEGIN, END
from shiftproof.types import DatasetCard, Interval, Measurement, ModelCard

ACCURACY = {"photos/top1_accuracy": 0.887, "photos/top1_accuracy_low": 0.866, "photos/top1_accuracy_high": 0.906}


def found(
    metric: str, value: float, images: int = 1000, interval: Interval | None = None, **about: str | int
) -> Measurement:
    return Measurement(metric, value, {"model": "my|net", "dataset": "photos", **about}, images, {}, interval)


@pytest.fixture
def results() -> sp.Results:
    return sp.Results(
        (
            found("top1_accuracy", 0.887, interval=Interval(0.866, 0.906, 0.95, "Clopper-Pearson")),
            found("error", 0.25, condition="fog", severity=3),
            found("mistake_distance", float("nan")),
        ),
        models=(
            ModelCard("my|net", "f00d", "logits", {}),
            ModelCard("my|net (random)", "cafe", "logits", {}, companion="random weights"),
        ),
        datasets=(DatasetCard("photos", "beef", images=1000, labelled=1000),),
        command="shiftproof run onnx:net.onnx photos/",
        made="2026-03-04T05:06:07+00:00",
        versions={"shiftproof": "0.1.0"},
    )


def test_mlflow_has_a_run_with_the_numbers_and_all_measurements(
    results: sp.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "mlruns").as_uri()
    (tmp_path / "report.html").write_text("<p>")
    options = sp.PublishOptions(experiment="robust", tracking_uri=uri, attach=str(tmp_path / "report.html"))
    (made,) = sp.publish(results, "mlflow", options=options)
    sp.publish(results, "mlflow", options=options)  # into the same experiment

    client = mlflow.MlflowClient(tracking_uri=uri)
    runs = client.search_runs([client.get_experiment_by_name("robust").experiment_id])
    assert len(runs) == 2
    run = runs[0]
    assert run.info.run_name == "my|net"
    assert run.info.status == "FINISHED"
    assert run.data.metrics == {**ACCURACY, "photos/condition fog/severity 3/error": 0.25}
    assert made.numbers == 4
    assert run.data.params["fingerprint"] == "f00d"
    assert run.data.params["dataset photos"] == "beef"
    assert {one.path for one in client.list_artifacts(run.info.run_id)} == {
        "results.json",
        "measurements.csv",
        "report.html",
    }
    kept = Path(client.download_artifacts(run.info.run_id, "results.json")).read_text(encoding="utf-8")
    assert sp.Results.from_json(kept).measurements[0] == results.measurements[0]


def test_what_mlflow_refuses_is_told(results: sp.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    with pytest.raises(BadInput, match="MLflow"):
        sp.publish(results, "mlflow", options=sp.PublishOptions(tracking_uri="nowhere://at-all"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_wandb_has_a_summary_and_a_table_offline(
    results: sp.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_API_KEY", "")
    options = sp.PublishOptions(experiment="robust", offline=True)
    (made,) = sp.publish(results, "wandb", options=options, folder=tmp_path / "logged")
    assert made.numbers == 4
    place = Path(made.place)
    assert place.is_relative_to(tmp_path / "logged")
    log = next(place.glob("*.wandb"))
    wait_until(lambda: any(record.HasField("exit") for record in wandb_records(log)), every=0.1)  # another process writes it
    summary: dict[str, Any] = {}
    config: dict[str, Any] = {}
    for record in wandb_records(log):
        if record.HasField("run"):
            assert record.run.project == "robust"
            assert record.run.display_name == "my|net"
            config |= {one.key: json.loads(one.value_json) for one in record.run.config.update}
        if record.HasField("summary"):
            summary |= {one.key or "/".join(one.nested_key): json.loads(one.value_json) for one in record.summary.update}
    assert {name: summary[name] for name in ACCURACY} == ACCURACY
    assert summary["photos/condition=fog/severity=3/error"] == 0.25
    assert config["fingerprint"] == "f00d"
    table = json.loads(next((place / "files").rglob("*.table.json")).read_text(encoding="utf-8"))
    assert [row[table["columns"].index("value")] for row in table["data"]] == ["0.887", "0.25", "nan"]
    assert sp.Results.from_json((place / "files" / "results.json").read_text(encoding="utf-8")).command == results.command


def wandb_records(path: Path) -> Iterator[Any]:
    """Records of a run on disk: protocol buffers in the blocks of LevelDB's log, after seven bytes."""
    from wandb.proto import wandb_internal_pb2

    data, place, parts = path.read_bytes(), 7, b""
    while place < len(data):
        if 32768 - place % 32768 < 7:  # the rest of a block is empty
            place += 32768 - place % 32768
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + 7])
        if place + 7 + length > len(data):
            return  # still being written
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(parts)
            parts = b""
            yield record


def test_a_model_repository_has_evaluation_results_that_the_hub_reads(results: sp.Results, tmp_path: Path) -> None:
    (made,) = sp.publish(
        results, "huggingface", options=sp.PublishOptions(benchmark="me/hard-photos", task="default"), folder=tmp_path
    )
    assert made.numbers == 1
    data = yaml.safe_load((tmp_path / ".eval_results" / "hard-photos.yaml").read_text(encoding="utf-8"))
    notes = "Top-1 accuracy 88.7\u202f% of 1,000 images, 95 % CI 86.6 to 90.6\u202f%; shiftproof 0.1.0"
    assert data == [
        {
            "dataset": {"id": "me/hard-photos", "task_id": "default"},
            "value": 0.887,
            "date": "2026-03-04T05:06:07+00:00",
            "notes": notes,
        }
    ]
    hub = pytest.importorskip("huggingface_hub")
    (entry,) = hub.parse_eval_result_entries(data)
    assert (entry.dataset_id, entry.task_id, entry.value, entry.notes) == ("me/hard-photos", "default", 0.887, notes)
    assert hub.eval_result_entries_to_yaml([entry]) == data


def test_the_section_of_a_model_card_is_written_in_its_place(results: sp.Results, tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    card.write_text("---\nlicense: mit\n---\n# My net\n", encoding="utf-8")
    sp.publish(results, "huggingface", folder=tmp_path)
    once = card.read_text(encoding="utf-8")
    assert once.startswith("---\nlicense: mit\n---\n# My net\n\n" + BEGIN)
    assert "| my\\|net | photos |  |  | Top-1 accuracy | 88.7\u202f% | 86.6 to 90.6 | 1,000 |" in once
    card.write_text(once + "\n## After\n", encoding="utf-8")
    sp.publish(results, "huggingface", folder=tmp_path)
    assert card.read_text(encoding="utf-8") == once + "\n## After\n"
    assert once.count(END) == 1
    assert not (tmp_path / ".eval_results").exists()


def test_what_cannot_be_published_is_told(results: sp.Results, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no numbers"):
        sp.publish(sp.Results(()), "huggingface", folder=tmp_path)
    with pytest.raises(BadInput, match="ORGANISATION/NAME"):
        sp.publish(results, "huggingface", options=sp.PublishOptions(benchmark="photos"), folder=tmp_path)
    options = sp.PublishOptions(benchmark="me/photos", benchmark_metric="top5_accuracy")
    with pytest.raises(BadInput, match="these results have: none"):
        sp.publish(results, "huggingface", options=options, folder=tmp_path)
    with pytest.raises(BadInput, match="no report"):
        sp.publish(results, "huggingface", options=sp.PublishOptions(attach=str(tmp_path / "none.html")), folder=tmp_path)


def test_the_command_publishes_a_file_of_results(shiftproof: Shiftproof, results: sp.Results, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(results.to_json(), encoding="utf-8")
    told = (
        "publish",
        str(tmp_path / "results.json"),
        "huggingface",
        "-o",
        str(tmp_path / "repo"),
        "--benchmark",
        "me/photos",
    )
    said = shiftproof(*told, "--json")
    assert said.code == 0
    assert json.loads(said.out)[0]["numbers"] == 1
    assert (tmp_path / "repo" / ".eval_results" / "photos.yaml").is_file()
    assert shiftproof("publish", str(tmp_path / "none.json"), "huggingface").code == 1


STRANGE: dict[str, dict[str, object]] = {
    "command": {"command": 5},
    "made": {"made": ["2026"]},
    "versions": {"versions": {"shiftproof": {}}},
}
STRANGE_NUMBERS: tuple[dict[str, object], ...] = (
    {"metric": {}},
    {"about": None},
    {"about": {"model": []}},
    {"value": "0.9"},
    {"value": 10**400},
    {"images": None},
    {"clusters": "many"},
    {"level": "95"},
)


@pytest.mark.parametrize("strange", [*STRANGE.values(), *STRANGE_NUMBERS], ids=lambda one: str(one)[:30])
def test_results_of_a_stranger_are_refused_before_anything_is_written(
    results: sp.Results, tmp_path: Path, strange: dict[str, object]
) -> None:
    data = json.loads(results.to_json())
    (data["findings"][0] if strange in STRANGE_NUMBERS else data).update(strange)
    (tmp_path / "results.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(BadInput, match="no results"):
        sp.publish(tmp_path / "results.json", "huggingface", folder=tmp_path / "repo")
    assert not (tmp_path / "repo").exists()


def test_an_interval_without_an_end_is_read_back(results: sp.Results, tmp_path: Path) -> None:
    unsure = dataclasses.replace(results, findings=(found("top1_accuracy", 0.5, interval=Interval(0.4, float("nan"))),))
    (tmp_path / "results.json").write_text(unsure.to_json(), encoding="utf-8")
    sp.publish(tmp_path / "results.json", "huggingface", folder=tmp_path)
    assert "50.0" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_nothing_in_results_ends_the_section_of_a_card_or_writes_html_into_it(results: sp.Results, tmp_path: Path) -> None:
    hostile = f"<img src=x>`caf\udce9 {END}"
    strange = dataclasses.replace(
        results,
        command=hostile,
        versions={"shiftproof": hostile},
        datasets=(DatasetCard(hostile, hostile, images=1000, labelled=1000),),
    )
    card = tmp_path / "README.md"
    card.write_text(f"About {END} in general\n", encoding="utf-8")
    sp.publish(strange, "huggingface", folder=tmp_path)
    once = card.read_text(encoding="utf-8")
    assert once.count(END) == 2
    assert all(line.startswith("    ") for line in once.splitlines() if "<img" in line)
    sp.publish(strange, "huggingface", folder=tmp_path)
    assert card.read_text(encoding="utf-8") == once


def test_a_card_is_left_alone_where_the_benchmark_is_refused(results: sp.Results, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="ORGANISATION/NAME"):
        sp.publish(results, "huggingface", options=sp.PublishOptions(benchmark="photos"), folder=tmp_path)
    options = sp.PublishOptions(benchmark="me/photos", benchmark_metric="mistake_distance")
    with pytest.raises(BadInput, match="not a number"):
        sp.publish(results, "huggingface", options=options, folder=tmp_path)
    assert not any(tmp_path.iterdir())


def test_numbers_keep_names_of_their_own(results: sp.Results) -> None:
    long = "x" * 300
    sets = ("写真", "фото", "ab", "a b?", "a b!", long + "1", long + "2", "..", "photos")
    values = {name: 0.1 * place for place, name in enumerate(sets)}
    many = dataclasses.replace(
        results, findings=tuple(found("error", value, dataset=name) for name, value in values.items())
    )
    numbers = numbers_of(many, "my|net")
    assert sorted(numbers.values()) == sorted(values.values())
    assert numbers["photos/error"] == values["photos"]
    assert all(len(name) <= 240 and not name.startswith(".") for name in numbers)
    assert numbers_of(dataclasses.replace(many, findings=many.findings[::-1]), "my|net") == numbers


def test_a_refusal_repeats_no_password() -> None:
    with (
        pytest.raises(BadInput, match=r"Tracker refused the results: no answer of https://\.\.\.@host/api; try again"),
        refusals_told("Tracker", "; try again", ValueError),
    ):
        raise ValueError("no answer of https://me:hush@host/api")


@pytest.mark.parametrize("protocol", ["http", "postgresql", "nowhere"])
def test_mlflow_repeats_no_password(results: sp.Results, monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(BadInput, match="MLflow") as refused:
        sp.publish(results, "mlflow", options=sp.PublishOptions(tracking_uri=f"{protocol}://me:hush@127.0.0.1:9/x"))
    assert "hush" not in str(refused.value)


def test_mlflow_takes_datasets_whose_names_look_alike_to_it(
    results: sp.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    names = ("a?", "a!", "..", "x" * 300)
    alike = dataclasses.replace(
        results,
        findings=tuple(found("error", 0.5, dataset=name) for name in names),
        datasets=tuple(DatasetCard(name, f"print of {name[:2]}", 1, 1) for name in names),
    )
    uri = (tmp_path / "mlruns").as_uri()
    (made,) = sp.publish(alike, "mlflow", options=sp.PublishOptions(tracking_uri=uri))
    client = mlflow.MlflowClient(tracking_uri=uri)
    (run,) = client.search_runs([client.get_experiment_by_name("shiftproof").experiment_id])
    assert len(run.data.metrics) == made.numbers == 4
    assert {f"print of {name[:2]}" for name in names} <= set(run.data.params.values())


def test_a_run_that_mlflow_stops_taking_is_marked_as_failed(
    results: sp.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(mlflow.MlflowClient, "log_text", full)
    uri = (tmp_path / "mlruns").as_uri()
    with pytest.raises(BadInput, match="no space left"):
        sp.publish(results, "mlflow", options=sp.PublishOptions(tracking_uri=uri))
    client = mlflow.MlflowClient(tracking_uri=uri)
    (run,) = client.search_runs([client.get_experiment_by_name("shiftproof").experiment_id])
    assert run.info.status == "FAILED"


def test_wandb_needs_a_folder(results: sp.Results, tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"refused the results: .*exists"):
        sp.publish(results, "wandb", options=sp.PublishOptions(offline=True), folder=tmp_path / "file")
