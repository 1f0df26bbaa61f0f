"""The numbers that the project promises, from the command line."""

from __future__ import annotations

import csv
import io

import pytest


def one(outcome):
    assert outcome.code == 0, outcome.err
    (result,) = outcome.json["results"]
    return result


class TestNaiveAndFusedAttention:
    def test_naive_attention_of_one_head_is_the_book_s_example(self, roofline):
        result = one(roofline("analyze", "attention-naive", "-H", "h100-sxm", "--format", "json"))
        summary = result["summary"]
        assert summary["flops"] == 8_640_266_240
        assert summary["bytes"] == 138_412_032
        assert round(summary["intensity"], 2) == 62.42
        assert summary["bound"] == "memory"
        assert round(summary["ridge"]) == 295
        assert len(result["ops"]) == 3

    def test_its_lesson_is_told(self, roofline):
        outcome = roofline("analyze", "attention-naive")
        assert "4,096 queries" in outcome.out
        assert "0.99" in outcome.out

    def test_fused_attention_moves_a_thirtieth_of_the_bytes(self, roofline):
        summary = one(roofline("analyze", "attention-flash", "-H", "h100-sxm", "--format", "json"))["summary"]
        assert summary["flops"] == 8_640_266_240
        assert summary["bytes"] == 4_194_304
        assert summary["bound"] == "compute"


LLAMA = ("--set", "model=llama-3.1-8b", "--set", "precision=bf16", "-H", "h100-sxm", "--format", "json")


class TestLlama:
    def test_decode_of_one_sequence_without_context_streams_the_weights(self, roofline):
        sizes = ("--set", "batch=1", "--set", "context=0")
        summary = one(roofline("analyze", "decode", *LLAMA, *sizes))["summary"]
        assert summary["bytes"] == pytest.approx(15.009e9, rel=0.01)
        assert summary["floor_s"] == pytest.approx(4.48e-3, rel=0.01)
        assert summary["bound"] == "memory"

    def test_decode_of_64_sequences_at_8k(self, roofline):
        sizes = ("--set", "batch=64", "--set", "context=8192")
        summary = one(roofline("analyze", "decode", *LLAMA, *sizes))["summary"]
        assert summary["bytes"] == pytest.approx(83.7e9, rel=0.01)
        assert summary["floor_s"] == pytest.approx(25.0e-3, rel=0.01)
        assert summary["intensity"] == pytest.approx(14.7, rel=0.01)

    def test_prefill_of_4096_tokens(self, roofline):
        sizes = ("--set", "batch=1", "--set", "tokens=4096", "--set", "prefix=0")
        result = one(roofline("analyze", "prefill", *LLAMA, *sizes))
        summary = result["summary"]
        assert summary["flops_by_engine"]["tensor:bf16"] == pytest.approx(61.57e12, rel=1e-3)
        assert summary["bound"] == "compute"
        held = {"linear": 0.0, "attention": 0.0, "lm-head": 0.0}
        for op in result["ops"]:
            if op["kind"] in held:
                held[op["kind"]] += op["count"] * op["floor_s"]
        assert held["linear"] == pytest.approx(57.8e-3, rel=0.01)
        assert held["attention"] == pytest.approx(4.4e-3, rel=0.02)
        assert held["lm-head"] == pytest.approx(0.3e-3, rel=0.05)
        assert sum(held.values()) == pytest.approx(62.5e-3, rel=0.01)
        assert summary["floor_s"] > sum(held.values())  # what the elementwise ops add is visible
        assert summary["shares"]["hbm"] == pytest.approx(1 - sum(held.values()) / summary["floor_s"], abs=0.01)


LINEAR = ("--set", "in_features=4096", "--set", "out_features=4096", "-H", "h100-sxm", "--format", "json")


class TestLinear:
    def test_intensity_of_64_rows(self, roofline):
        summary = one(roofline("analyze", "linear", *LINEAR, "--set", "tokens=64"))["summary"]
        assert round(summary["intensity"], 2) == 62.06

    @pytest.mark.parametrize(
        ("weights", "crossing", "first"), [("bf16", 345.1, 346), ("int4-g128", 88.9, 89), ("int4-g128-zp", 91.7, 92)]
    )
    def test_crossover_batch(self, roofline, weights, crossing, first):
        dtypes = ("--set", f"weight_dtype={weights}", "--set", "compute=bf16")
        flips = one(roofline("analyze", "linear", *LINEAR, *dtypes, "--set", "tokens=1"))["what_if"]["flips"]
        (flip,) = [flip for flip in flips if flip["parameter"] == "tokens"]
        assert flip["crossing"] == pytest.approx(crossing, abs=0.1)
        assert flip["value"] == first
        assert flip["bound"] == "compute"
        assert (
            one(roofline("analyze", "linear", *LINEAR, *dtypes, "--set", f"tokens={first}"))["summary"]["bound"]
            == "compute"
        )
        assert (
            one(roofline("analyze", "linear", *LINEAR, *dtypes, "--set", f"tokens={first - 1}"))["summary"]["bound"]
            == "memory"
        )


class TestRecord:
    def test_shares_add_up_over_counts(self, roofline):
        result = one(roofline("analyze", "decode", "--format", "json"))
        summary, ops = result["summary"], result["ops"]
        assert sum(op["share"] for op in ops) == pytest.approx(1)
        assert sum(op["count"] * op["floor_s"] for op in ops) == pytest.approx(summary["floor_s"])
        assert sum(op["count"] * op["bytes"] for op in ops) == summary["bytes"]
        assert sum(op["count"] * op["flops"] for op in ops) == summary["flops"]
        for op in ops:
            assert op["bytes"] == sum(tensor["traffic_bytes"] for tensor in op["tensors"])

    def test_results_stand_in_the_order_of_the_command_line(self, roofline):
        outcome = roofline("analyze", "linear", "attention-naive", "-H", "b200", "-H", "h100", "--format", "json")
        found = [(result["workload"]["name"], result["hardware"]["name"]) for result in outcome.json["results"]]
        assert found == [
            ("linear", "b200-sxm"),
            ("linear", "h100-sxm"),
            ("attention-naive", "b200-sxm"),
            ("attention-naive", "h100-sxm"),
        ]

    def test_the_same_command_gives_the_same_bytes(self, roofline):
        assert (
            roofline("analyze", "decode", "--format", "json").out
            == roofline("analyze", "decode", "--format", "json").out
        )

    def test_integers_are_integers(self, roofline):
        summary = one(roofline("analyze", "decode", "--format", "json"))["summary"]
        for key in ("flops", "bytes", "resident_bytes", "capacity_bytes"):
            assert isinstance(summary[key], int)

    def test_csv_has_a_line_an_op(self, roofline):
        lines = list(csv.DictReader(io.StringIO(roofline("analyze", "attention-naive", "--format", "csv").out)))
        assert [line["path"] for line in lines] == ["scores", "softmax", "values"]
        assert {line["schema"] for line in lines} == {"roofline/analysis/1"}


class TestHardwareChoice:
    def test_the_option_wins_and_the_output_says_so(self, roofline, monkeypatch):
        monkeypatch.setenv("ROOFLINE_HARDWARE", "a100")
        assert (
            one(roofline("analyze", "linear", "-H", "h100", "--format", "json"))["hardware"]["chosen"]
            == "as asked with -H"
        )

    def test_then_the_descriptor_then_the_environment_then_the_default(self, roofline, monkeypatch, tmp_path):
        body = "op: linear\ntokens: 1\nin_features: 64\nout_features: 64\n"
        (tmp_path / "named.yaml").write_text(body + "hardware: l40s\n")
        (tmp_path / "plain.yaml").write_text(body)
        monkeypatch.setenv("ROOFLINE_HARDWARE", "a100")
        assert one(roofline("analyze", "named.yaml", "--format", "json"))["hardware"]["name"] == "l40s"
        assert one(roofline("analyze", "plain.yaml", "--format", "json"))["hardware"]["name"] == "a100-sxm-80gb"
        monkeypatch.delenv("ROOFLINE_HARDWARE")
        chosen = one(roofline("analyze", "plain.yaml", "--format", "json"))["hardware"]
        assert chosen["name"] == "h100-sxm"
        assert "default" in chosen["chosen"]


class TestScreens:
    def test_the_first_screen_answers_the_question(self, roofline):
        out = roofline("analyze", "decode").out
        head = out[: out.index("\n op" if "\n op" in out else "op  ")]
        assert "Memory bound: hbm holds" in head
        assert "against a ridge of 295" in head

    def test_verbose_shows_the_bytes_of_every_tensor(self, roofline):
        out = roofline("analyze", "linear", "-v").out
        assert "read weight 4096x4096 bf16" in out

    def test_several_devices_stand_side_by_side(self, roofline):
        out = roofline("analyze", "decode", "-H", "h100", "-H", "h200", "-H", "b200").out
        for name in ("h100-sxm", "h200-sxm", "b200-sxm"):
            assert name in out.splitlines()[0] + out
        assert len([line for line in out.splitlines() if line.startswith("decode")]) == 3

    @pytest.mark.parametrize("width", ["80", "100", "160"])
    def test_no_line_is_wider_than_the_terminal(self, roofline, monkeypatch, width):
        monkeypatch.setenv("COLUMNS", width)
        for line in roofline("analyze", "decode", "-v").out.splitlines():
            assert len(line) <= int(width)

    def test_a_catalogue_name_with_the_extension_works_in_an_empty_directory(self, roofline):
        assert roofline("analyze", "decode.yaml").code == 0

    def test_only_the_result_goes_to_stdout(self, roofline):
        outcome = roofline("analyze", "linear", "-o", "out.json")
        assert outcome.out == ""
        assert "out.json" in outcome.err
