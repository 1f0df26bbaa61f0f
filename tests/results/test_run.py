from __future__ import annotations

import copy
import json
from pathlib import Path

import jsonschema
import pytest

from roofline.errors import RooflineError
from roofline.ops import Linear
from roofline.results.files import dumps
from roofline.results.run import (
    Ceiling,
    Environment,
    Measured,
    OpRun,
    Predicted,
    Process,
    RunRecord,
    json_schema,
    op_id,
)

ENVIRONMENT = Environment(device="a device", torch="2.13.0", driver=None, python="3.11.7", roofline="0.1.0")


def row(verdict="confirmed", **changes):
    measured = Measured((Process(2e-3, 1.9e-3, 2.1e-3, (2e-3, 2.1e-3)),), "memory", 2e-3, True, 4)
    fields = {
        "id": "0123456789ab",
        "workload": "linear",
        "path": "linear",
        "kernel": "mm",
        "predicted": Predicted(1e-3, "memory", "dram", {"dram": 1e-3}),
        "measured": measured,
        "roof_fraction": 0.5,
        "verdict": verdict,
        "reason": "it is so",
        "stop_reason": "tight",
    }
    return OpRun(**fields | changes)


def record(*verdicts):
    ceilings = {"memory:read": Ceiling(2e10, 1.9e10, 2.1e10, "B/s", "mv", "2026-01-01")}
    return RunRecord(ENVIRONMENT, ceilings, tuple(row(verdict) for verdict in verdicts), complete=True)


def test_a_record_survives_the_way_through_a_file(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(dumps(record("confirmed", "skipped").to_json()))
    assert RunRecord.load(path) == record("confirmed", "skipped")
    assert next(iter(json.loads(path.read_text()))) == "schema"


def test_the_keys_of_the_contract_are_there():
    data = record("confirmed").to_json()
    assert set(data) == {"schema", "environment", "ceilings", "ops", "complete"}
    assert data["schema"] == "roofline/run/1"
    assert {"device", "torch", "driver", "python", "roofline"} <= set(data["environment"])
    assert {"value", "low", "high"} <= set(data["ceilings"]["memory:read"])
    (op,) = data["ops"]
    contract = "id workload path kernel predicted measured roof_fraction verdict reason stop_reason"
    assert set(contract.split()) <= set(op)
    assert {"floor_s", "bound", "limiter"} <= set(op["predicted"])
    assert {"processes", "bound"} <= set(op["measured"])
    assert {"median_s", "low_s", "high_s", "samples_s"} <= set(op["measured"]["processes"][0])


def test_the_schema_describes_the_record():
    jsonschema.validate(json.loads(dumps(record("confirmed", "errored").to_json())), json_schema())
    wrong = record("confirmed").to_json() | {"complete": "perhaps"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, json_schema())


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        (lambda data: data.pop("environment"), "environment", "has no environment"),
        (lambda data: data["ops"][0].pop("verdict"), "ops.0.verdict", "has no ops.0.verdict"),
        (lambda data: data["ops"][0].update(verdict="sure"), "ops.0.verdict", "must be 'confirmed'"),
        (lambda data: data["ops"][0].update(count="many"), "ops.0.count", "must be a valid integer"),
        (lambda data: data.update(schema="roofline/run/2"), "schema", "expected a record of schema roofline/run/1"),
        (lambda data: data.update(ops={}), "ops", "must be a valid tuple"),
    ],
)
def test_what_is_no_record_is_named(change, key, words):
    data = copy.deepcopy(json.loads(dumps(record("confirmed").to_json())))
    change(data)
    with pytest.raises(RooflineError, match=words) as caught:
        RunRecord.from_json(data, "run.json")
    assert caught.value.key == key
    assert caught.value.file == "run.json"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["confirmed"], 0),
        (["confirmed", "skipped", "near-ridge"], 0),
        (["inefficient"], 0),
        (["confirmed", "contradicted"], 1),
        (["above-roof"], 1),
        (["errored", "skipped"], 1),
        (["skipped", "surrogate", "overhead-bound", "cache-resident", "near-ridge"], 3),
        ([], 3),
    ],
)
def test_exit_codes(verdicts, code):
    assert record(*verdicts).exit_code == code


def test_ids_are_of_the_op_and_its_kernel():
    linear = Linear(tokens=1, in_features=64, out_features=64)
    assert op_id(linear, "mm") == op_id(Linear(tokens=1, in_features=64, out_features=64), "mm")
    others = {op_id(linear, None), op_id(linear, "addmm"), op_id(linear.with_(tokens=2), "mm")}
    assert len(others | {op_id(linear, "mm")}) == 4


def test_reading_the_record_needs_no_torch():
    source = (Path(__file__).parents[2] / "roofline/results/run.py").read_text()
    assert "torch import" not in source
    assert "import torch" not in source
