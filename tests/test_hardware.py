"""Hardware: reading a file, asking it, its record, and what is refused."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import hardware
from roofline.engines import SPECIAL, VECTOR, Engine, tensor
from roofline.errors import RooflineError
from roofline.hardware import Hardware, lint, load, load_file
from tests.hardware_files import CHECKOUT, DELETE, errors, written

# ---------------------------------------------------------------- asking


def test_an_alias_and_a_path_give_the_same_device() -> None:
    assert load("h100") == load("h100-sxm") == load(str(CHECKOUT / "hardware" / "h100-sxm.yaml"))


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(RooflineError) as caught:
        load("h10-sxm")
    assert caught.value.code == "unknown-hardware"
    assert "h100-sxm" in caught.value.suggestions


def test_a_name_is_not_matched_by_a_part_of_it() -> None:
    assert load("gb200").name == "gb200"
    assert load("b200").name == "b200-sxm"
    with pytest.raises(RooflineError):
        load("b20")
    with pytest.raises(RooflineError):
        load("NVIDIA GB200")


def test_numbers_are_in_base_units() -> None:
    h100 = load("h100")
    assert h100.peaks["tensor:bf16"].value == 989.4e12
    assert h100.main.name == "hbm"
    assert h100.main.capacity == 80 * 2**30
    assert h100.bandwidth == 3.35e12
    assert h100.units.count == 132
    assert h100.clocks["tensor"].value == 1830e6
    assert {link.name: link.bandwidth for link in h100.links} == {"nvlink": 450e9, "pcie": 64e9}
    assert h100.power is not None and h100.power.value == 700
    assert h100.launch_overhead_s == pytest.approx(4e-6, rel=1e-12)


def test_nothing_changes_after_reading() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        load("h100").name = "h200"  # type: ignore[misc]


def test_ridges() -> None:
    assert load("h100").ridge(tensor("bf16")) == pytest.approx(295.34, abs=0.01)
    assert load("h200").ridges()["bf16"] == pytest.approx(206.1, abs=0.05)
    assert load("b200").ridges()["bf16"] == pytest.approx(292.2, abs=0.05)
    assert list(load("h100").ridges()) == ["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8"]


def test_ridges_tell_accumulate_types_apart() -> None:
    ridges = load("rtx-4090").ridges()
    assert ridges["fp16+fp16"] == pytest.approx(2 * ridges["fp16"], rel=1e-3)


def test_a_matmul_without_a_matrix_engine_for_it_runs_on_the_lanes() -> None:
    h100 = load("h100")
    assert str(h100.peak(tensor("fp32")).engine) == "vector:fp32"
    assert str(h100.peak(tensor("fp64")).engine) == "tensor:fp64"  # which it has
    assert str(load("l40s").peak(tensor("fp32")).engine) == "vector:fp32"
    assert str(load("mi300x").peak(tensor("fp32")).engine) == "tensor:fp32"


def test_a_device_with_no_matrix_engine_computes_on_its_lanes() -> None:
    m4 = load("m4-max")
    assert str(m4.peak(tensor("fp16")).engine) == "vector:fp16"
    with pytest.raises(RooflineError, match=r"it computes in fp32, fp16$"):
        m4.peak(tensor("bf16"))


def test_lanes_do_not_stand_in_for_a_missing_matrix_engine_of_another_dtype() -> None:
    v100 = load("v100")  # it has tensor cores, and no bf16 at all
    with pytest.raises(RooflineError) as caught:
        v100.peak(tensor("bf16"))
    assert caught.value.code == "no-engine"


def test_block_scaled_fp8_runs_at_the_fp8_rate_only_where_operands_have_block_scales() -> None:
    assert load("b200").peak(tensor("mxfp8")).value == load("b200").peak(tensor("fp8")).value
    assert load("mi355x").peak(tensor("mxfp8")).value == 5033e12
    assert load("rtx-5090").peak(tensor("mxfp8")).value == 838e12  # fp8 is at half rate there
    with pytest.raises(RooflineError):
        load("h100").peak(tensor("mxfp8"))


def test_accumulate_types_do_not_stand_in_for_each_other() -> None:
    assert load("rtx-4090").peak(Engine.parse("tensor:fp16+fp16")).value == 330.3e12
    assert load("h100").ceiling(Engine.parse("tensor:fp16+fp16")) is None


def test_a_missing_tensor_engine_names_what_there_is() -> None:
    with pytest.raises(RooflineError) as caught:
        load("a100").peak(tensor("fp8"))
    assert str(caught.value) == (
        "a100-sxm-80gb has no fp8 tensor engine; it computes in fp64, fp32, tf32, bf16, fp16, int8"
    )
    assert caught.value.exit_code == 2


def test_a_missing_vector_or_special_ceiling_is_none() -> None:
    tpu = load("tpu-v5e")
    assert tpu.ceiling(VECTOR) is None
    assert tpu.ceiling(SPECIAL) is None
    with pytest.raises(RooflineError, match="no vector:fp32 engine"):
        tpu.peak(VECTOR)


def test_a_local_device_is_recognised_by_its_exact_name_and_memory() -> None:
    found = hardware.by_device_name("NVIDIA H100 80GB HBM3", 85_520_809_984)
    assert found is not None and found.name == "h100-sxm"
    assert hardware.by_device_name("NVIDIA H100 80GB HBM3", 42_000_000_000) is None  # a slice of one
    assert hardware.by_device_name("NVIDIA H100", 85_520_809_984) is None
    assert hardware.by_device_name("H100", 85_520_809_984) is None
    assert hardware.by_device_name("", 85_520_809_984) is None


def test_loading_a_device_loads_no_heavy_module() -> None:
    script = (
        "import sys; from roofline import hardware; hardware.load('h100');"
        "print(sorted({'torch', 'numpy', 'sympy', 'matplotlib', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------- records


def test_the_record_has_every_number_with_its_source() -> None:
    record = hardware.as_json(load("h100"))
    assert json.loads(json.dumps(record)) == record
    assert record["schema"] == "roofline/hardware/1"
    assert record["ridge"]["bf16"] == pytest.approx(295.34, abs=0.01)
    assert record["peaks"]["tensor:bf16"]["value"] == 989.4e12
    assert record["peaks"]["tensor:bf16"]["checked"] == "independent"
    assert any("pytorch/torchtitan" in source for source in record["peaks"]["tensor:bf16"]["source"])
    assert record["memory"][0]["capacity_bytes"] == 80 * 2**30
    assert record["memory"][0]["bandwidth_bytes_per_s"] == 3.35e12
    assert record["links"][0]["devices"] == 8
    assert record["power"]["value"] == 700
    assert record["launch_overhead"]["confidence"] == "unverified"
    assert record["measured"] is None


def test_a_device_without_the_optional_parts_has_a_record_too() -> None:
    record = hardware.as_json(load("tpu-v4"))
    assert record["power"] is None and record["launch_overhead"] is None and record["clocks"] == {}


def test_the_committed_schema_is_current() -> None:
    committed = json.loads((CHECKOUT / "docs" / "schema" / "hardware.json").read_text())
    assert committed == hardware.json_schema(), "run: roofline schema hardware > docs/schema/hardware.json"


def test_the_schema_takes_a_good_file_and_refuses_a_bad_one(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(hardware.json_schema())
    validator.check_schema(hardware.json_schema())
    good = yaml.safe_load((CHECKOUT / "hardware" / "h100-sxm.yaml").read_text())
    assert not list(validator.iter_errors(good))
    for edits in ({"units/kind": DELETE}, {"power/volts": 12}, {"peaks": {}}, {"memory/0/scope": "rack"}):
        bad = yaml.safe_load(written(tmp_path, "h100-sxm", edits).read_text())
        assert list(validator.iter_errors(bad)), edits


# ---------------------------------------------------------------- measured ceilings

MEASURED = {
    "date": "2026-12-01",
    "device": "NVIDIA H100 80GB HBM3",
    "driver": "570.86",
    "versions": {"torch": "2.13.0"},
    "ceilings": {
        "hbm": {"value": "3.02 TB/s", "low": "2.98 TB/s", "high": "3.05 TB/s"},
        "hbm.copy": {"value": 2.9e12, "low": 2.85e12, "high": 2.95e12},
        "tensor:bf16": {"value": "790 TFLOP/s", "low": "780 TFLOP/s", "high": "801 TFLOP/s"},
        "launch": {"value": "2.1 us", "low": "2 us", "high": "2.4 us"},
    },
}


def test_measured_ceilings_stand_beside_the_datasheet(tmp_path: Path) -> None:
    h100 = load_file(written(tmp_path, "h100-sxm", {"measured": MEASURED}))
    assert h100.measured is not None
    assert h100.measured.ceilings["tensor:bf16"].value == 790e12
    assert h100.measured.ceilings["launch"].high == pytest.approx(2.4e-6, rel=1e-12)
    assert h100.peak(tensor("bf16")).value == 989.4e12
    record = hardware.as_json(h100)["measured"]
    assert record["ceilings"]["hbm"] == {"value": 3.02e12, "low": 2.98e12, "high": 3.05e12}
    assert json.loads(json.dumps(record)) == record


@pytest.mark.parametrize(
    ("where", "value", "code"),
    [
        ("ceilings/hbm3", {"value": "3 TB/s", "low": "3 TB/s", "high": "3 TB/s"}, "unknown-ceiling"),
        ("ceilings/tensor:bf61", {"value": 1e14, "low": 1e14, "high": 1e14}, "unknown-engine"),
        ("ceilings/hbm/low", "3.04 TB/s", "bad-spread"),
        ("ceilings/hbm/value", "790 TFLOP/s", "bad-quantity"),
        ("ceilings/tensor:bf16/value", "3 TB/s", "bad-quantity"),
        ("ceilings/hbm/high", DELETE, "missing-key"),
        ("ceilings/hbm", 3e12, "bad-value"),
        ("ceilings", {}, "bad-value"),
        ("date", DELETE, "missing-key"),
        ("kernel", "6.8", "unknown-key"),
    ],
)
def test_wrong_measured_sections_are_refused(tmp_path: Path, where: str, value: Any, code: str) -> None:
    path = written(tmp_path, "h100-sxm", {"measured": json.loads(json.dumps(MEASURED)), f"measured/{where}": value})
    assert [finding.code for finding in errors(path)] == [code]


# ---------------------------------------------------------------- faults of the file


def test_a_fault_has_its_file_line_column_and_key(tmp_path: Path) -> None:
    text = (CHECKOUT / "hardware" / "h100-sxm.yaml").read_text()
    path = tmp_path / "h100-sxm.yaml"
    path.write_text(text.replace("{value: 700 W", "{valeu: 700 W"))
    with pytest.raises(RooflineError) as caught:
        load_file(path)
    error = caught.value
    line = next(i for i, row in enumerate(text.splitlines(), 1) if row.startswith("power:"))
    assert (error.file, error.line, error.column, error.key) == (str(path), line, 9, "power.valeu")
    assert error.code == "unknown-key"
    assert error.suggestions == ("value",)


@pytest.mark.parametrize(
    ("where", "value", "code", "key"),
    [
        ("peak", {}, "unknown-key", "peak"),
        ("memory/0/bandwith", "3.35 TB/s", "unknown-key", "memory.0.bandwith"),
        ("peaks/tensor:bf16/source", DELETE, "missing-key", "peaks.tensor:bf16.source"),
        ("memory/1/source", DELETE, "missing-key", "memory.1.source"),
        ("links/0/source", [], "bad-value", "links.0.source"),
        ("power/source", "", "bad-value", "power.source"),
        ("title", DELETE, "missing-key", "title"),
        ("title", 5, "bad-value", "title"),
        ("units/count", 0, "bad-value", "units.count"),
        ("units/count", "132", "bad-value", "units.count"),
        ("units/count", 10**400, "bad-value", "units.count"),
        ("units", [132], "bad-value", "units"),
        ("memory", {}, "bad-value", "memory"),
        ("peaks", [], "bad-value", "peaks"),
        ("status", "rumoured", "bad-value", "status"),
        ("peaks/tensor:bf16/confidence", "hearsay", "bad-value", "peaks.tensor:bf16.confidence"),
        ("peaks/tensor:bf61", {"value": "1 TFLOP/s", "source": "stas00"}, "unknown-engine", "peaks.tensor:bf61"),
        ("peaks/bf16", {"value": "1 TFLOP/s", "source": "stas00"}, "unknown-engine", "peaks.bf16"),
        ("peaks/tensor:bf16+fp32", {"value": "1 TFLOP/s", "source": "stas00"}, "unknown-engine", None),
        ("peaks/tensor:bf16/value", "989.4 TB/s", "bad-quantity", "peaks.tensor:bf16.value"),
        ("peaks/tensor:bf16/value", 0, "bad-quantity", "peaks.tensor:bf16.value"),
        ("peaks/tensor:bf16/value", -1, "bad-quantity", "peaks.tensor:bf16.value"),
        ("power/value", True, "bad-quantity", "power.value"),
        ("name", "H100 SXM", "bad-name", "name"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, where: str, value: Any, code: str, key: str | None) -> None:
    path = written(tmp_path, "h100-sxm", {where: value})
    found = [(finding.code, finding.key) for finding in errors(path)]
    assert (code, key or where.replace("/", ".")) in found
    with pytest.raises(RooflineError) as caught:
        load_file(path)
    assert caught.value.line is not None


def test_lint_lists_every_fault_and_not_only_the_first(tmp_path: Path) -> None:
    path = written(tmp_path, "h100-sxm", {"titel": "H100", "power/source": DELETE, "memory/0/capacity": "80 GB"})
    found = errors(path)
    assert {finding.code for finding in found} == {"unknown-key", "missing-key", "decimal-capacity"}
    assert [finding.line for finding in found] == sorted(finding.line or 0 for finding in found)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("aeB/s10 .-:", max_size=9) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["value", "source", "x"]), inner),
    max_leaves=6,
)


def places(data: Any, at: str = "") -> list[str]:
    """The place of every value in a file."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place for key, value in items for place in (f"{at}{key}", *places(value, f"{at}{key}/"))]


PLACES = places(yaml.safe_load((CHECKOUT / "hardware" / "h100-sxm.yaml").read_text()))


@settings(max_examples=150, deadline=None)
@given(where=st.sampled_from(PLACES), value=anything)
def test_no_file_makes_lint_raise(tmp_path_factory: pytest.TempPathFactory, where: str, value: Any) -> None:
    path = written(tmp_path_factory.mktemp("fuzz"), "h100-sxm", {where: value})
    for finding in lint(path):
        assert finding.line is not None and "\n" not in finding.message


def test_lint_reports_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert [finding.code for finding in lint(tmp_path / "absent.yaml")] == ["missing-file"]
    (tmp_path / "empty.yaml").write_text("")
    assert [finding.code for finding in lint(tmp_path / "empty.yaml")] == ["empty-file"]


def test_a_file_of_ones_own_may_be_called_otherwise(tmp_path: Path) -> None:
    path = written(tmp_path, "h100-sxm", {"name": "my-h100"})
    (finding,) = lint(path)
    assert (finding.severity, finding.code, finding.key) == ("warning", "wrong-name", "name")
    assert load_file(path).name == "my-h100"


def test_warnings_do_not_keep_a_file_from_loading(tmp_path: Path) -> None:
    path = written(tmp_path, "h100-sxm", {"sources/blog": "a blog"})
    (finding,) = lint(path)
    assert (finding.severity, finding.code, finding.key) == ("warning", "unused-source", "sources.blog")
    assert isinstance(load_file(path), Hardware)
