from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from roofline.errors import RooflineError
from roofline.ops import Attention, Linear
from roofline.results.files import dumps
from roofline.results.run import (
    FAILED,
    UNDECIDED,
    VERDICTS,
    Ceiling,
    Elasticity,
    Environment,
    Estimate,
    Measured,
    OpRun,
    Predicted,
    Process,
    RunRecord,
    json_schema,
    op_id,
)

OP = OpRun(
    id="0123456789ab",
    workload="decode",
    path="layers/mlp/down_proj",
    kernel="mm",
    predicted=Predicted(2e-3, "memory", "dram", {"dram": 2e-3, "tensor:bf16": 1e-4}, {"dram": 3e10}),
    measured=Measured(
        (Process(2.5e-3, 2.4e-3, 2.6e-3, (2.4e-3, 2.5e-3, 2.6e-3), disturbed=1),),
        "memory",
        2.5e-3,
        cold=True,
        copies=2,
        elasticity=Elasticity(6, 0.5, Estimate(0.0, -0.1, 0.1), Estimate(1.0, 0.9, 1.1), None),
    ),
    roof_fraction=0.8,
    verdict="confirmed",
    reason="time follows bytes",
    stop_reason="tight",
    kind="linear",
    count=32,
    also=("layers/other",),
    flops=1e8,
    bytes=6e7,
    mfu=0.04,
    mbu=0.8,
)
SKIPPED = OpRun(
    "f" * 12, "decode", "lm_head", None, Predicted(None, None, None), Measured(), None, "skipped", "too large", None
)
RECORD = RunRecord(
    environment=Environment("AMD EPYC, 2 cores", "2.9.0", None, "3.12.1", "0.1.0", threads=2, memory_bytes=1 << 33),
    ceilings={"memory:read": Ceiling(3e10, 2.9e10, 3.2e10, "B/s", "sum", "2026-01-02")},
    ops=(OP, SKIPPED),
    complete=True,
)


def test_a_record_comes_back_from_its_json() -> None:
    data = json.loads(dumps(RECORD.to_json()))
    assert RunRecord.from_json(data) == RECORD


def test_the_contract() -> None:
    data = json.loads(dumps(RECORD.to_json()))
    assert next(iter(data)) == "schema"
    assert data["schema"] == "roofline/run/1"
    assert {"environment", "ceilings", "ops", "complete"} <= set(data)
    assert {"device", "torch", "driver", "python", "roofline"} <= set(data["environment"])
    assert {"value", "low", "high"} <= set(data["ceilings"]["memory:read"])
    op = data["ops"][0]
    assert {"id", "workload", "path", "kernel", "predicted", "measured", "roof_fraction"} <= set(op)
    assert {"verdict", "reason", "stop_reason"} <= set(op)
    assert {"floor_s", "bound", "limiter"} <= set(op["predicted"])
    assert {"processes", "bound"} <= set(op["measured"])
    assert {"median_s", "low_s", "high_s", "samples_s"} <= set(op["measured"]["processes"][0])
    assert data["ops"][1]["measured"]["processes"] == []


def test_a_record_names_no_host_and_no_path() -> None:
    import socket

    text = dumps(RECORD.to_json())
    assert socket.gethostname() not in text
    assert str(Path.home()) not in text


def test_its_json_schema_accepts_it_and_refuses_others() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    data = json.loads(dumps(RECORD.to_json()))
    jsonschema.validate(data, schema)
    for broken in ({**data, "schema": "roofline/run/2"}, {**data, "ops": [{**data["ops"][0], "verdict": "good"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)


def broken(*keys: str | int, value: object = ...) -> dict:
    """The record with one value replaced, or dropped."""
    data = json.loads(dumps(RECORD.to_json()))
    place = data
    for key in keys[:-1]:
        place = place[key]
    if value is ...:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return data


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (broken("schema", value="roofline/run/2"), "schema"),
        (broken("schema"), "schema"),
        (broken("environment"), "environment"),
        (broken("environment", "torch"), "environment.torch"),
        (broken("complete", value=1), "complete"),
        (broken("ops", value="none"), "ops"),
        (broken("ops", 0, value=3), "ops.0"),
        (broken("ops", 0, "verdict", value="confirmd"), "ops.0.verdict"),
        (broken("ops", 0, "count", value=1.5), "ops.0.count"),
        (broken("ops", 0, "count", value=True), "ops.0.count"),
        (broken("ops", 0, "measured", "processes", 0, "median_s", value="1"), "ops.0.measured.processes.0.median_s"),
        (broken("ops", 0, "measured", "processes", 0, "samples_s"), "ops.0.measured.processes.0.samples_s"),
        (broken("ops", 0, "predicted", "times_s", value=[]), "ops.0.predicted.times_s"),
        (broken("ceilings", "memory:read", "value", value=None), "ceilings.memory:read.value"),
        (broken("ceilings", "memory:read", value=5), "ceilings.memory:read"),
    ],
)
def test_what_is_no_record_is_said_with_the_place(data: dict, key: str) -> None:
    with pytest.raises(RooflineError) as caught:
        RunRecord.from_json(data, "run.json")
    assert caught.value.key == key
    assert caught.value.file == "run.json"
    assert caught.value.code == "bad-record"


def test_a_misspelt_verdict_gets_the_nearest() -> None:
    with pytest.raises(RooflineError, match="did you mean confirmed"):
        RunRecord.from_json(broken("ops", 0, "verdict", value="confirmd"))


def test_keys_that_a_later_version_adds_are_passed_over() -> None:
    data = json.loads(dumps(RECORD.to_json()))
    data["ops"][0]["new"] = 1
    data["environment"]["clock"] = {"mhz": 3}
    assert RunRecord.from_json(data) == RECORD


def test_a_file_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(dumps(RECORD.to_json()))
    assert RunRecord.load(path) == RECORD
    path.write_text('{"schema": "roofline/analysis/1"}')
    with pytest.raises(RooflineError, match="roofline/run/1"):
        RunRecord.load(path)


def with_verdicts(*verdicts: str) -> RunRecord:
    return replace(RECORD, ops=tuple(replace(OP, verdict=verdict) for verdict in verdicts))


def test_exit_codes() -> None:
    assert with_verdicts("confirmed", "inefficient", "surrogate").exit_code == 0
    for verdict in FAILED:
        assert with_verdicts("confirmed", verdict).exit_code == 1
    assert with_verdicts(*UNDECIDED).exit_code == 3
    assert with_verdicts("inefficient").exit_code == 0  # low efficiency is no failure
    assert with_verdicts().exit_code == 3  # green with nothing judged is impossible
    assert {*FAILED, *UNDECIDED, "confirmed", "inefficient"} == set(VERDICTS)


def test_an_id_is_stable_and_its_ops_own() -> None:
    op = Linear(tokens=1, in_features=8, out_features=8)
    assert (
        op_id(op, "mm") == op_id(Linear(tokens=1, in_features=8, out_features=8, dtype="bf16"), "mm") == "dbadc7a9808e"
    )
    others = {
        op_id(op, "mm"),
        op_id(op, "other"),
        op_id(op, None),
        op_id(op.with_(tokens=2), "mm"),
        op_id(op.with_(dtype="fp32", weight_dtype="fp32", out_dtype="fp32"), "mm"),
        op_id(Attention(heads=1, head_dim=8, queries=1), "mm"),
    }
    assert len(others) == 6
