"""The devices that come with the program: each file clean, each number sourced, the disputed ones as ruled."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from roofline import catalog, hardware
from roofline.engines import Engine, tensor
from roofline.hardware import Hardware, lint, load, load_file
from roofline.hardware.rates import GEFORCE_HALVED, TENSOR_RATES
from tests.reference import CORPUS, NO_CORPUS

CHECKOUT = Path(__file__).resolve().parents[1]
FILES = sorted(path for path in (CHECKOUT / "hardware").glob("*.yaml") if path.stem != "aliases")
NAMES = [path.stem for path in FILES]

each_file = pytest.mark.parametrize("path", FILES, ids=NAMES)


def peak(device: str, engine: str) -> float:
    return load(device).peaks[engine].value


# ---------------------------------------------------------------- the files


def test_the_catalogue_is_what_the_folder_holds() -> None:
    assert hardware.catalogue() == NAMES
    assert len(NAMES) >= 45
    vendors = {load(name).vendor for name in NAMES}
    assert vendors == {"NVIDIA", "AMD", "Intel", "Google", "AWS", "Apple"}


@each_file
def test_a_file_is_clean(path: Path) -> None:
    known = [] if path.stem != "rubin" else ["not-checked"]  # a compute capability that nobody has published
    assert [finding.code for finding in lint(path)] == known


@each_file
def test_a_file_tells_editors_its_schema(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    comment = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert comment and (path.parent / comment[1]).resolve() == CHECKOUT / "docs" / "schema" / "hardware.json"


@each_file
def test_every_number_has_a_source(path: Path) -> None:
    device = load_file(path)
    record = hardware.as_json(device)
    numbers = [record["units"], *record["clocks"].values(), *record["peaks"].values(), *record["memory"]]
    numbers += [*record["links"], *(record[key] for key in ("power", "launch_overhead") if record[key])]
    for number in numbers:
        assert number["source"], number
        assert all(len(source) > 5 for source in number["source"]), number


@each_file
def test_what_was_recalled_is_marked(path: Path) -> None:
    device = load_file(path)
    parts = [device.units, *device.clocks.values(), *device.peaks.values(), *device.memory, *device.links]
    parts += [part for part in (device.power, device.launch_overhead) if part]
    for part in parts:
        if all(re.search("recalled|assumed|rule of thumb", source) for source in device.cite(part)):
            assert part.confidence == "unverified", part
    # and no number rests on nothing else without saying so
    text = path.read_text()
    assert ("recalled, not re-read" in text) <= ("unverified" in text)


@each_file
def test_no_peak_is_sparse(path: Path) -> None:
    """Every tensor peak against the dense rate of its architecture, whatever the file says its rate is."""
    device = load_file(path)
    known = TENSOR_RATES.get(device.compute_capability or "")
    for name, each in device.peaks.items():
        computed = device.computed_peak(each)
        if computed is not None:
            assert each.value < 1.2 * computed, name
        clock = device.clock_of(each)
        rate = known.rate(each.engine.dtype) if known and each.engine.unit == "tensor" else None
        if rate is not None and clock is not None:
            assert each.value < 1.1 * device.units.count * rate * clock.value, name


def test_each_ridge_is_plausible() -> None:
    """Fast memory has been built for 100 to 600 16-bit FLOP per byte; a sparse peak or a wrong unit sticks out."""
    for name in NAMES:
        device = load(name)
        bf16 = device.ceiling(tensor("bf16")) or device.ceiling(tensor("fp16"))
        if bf16 is not None and bf16.engine.unit == "tensor" and device.main.name == "hbm":
            assert 30 < device.ridge(bf16.engine) < 620, name


def test_aliases_name_other_words() -> None:
    aliases = catalog.aliases("hardware")
    written = yaml.safe_load((CHECKOUT / "hardware" / "aliases.yaml").read_text())
    assert aliases == {str(alias): name for alias, name in written.items()}  # none is hidden by a canonical name
    assert aliases["h100"] == "h100-sxm"
    assert {load(alias).name for alias in aliases} <= set(NAMES)


def test_a_driver_name_means_one_device_of_a_size() -> None:
    seen: dict[tuple[str, int | None], str] = {}
    for name in NAMES:
        device = load(name)
        for driver in device.device_names:
            assert seen.setdefault((driver, device.main.capacity), name) == name
            assert hardware.by_device_name(driver, device.main.usable or device.main.capacity or 0) == device


# ---------------------------------------------------------------- figures that tables get wrong


@pytest.mark.parametrize(
    ("device", "engine", "tflops"),
    [
        ("v100", "tensor:fp16", 125),
        ("t4", "tensor:fp16", 65),
        ("a100", "tensor:bf16", 312),  # 156 in a table that halved it twice
        ("a100", "tensor:tf32", 156),
        ("h100", "tensor:bf16", 989.4),  # 1979 is sparse
        ("h100", "tensor:fp8", 1978.9),
        ("h100", "tensor:tf32", 494.7),  # 156 is an A100's
        ("h100-pcie", "tensor:bf16", 756.4),
        ("h100-nvl", "tensor:bf16", 835),
        ("h200", "tensor:bf16", 989.4),
        ("gh200-96gb", "tensor:fp16", 989.4),
        ("l4", "tensor:bf16", 121),
        ("l4", "tensor:fp8", 242),
        ("l40", "tensor:bf16", 181.05),
        ("l40s", "tensor:bf16", 362.05),
        ("l40s", "tensor:fp8", 733),
        ("a10", "tensor:bf16", 125),
        ("a10g", "tensor:bf16", 70),  # 125 is an A10's
        ("b200", "tensor:bf16", 2250),
        ("b200", "vector:fp32", 75),  # 80 and 40 are from an older brief
        ("b200", "vector:fp64", 37),
        ("b100", "tensor:bf16", 1750),
        ("gb200", "tensor:bf16", 2500),
        ("b300", "tensor:bf16", 2250),  # 3500 and 7000 in a table
        ("b300", "tensor:fp8", 4500),
        ("b300", "tensor:fp4", 13500),
        ("b300", "tensor:int8", 153.5),  # 4500 is what B200 does
        ("gb300", "tensor:fp4", 15000),
        ("gb300", "tensor:int8", 165),
        ("rubin", "tensor:fp4", 35000),
        ("rtx-4090", "tensor:bf16", 165.2),
        ("rtx-4090", "tensor:fp16+fp16", 330.3),
        ("rtx-4090", "tensor:fp8", 330.3),
        ("rtx-4090", "tensor:int8", 660.6),
        ("rtx-5090", "tensor:fp8", 419),
        ("rtx-5090", "tensor:mxfp8", 838),
        ("rtx-pro-6000", "tensor:bf16", 503.8),
        ("gb10", "tensor:fp4", 500),
        ("jetson-agx-orin", "tensor:int8", 85),
        ("mi210", "tensor:int8", 181),  # as fp16, not twice that
        ("mi250x", "tensor:bf16", 191.5),  # one of two dies
        ("mi300x", "tensor:fp16", 1307.4),  # 2615 is sparse
        ("mi350x", "tensor:bf16", 2309.6),
        ("mi355x", "tensor:bf16", 2516.6),  # not 2300
        ("mi355x", "tensor:fp8", 5033),  # 10.1 PFLOP/s of fp8 is sparse, of fp4 it is not
        ("mi355x", "tensor:fp4", 10066),
        ("gaudi3", "tensor:bf16", 1677.7),  # 1835 at a clock that did not ship
        ("gaudi3", "tensor:fp8", 1677.7),
        ("max-1550", "tensor:bf16", 419.5),  # one of two stacks
        ("tpu-v5p", "tensor:bf16", 459),
        ("tpu-v6e", "tensor:bf16", 918),  # 230 in a table
        ("tpu-v6e", "tensor:int8", 1836),
        ("tpu-v7x", "tensor:bf16", 1153.5),  # one of the two devices of a chip
        ("trainium2", "tensor:bf16", 667),  # 420 in a table
        ("trainium2", "tensor:fp8", 1299),
        ("xeon-8480plus", "tensor:bf16", 114.7),  # not the int8 rate
        ("xeon-8480plus", "tensor:int8", 229.4),
    ],
)
def test_peaks_as_ruled(device: str, engine: str, tflops: float) -> None:
    assert peak(device, engine) == pytest.approx(tflops * 1e12, rel=1e-12)


@pytest.mark.parametrize(
    ("device", "kind", "gib", "bytes_per_s"),
    [
        ("v100", "HBM2", 16, 900e9),
        ("a10", "GDDR6", 24, 600e9),  # 28 in a table
        ("a100", "HBM2e", 80, 2.039e12),
        ("a100-pcie", "HBM2e", 80, 1.935e12),
        ("h100", "HBM3", 80, 3.35e12),  # 2.4 is of a variant
        ("h100-pcie", "HBM2e", 80, 2e12),  # not HBM3
        ("h100-nvl", "HBM3", 94, 3.93e12),  # 188 and 7.8 are a pair's
        ("h200", "HBM3e", 141, 4.8e12),
        ("gh200-96gb", "HBM3", 96, 4e12),
        ("l4", "GDDR6", 24, 300e9),  # 3350 in a table
        ("b200", "HBM3e", 180, 7.7e12),  # 192 and 8.0 in the first brief
        ("gb200", "HBM3e", 186, 8e12),
        ("b300", "HBM3e", 270, 7.75e12),
        ("rtx-5090", "GDDR7", 32, 1.792e12),  # a thousand times that in a table
        ("gb10", "LPDDR5X unified", 128, 273e9),
        ("mi250x", "HBM2e", 64, 1.6384e12),
        ("tpu-v5e", None, 16, 819e9),
        ("tpu-v5p", None, 95, 2.765e12),  # 4.8 is the links' figure, misread
        ("tpu-v7x", None, 96, 3.685e12),
        ("m2-ultra", "unified LPDDR", 192, 819.2e9),
        ("gaudi3", "HBM2e", 128, 3.67e12),
    ],
)
def test_memory_as_ruled(device: str, kind: str | None, gib: int, bytes_per_s: float) -> None:
    main = load(device).main
    assert (main.kind, main.capacity, main.bandwidth) == (kind, gib << 30, bytes_per_s)


def level(device: str, name: str) -> Any:
    return next(each for each in load(device).memory if each.name == name)


def test_caches_as_ruled() -> None:
    assert level("b200", "l2").capacity == 126.5 * 2**20  # 65.5 MB is one of its two partitions
    assert level("mi355x", "llc").capacity == 256 << 20  # 64 MB in a blog
    assert level("h100", "smem").bandwidth == pytest.approx(132 * 128 * 1980e6, rel=1e-4)
    assert level("h100", "smem").scope == "unit"
    # 128 B per clock does not hold for the SM of GA10x, Ada and GB202.
    for device in ("a40", "l40", "rtx-3090", "rtx-4090", "rtx-5090"):
        assert "smem" not in {each.name for each in load(device).memory}
    assert level("a40", "l1").bandwidth == pytest.approx(84 * 64 * 1740e6, rel=0.01)


def test_links_are_one_direction() -> None:
    def link(device: str, name: str) -> float:
        return next(each.bandwidth for each in load(device).links if each.name == name)

    assert link("a100", "nvlink") == 300e9
    assert link("h100", "nvlink") == 450e9
    assert link("h800", "nvlink") == 200e9
    assert link("b200", "nvlink") == 900e9
    assert link("b200", "pcie") == 64e9  # Gen5; Gen6 in a table
    assert link("b300", "pcie") == 128e9
    assert link("mi300x", "xgmi") == 448e9
    assert link("gaudi3", "roce") == 600e9
    assert link("tpu-v7x", "ici") == 300e9


def test_two_clocks_on_hopper_and_datacenter_blackwell() -> None:
    for device in ("h100-sxm", "h100-pcie", "h200-sxm", "b200-sxm", "gb200", "b300-sxm"):
        clocks = load(device).clocks
        assert clocks["tensor"].value < clocks["vector"].value


def test_blackwell_ultra_doubled_its_exponential() -> None:
    special = {device: load(device).peaks["special:fp32"] for device in ("h100", "b200", "b300")}
    assert {device: each.per_unit_per_clock for device, each in special.items()} == {"h100": 16, "b200": 16, "b300": 32}
    assert special["h100"].value == pytest.approx(3.9e12, rel=0.01)


def test_l40_is_half_an_l40s() -> None:
    for engine in ("tensor:tf32", "tensor:bf16", "tensor:fp8", "tensor:int8"):
        assert peak("l40", engine) == pytest.approx(peak("l40s", engine) / 2, rel=0.02)


def test_geforce_halves_fp32_accumulate_and_professional_parts_do_not() -> None:
    for device in ("rtx-4090", "rtx-5090"):
        assert peak(device, "tensor:fp16") == pytest.approx(peak(device, "tensor:fp16+fp16") / 2, rel=0.01)
    assert set(GEFORCE_HALVED) == {"tf32", "bf16", "fp16", "fp8"}
    assert (
        peak("rtx-pro-6000", "tensor:bf16") / load("rtx-pro-6000").units.count
        > peak("rtx-5090", "tensor:bf16") / load("rtx-5090").units.count
    )


def test_gaps_in_the_vendors_own_documents_are_shown() -> None:
    disputed = {name for name in NAMES for each in load(name).peaks.values() if each.checked == "disputed"}
    assert disputed == {"trainium1", "inferentia2", "trainium2", "trainium3"}
    assert all(load(name).notes for name in disputed)


def test_half_of_a_module_says_so() -> None:
    for device in ("mi250x", "max-1550", "tpu-v7x"):
        assert "one of" in load(device).title
        assert "half of" in " ".join(load(device).notes)


def test_what_nobody_has_measured_is_pre_release() -> None:
    assert [name for name in NAMES if load(name).status == "pre-release"] == ["rubin"]


# ---------------------------------------------------------------- against the reference


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    path = CORPUS / "hardware.yaml"
    if not path.is_file():
        pytest.skip(NO_CORPUS)
    return {entry["id"]: entry for entry in yaml.safe_load(path.read_text())}


KEYS = {
    "fp64_tensor": "tensor:fp64",
    "fp64_matrix": "tensor:fp64",
    "fp32_matrix": "tensor:fp32",
    "fp16_acc16": "tensor:fp16+fp16",
    "fp8_acc16": "tensor:fp8+fp16",
}
RENAMED = {
    "nvidia-rtx-pro-6000-blackwell-ws": "rtx-pro-6000-workstation",
    "nvidia-gb10-dgx-spark": "gb10",
    "amd-strix-halo-395": "ryzen-ai-max-395",
}
HALVED = ("mi250x", "max-1550", "tpu-v7x")
RULED = {("gaudi3", "tensor:bf16"), ("gaudi3", "tensor:fp8")}  # the clock that ships, not the white paper's


def name_of(entry: dict[str, Any]) -> str:
    if entry["id"] in RENAMED:
        return RENAMED[entry["id"]]
    name = entry["id"].partition("-")[2]
    return re.sub(r"sxm\d", "sxm", name)


def engine_of(key: str) -> str:
    return KEYS.get(key) or (f"vector:{key.removesuffix('_vector')}" if key.endswith("_vector") else f"tensor:{key}")


@pytest.mark.corpus
def test_every_entry_of_the_reference_is_here(reference: dict[str, Any]) -> None:
    assert {name_of(entry) for entry in reference.values()} == set(NAMES)


@pytest.mark.corpus
def test_peaks_equal_the_reference(reference: dict[str, Any]) -> None:
    compared = 0
    for entry in reference.values():
        device = load(name_of(entry))
        share = 0.5 if device.name in HALVED else 1
        listed = {engine_of(key): value for key, value in entry["peak_dense"].items() if isinstance(value, float)}
        listed.pop("tensor:fp32_packed", None)  # no engine of its own: the notes have it
        assert set(listed) == {name for name in device.peaks if not name.startswith("special:")}, device.name
        for engine, value in listed.items():
            if (device.name, engine) not in RULED:
                assert device.peaks[engine].value == value * share, (device.name, engine)
                compared += 1
        if "exp_unit" in entry:
            assert device.peaks["special:fp32"].value == entry["exp_unit"]["exp2_per_s_derived"]
            assert device.peaks["special:fp32"].per_unit_per_clock == entry["exp_unit"]["exp2_per_clk_per_unit"]
    assert compared > 350


@pytest.mark.corpus
def test_checks_are_copied_from_the_reference(reference: dict[str, Any]) -> None:
    for entry in reference.values():
        device = load(name_of(entry))
        for check in entry.get("cross_check", []):
            each = device.peaks[engine_of(check["dtype"])]
            if (device.name, str(each.engine)) in RULED:
                continue
            gap = abs(check["rel_diff"]) > 0.02
            expected = "derived" if check["independent"] == "no" else "disputed" if gap else "independent"
            assert each.checked == expected, (device.name, check)
            assert each.per_unit_per_clock == check["flop_per_clk"]
            computed = device.computed_peak(each)
            share = 0.5 if device.name in HALVED else 1
            assert computed == pytest.approx(check["computed"] * share, rel=1e-6), (device.name, check)


@pytest.mark.corpus
def test_memory_equals_the_reference(reference: dict[str, Any]) -> None:
    for entry in reference.values():
        device = load(name_of(entry))
        share = 0.5 if device.name in HALVED else 1
        memory, main = entry["memory"], device.main
        assert main.bandwidth == memory["bandwidth_bytes_per_s"] * share
        assert main.capacity == (memory["capacity_bytes"] * share if "capacity_bytes" in memory else None)
        assert main.usable == memory.get("usable_bytes_reported")
        chip = entry.get("on_chip", {})
        levels = {each.name: each for each in device.memory}
        for key, name in (("l2_bytes", "l2"), ("l2_bytes_total", "l2"), ("last_level_cache_bytes", "llc")):
            if key in chip:
                assert levels[name].capacity == chip[key] * share
        for key, name in (
            ("l2_bandwidth_measured_bytes_per_s", "l2"),
            ("shared_memory_bandwidth_bytes_per_s_derived", "smem"),
            ("l1_bandwidth_measured_bytes_per_s", "l1"),
        ):
            if key in chip:
                assert levels[name].bandwidth == chip[key]


@pytest.mark.corpus
def test_links_and_power_equal_the_reference(reference: dict[str, Any]) -> None:
    for entry in reference.values():
        device = load(name_of(entry))
        share = 0.5 if device.name in HALVED else 1
        links = {each.name: each.bandwidth for each in device.links}
        listed = entry.get("interconnect", {})
        if "pcie_bytes_per_s_per_direction" in listed:
            assert links["pcie"] == listed["pcie_bytes_per_s_per_direction"]
        if "scaleup_bytes_per_s_per_direction" in listed:
            assert max(bw for name, bw in links.items() if name not in ("pcie", "c2c")) == (
                listed["scaleup_bytes_per_s_per_direction"] * share
            )
        watts = entry["power"]["tdp_w"] * share if "power" in entry else None
        assert (device.power.value if device.power else None) == watts


@pytest.mark.corpus
def test_low_confidence_is_marked(reference: dict[str, Any]) -> None:
    def marked(device: Hardware, names: set[str]) -> bool:
        return all(device.peaks[name].confidence == "unverified" for name in names)

    for entry in reference.values():
        device = load(name_of(entry))
        dense = {name for name in device.peaks if Engine.parse(name).unit != "special"}
        if entry["peak_dense"]["confidence"] == "low":
            assert marked(device, dense), device.name
        if entry.get("exp_unit", {}).get("confidence") == "low":
            assert marked(device, {"special:fp32"}), device.name
        if entry["memory"]["confidence"] == "low":
            assert device.main.confidence == "unverified"
        if entry.get("interconnect", {}).get("confidence") == "low":
            assert {link.confidence for link in device.links} == {"unverified"}
        if entry.get("power", {}).get("confidence") == "low":
            assert device.power is not None and device.power.confidence == "unverified"
