"""The mistakes of spec tables, each put into one of our files: the rules must find it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from roofline.errors import RooflineError
from roofline.hardware import lint, load_file
from tests.hardware_files import CHECKOUT, DELETE, errors, written


@pytest.mark.parametrize(
    ("device", "where", "value", "code"),
    [
        # the sparse figure in the place of the dense one
        ("h100-sxm", "peaks/tensor:bf16/value", "1979 TFLOP/s", "sparse"),
        ("h100-sxm", "peaks/tensor:fp8/value", "3958 TFLOP/s", "sparse"),
        ("l4", "peaks/tensor:bf16/value", "242 TFLOP/s", "sparse"),
        ("l4", "peaks/tensor:int8/value", "485 TOP/s", "sparse"),
        ("l40", "peaks/tensor:bf16/value", "362 TFLOP/s", "sparse"),
        ("l40s", "peaks/tensor:fp8/value", "1466 TFLOP/s", "sparse"),
        ("gh200-96gb", "peaks/tensor:fp16/value", "1979 TFLOP/s", "sparse"),
        ("b100-sxm", "peaks/tensor:bf16/value", "3500 TFLOP/s", "sparse"),
        ("b200-sxm", "peaks/tensor:bf16/value", "4500 TFLOP/s", "sparse"),
        ("gb200", "peaks/tensor:bf16/value", "4500 TFLOP/s", "sparse"),
        ("b300-sxm", "peaks/tensor:bf16/value", "3500 TFLOP/s", "sparse"),
        ("b300-sxm", "peaks/tensor:fp8/value", "7000 TFLOP/s", "sparse"),
        ("b300-sxm", "peaks/tensor:int8/value", "4500 TOP/s", "sparse"),
        ("gb300", "peaks/tensor:int8/value", "330 TOP/s", "sparse"),
        ("mi210", "peaks/tensor:int8/value", "362 TOP/s", "sparse"),
        ("mi300x", "peaks/tensor:fp16/value", "2615 TFLOP/s", "sparse"),
        ("mi355x", "peaks/tensor:fp8/value", "10.1 PFLOP/s", "sparse"),
        ("jetson-agx-orin-64gb", "peaks/tensor:int8/value", "170 TOP/s", "sparse"),
        ("gb10", "peaks/tensor:fp4/value", "1 PFLOP/s", "sparse"),
        ("a100-sxm-80gb", "peaks/tensor:tf32/value", "312 TFLOP/s", "sparse"),
        # other wrong peaks
        ("h100-sxm", "peaks/tensor:tf32/value", "156 TFLOP/s", "wrong-peak"),
        ("h100-sxm", "peaks/tensor:bf16/value", 1000 * 2**40, "wrong-peak"),
        ("a100-sxm-80gb", "peaks/tensor:bf16/value", "156 TFLOP/s", "wrong-peak"),
        ("a10g", "peaks/tensor:fp16/value", "125 TFLOP/s", "wrong-peak"),
        ("trainium2", "peaks/tensor:bf16/value", "420 TFLOP/s", "wrong-peak"),
        ("xeon-8480plus", "peaks/tensor:bf16/per_unit_per_clock", 2048, "wrong-peak"),
        ("h100-sxm", "units/count", 144, "wrong-peak"),
        ("rtx-4090", "peaks/tensor:bf16", {"value": "330.3 TFLOP/s", "source": "waredb"}, "accumulate"),
        # engines that are not there
        ("a100-sxm-80gb", "peaks/tensor:fp8", {"value": "624 TFLOP/s", "source": "stas00"}, "no-such-engine"),
        ("h100-sxm", "peaks/tensor:int4", {"value": "3958 TOP/s", "source": "stas00"}, "no-such-engine"),
        ("v100-sxm-16gb", "peaks/tensor:bf16", {"value": "125 TFLOP/s", "source": "lightning"}, "no-such-engine"),
        ("l40s", "peaks/tensor:fp4", {"value": "1466 TFLOP/s", "source": "datasheet"}, "no-such-engine"),
        ("mi300x", "peaks/tensor:fp4", {"value": "5230 TFLOP/s", "source": "stas00"}, "no-such-engine"),
        # one clock for all engines
        ("h100-sxm", "clocks/tensor/value", "1980 MHz", "one-clock"),
        ("b200-sxm", "clocks", {"boost": {"value": "1965 MHz", "source": "stas00"}}, "one-clock"),
        # memory
        ("l4", "memory/0/bandwidth", "3350 GB/s", "wrong-bandwidth"),
        ("gb200", "memory/0/bandwidth", "13.4 TB/s", "wrong-bandwidth"),
        ("h100-nvl", "memory/0/bandwidth", "7.8 TB/s", "wrong-bandwidth"),
        ("h100-nvl", "memory/0/capacity", "188 GiB", "wrong-capacity"),
        ("v100-sxm-16gb", "memory/0/capacity", "32 GiB", "wrong-capacity"),
        ("l40s", "memory/0/usable", "49 GiB", "wrong-capacity"),
        ("rtx-5090", "memory/0/bandwidth", 1.792e15, "unit-slip"),
        ("h100-sxm", "memory/0/bandwidth", "3.35 MB/s", "unit-slip"),
        ("h100-sxm", "memory/0/capacity", "80 MiB", "unit-slip"),
        ("h100-sxm", "memory/0/capacity", "80 GB", "decimal-capacity"),
        ("h100-sxm", "memory/1/capacity", "50 MB", "decimal-capacity"),
        ("h100-sxm", "memory/0/bandwidth", "3.35 Tb/s", "bad-quantity"),
        ("tpu-v5e", "memory/0/bandwidth", "800 Gbps", "bad-quantity"),
        ("h100-sxm", "memory/0/bandwidth", DELETE, "no-bandwidth"),
        ("h100-sxm", "memory/0/scope", "unit", "no-bandwidth"),
        ("h100-sxm", "memory/1/bandwidth", "3.2 TB/s", "wrong-order"),
        ("h100-sxm", "memory/1/name", "hbm", "duplicate-name"),
        # links
        ("h100-sxm", "links/0/bandwidth", "900 GB/s", "bidirectional"),
        ("b200-sxm", "links/0/bandwidth", "1800 GB/s", "bidirectional"),
        ("a100-sxm-80gb", "links/0/bandwidth", "600 GB/s", "bidirectional"),
        ("h100-sxm", "links/1/bandwidth", "128 GB/s", "bidirectional"),
        ("b200-sxm", "links/1/bandwidth", "128 GB/s", "bidirectional"),
        ("gh200-96gb", "links/2/bandwidth", "900 GB/s", "bidirectional"),
        ("gaudi3", "links/0/bandwidth", "1200 GB/s", "bidirectional"),
        ("h100-sxm", "links/0/bandwidth", "450 Gb/s", "bad-quantity"),
        ("mi300x", "links/0/bandwidth", "448 TB/s", "unit-slip"),
        ("h100-sxm", "links/1/name", "nvlink", "duplicate-name"),
        # slips of units
        ("h100-sxm", "clocks/vector/value", "1980 GHz", "unit-slip"),
        ("h100-sxm", "power/value", "700 kW", "unit-slip"),
        ("h100-sxm", "launch_overhead/value", "4 s", "unit-slip"),
        ("tpu-v6e", "peaks/tensor:bf16/value", "918 GFLOP/s", None),
        ("tpu-v6e", "peaks/tensor:bf16/value", "918 MFLOP/s", "unit-slip"),
        ("tpu-v6e", "peaks/tensor:bf16/value", "918 PFLOP/s", "unit-slip"),
        # what a check needs
        ("h100-sxm", "peaks/tensor:bf16/per_unit_per_clock", DELETE, "unchecked"),
        ("h100-sxm", "peaks/tensor:bf16/clock", "tensors", "unknown-clock"),
        ("h100-sxm", "peaks/tensor:bf16/source", "stass00", "unknown-source"),
        ("trainium1", "notes", DELETE, "unexplained"),
        # a sparse number under any name
        ("h100-sxm", "peaks/tensor:bf16/sparse", "1979 TFLOP/s", "sparse"),
        ("h100-sxm", "sparse_peaks", {"tensor:bf16": "1979 TFLOP/s"}, "sparse"),
    ],
)
def test_each_mistake_is_found(tmp_path: Path, device: str, where: str, value: Any, code: str | None) -> None:
    path = written(tmp_path, device, {where: value})
    codes = {finding.code for finding in errors(path)}
    if code is None:
        assert not codes
        return
    assert code in codes
    with pytest.raises(RooflineError):
        load_file(path)


@pytest.mark.parametrize(
    ("device", "edits", "code"),
    [
        # none of these has a rate and a clock to compute the peak from
        ("h100-sxm", {"peaks/tensor:bf16/value": "1979 TFLOP/s", "peaks/tensor:fp16/value": "1979 TFLOP/s"}, "sparse"),
        ("a100-sxm-80gb", {"peaks/tensor:int8/value": "1248 TOP/s"}, "sparse"),
        ("h100-sxm", {"peaks/tensor:tf32/value": "156 TFLOP/s"}, "wrong-ratio"),
        ("h100-sxm", {"peaks/tensor:fp8/value": "3958 TFLOP/s"}, "sparse"),
        ("mi355x", {"peaks/tensor:fp8/value": "10.1 PFLOP/s"}, "sparse"),
        ("rtx-5090", {"peaks/tensor:fp4/value": "3352 TFLOP/s"}, "sparse"),
    ],
)
def test_a_sparse_peak_is_found_by_its_ratio_alone(
    tmp_path: Path, device: str, edits: dict[str, Any], code: str
) -> None:
    peaks = yaml.safe_load((CHECKOUT / "hardware" / f"{device}.yaml").read_text())["peaks"]
    for name, peak in peaks.items():
        for key in {"per_unit_per_clock", "checked", "clock"} & peak.keys():
            edits[f"peaks/{name}/{key}"] = DELETE
    nothing_is_out_of_reach = {
        "clocks": {"base": {"value": "7 GHz", "source": "nothing is out of reach at this clock"}}
    }
    path = written(tmp_path, device, edits | nothing_is_out_of_reach)
    assert code in {finding.code for finding in errors(path)}


@pytest.mark.parametrize("capability", [DELETE, "9.9", "sm_90"])
@pytest.mark.parametrize(
    ("where", "value", "code"),
    [
        ("peaks/tensor:fp8/value", "3958 TFLOP/s", "sparse"),
        ("peaks/tensor:bf16/value", "1979 TFLOP/s", "sparse"),
        ("peaks/vector:fp32/value", "20 TFLOP/s", "sparse"),
        ("links/0/bandwidth", "900 GB/s", "bidirectional"),
        ("links/0", {"name": "nvlink", "bandwidth": "900 GB/s", "source": "datasheet"}, "bidirectional"),
        ("links/0", {"name": "fabric", "bandwidth": "3.6 TB/s", "source": "datasheet"}, "bidirectional"),
        ("name", "h100-sxm", "not-checked"),
    ],
)
def test_a_device_of_an_unknown_generation_is_warned_about(
    tmp_path: Path, capability: Any, where: str, value: Any, code: str
) -> None:
    edits: dict[str, Any] = {"compute_capability": capability, where: value}
    for name in ("tensor:fp8", "tensor:bf16", "vector:fp32"):
        edits |= {f"peaks/{name}/per_unit_per_clock": DELETE, f"peaks/{name}/checked": DELETE}
    found = lint(written(tmp_path, "h100-sxm", edits))
    expected = {code, "not-checked"}
    assert {finding.code for finding in found} == expected
    assert {finding.severity for finding in found} == {"warning"}


@pytest.mark.parametrize("bandwidth", ["1e-300 TB/s", "1 B/s", "20 TB/s"])
def test_no_link_has_such_a_bandwidth(tmp_path: Path, bandwidth: str) -> None:
    found = errors(written(tmp_path, "h100-sxm", {"links/0/bandwidth": bandwidth}))
    assert "unit-slip" in {finding.code for finding in found}


def test_a_memory_kind_too_slow_for_its_name_is_a_warning(tmp_path: Path) -> None:
    (finding,) = lint(written(tmp_path, "h100-pcie", {"memory/0/kind": "HBM3"}))
    assert (finding.severity, finding.code) == ("warning", "wrong-kind")


def test_a_geforce_with_fp4_and_halved_fp8_should_list_mxfp8(tmp_path: Path) -> None:
    found = lint(written(tmp_path, "rtx-5090", {"peaks/tensor:mxfp8": DELETE}))
    assert "missing-mxfp8" in {finding.code for finding in found if finding.severity == "warning"}


def test_messages_say_what_would_be_right(tmp_path: Path) -> None:
    def message(where: str, value: Any) -> str:
        return errors(written(tmp_path, "h100-sxm", {where: value}))[0].message

    assert message("peaks/tensor:bf16/value", "1979 TFLOP/s") == (
        "1.979 PFLOP/s is twice 132 SM x 4096 x 1.830 GHz = 989.4 TFLOP/s: it looks sparse, and peaks are dense"
    )
    assert message("links/0/bandwidth", "900 GB/s") == (
        "900 GB/s: that is both directions; NVLink 4 has 450 GB/s in one"
    )
    assert message("memory/0/capacity", "80 GB") == (
        "'80 GB' is in powers of 1000, and memory is built in powers of 1024: write 80 GiB"
    )
    assert "one clock for tensor and vector engines" in message("clocks/tensor/value", "1980 MHz")
