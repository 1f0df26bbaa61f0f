from __future__ import annotations

import json
from dataclasses import replace

from roofline.render import Options, run_table, run_words
from roofline.results.files import dumps
from roofline.results.run import Measured, Process, RunRecord
from tests.results.test_run import OP, RECORD, SKIPPED

WIDE = Options(width=200)


def plain(record: RunRecord) -> dict:
    return json.loads(dumps(record.to_json()))


def shown(record: RunRecord, options: Options = WIDE) -> str:
    return run_table.render(plain(record), options)


def with_ops(*verdicts: str, **changes) -> RunRecord:
    ops = tuple(replace(OP, verdict=verdict, path=f"op{index}", **changes) for index, verdict in enumerate(verdicts))
    return replace(RECORD, ops=ops)


def test_the_first_line_is_the_answer() -> None:
    first = shown(RECORD).splitlines()[0]
    assert first.startswith("1 of 2 ops confirmed, 1 skipped; ")
    assert "the times show the predicted bound in 1 of the 1 rows where they show one" in first
    assert first.endswith("farthest from its roof is layers/mlp/down_proj, at 80 %.")


def test_failures_come_first_in_the_answer_and_loud() -> None:
    first = shown(with_ops("confirmed", "inefficient", "above-roof", "contradicted", "errored")).splitlines()[0]
    assert first.startswith("1 of 5 ops confirmed, 1 ERRORED, 1 CONTRADICTED, 1 ABOVE-ROOF, 1 inefficient")


def test_green_with_nothing_judged_is_impossible() -> None:
    assert shown(with_ops("surrogate", "near-ridge")).startswith("Nothing was judged: 0 of 2 ops confirmed")
    assert shown(replace(RECORD, ops=(SKIPPED,))).startswith("Nothing was judged: 0 of 1 op confirmed")


def test_what_must_be_known_before_believing_a_number() -> None:
    assert list(run_words.warnings(plain(RECORD))) == ["Other work ran on this machine during 33 % of the samples."]
    process = Process(1.0, 1.0, 1.0, (1.0, 1.0, 1.0), disturbed=0)
    calm = replace(RECORD, ops=(replace(OP, measured=Measured((process,))),))
    assert list(run_words.warnings(plain(calm))) == []
    hot = replace(calm, complete=False, environment=replace(RECORD.environment, throttled=True))
    interrupted, throttled = run_words.warnings(plain(hot))
    assert interrupted.startswith("Interrupted")
    assert throttled.startswith("The device was throttled")


def test_every_row_that_is_not_confirmed_has_its_reason_and_no_other() -> None:
    text = shown(RECORD)
    assert "lm_head skipped: too large" in text
    assert OP.reason not in text


def test_rows_with_the_same_reason_share_a_line() -> None:
    text = shown(with_ops("surrogate", "surrogate", reason="three kernels"))
    assert "op0, op1 surrogate: three kernels" in text
    assert text.count("three kernels") == 1


def test_ceilings_are_shown_with_spread_and_kernel() -> None:
    (line,) = [line for line in shown(RECORD).splitlines() if line.startswith("memory:read")]
    assert line.split("  ")[-1].strip() == "sum"
    for amount in ("30.0 GB/s", "29.0 GB/s", "32.0 GB/s"):
        assert amount in line


def test_a_row_shows_floor_time_fractions_and_both_bounds() -> None:
    (line,) = [line for line in shown(RECORD).splitlines() if line.strip().startswith("down_proj")]
    for cell in ("32", "2.00 ms", "2.50 ms", "4.0 %", "80 %", "memory", "confirmed"):
        assert cell in line
    near = replace(RECORD, ops=(replace(OP, predicted=replace(OP.predicted, near_ridge=True)),))
    assert "memory ~" in shown(near)


def test_the_device_is_one_line() -> None:
    line = run_words.device_line(plain(RECORD))
    assert line == "AMD EPYC, 2 cores, 2 threads, up to 8 GiB, torch 2.9.0"
    more = replace(
        RECORD.environment,
        driver="570.1",
        cache_bytes=300 << 20,
        believed_cache_bytes=2 << 20,
        started="2026-01-02",
    )
    line = run_words.device_line(plain(replace(RECORD, environment=more)))
    assert "cache 2 MiB (reported 300 MiB)" in line
    assert line.endswith("driver 570.1, 2026-01-02")


def test_details_on_request() -> None:
    assert "tight" not in shown(RECORD)
    text = shown(RECORD, Options(width=200, verbose=True))
    assert "tight" in text
    assert "cold" in text


def test_only_what_the_contract_promises_is_needed() -> None:
    """A record of another tool, read: the keys that roofline adds have their defaults."""
    data = plain(RECORD)
    op = data["ops"][0]
    for key in ("count", "also", "mfu", "mbu", "flops", "bytes", "surrogate", "kind"):
        del op[key]
    op["predicted"] = {key: op["predicted"][key] for key in ("floor_s", "bound", "limiter")}
    op["measured"] = {key: op["measured"][key] for key in ("processes", "bound")}
    process = op["measured"]["processes"][0]
    op["measured"]["processes"] = [{key: process[key] for key in ("median_s", "low_s", "high_s", "samples_s")}]
    data["ceilings"] = {"memory:read": {"value": 1e9, "low": 1e9, "high": 1e9}}
    data["environment"] = {key: data["environment"][key] for key in ("device", "torch", "driver", "python", "roofline")}
    text = shown(RunRecord.from_json(data), Options(width=200, verbose=True))
    assert "2.50 ms" in text


def test_rows_are_flat_and_in_base_units() -> None:
    first, second = run_words.run_rows(plain(RECORD))
    assert first["time_s"] == 2.5e-3
    assert first["floor_s"] == 2e-3
    assert first["predicted"] == first["measured"] == "memory"
    assert second["time_s"] is None
    assert list(first) == list(second)
    assert not any(isinstance(value, dict | list) for value in first.values())


def test_colour_is_only_added() -> None:
    colored = shown(RECORD, Options(width=200, color=True))
    assert "\x1b[" in colored
    assert "\x1b[" not in shown(RECORD)
