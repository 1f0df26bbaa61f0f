from __future__ import annotations

import pytest

from roofline.analysis import Rate
from roofline.engines import SPECIAL, VECTOR, tensor
from roofline.errors import RooflineError
from roofline.measure import ceilings as module
from roofline.measure import probes, thresholds
from roofline.measure.ceilings import Calibration, MeasuredCeilings, Reading, calibrate, relevant
from roofline.measure.probes import COPY, READ, TRIAD, UPDATE, WRITE, Probe
from roofline.measure.runner import predict
from roofline.ops import Activation, Linear, Residual
from tests.measure.fakes import FakeCall, FakeDevice
from tests.measure.machines import ceilings


def calibration(device: FakeDevice, *found: Probe) -> Calibration:
    made = Calibration(device, believed_cache=1 << 20)
    made.add(found, {})
    return made


def probe(ceiling: str, seconds: float, kernel: str = "k", work: float = 1.0, serial: bool = False) -> Probe:
    return Probe(ceiling, kernel, work, FakeCall(seconds), serial)


def readings(*values: float, disturbed: tuple[bool, ...] = ()) -> list[dict[str, Reading]]:
    flags = disturbed or (False,) * len(values)
    return [{READ: Reading(value, value * 0.9, "k", flag)} for value, flag in zip(values, flags, strict=True)]


def test_a_reading_is_the_fastest_sample_of_the_fastest_kernel() -> None:
    made = calibration(FakeDevice(noise=(1.0, 1.25, 2.0)), probe(READ, 0.02, "slow"), probe(READ, 0.01, "fast"))
    reading = made.read(READ)
    assert reading.kernel == "fast"
    assert reading.value == pytest.approx(100.0)
    assert reading.low < reading.value
    assert made.best_kernel(READ) == "fast"


def test_a_kernel_that_takes_no_time_divides_nothing() -> None:
    assert module._rate(probe(READ, 0.0), 0.0) == 0.0


def test_short_kernels_are_sampled_more_often_and_disturbed_ones_longer() -> None:
    quiet = FakeDevice(min_sample_s=1e-3)
    calibration(quiet, probe(READ, 1e-3)).read(READ)
    slow = FakeDevice()
    calibration(slow, probe(READ, 0.5)).read(READ)
    shaken = FakeDevice(disturbed=(True,))
    calibration(shaken, probe(READ, 0.02)).read(READ)
    assert len(quiet.batches) > len(slow.batches)
    assert len(shaken.batches) > len(slow.batches)


def test_one_core_is_heard_only_where_all_others_were_disturbed() -> None:
    probes_ = (probe(str(SPECIAL), 1.0, "all cores"), probe(str(SPECIAL), 0.1, "one core", serial=True))
    assert calibration(FakeDevice(), *probes_).read(str(SPECIAL)).kernel == "all cores"
    assert calibration(FakeDevice(disturbed=(True,)), *probes_).read(str(SPECIAL)).kernel == "one core"


def test_the_ceiling_of_an_op_is_the_higher_of_its_neighbours_in_time_then_the_median() -> None:
    made = calibration(FakeDevice(), probe(READ, 1.0))
    made.read(READ)
    around = made.around(readings(10, 30, 20, 20, 20)).rates[READ]
    assert around.value == 25  # stretches 30, 30, 20, 20
    assert around.low == pytest.approx(9)
    assert around.high == 30
    assert made.around(readings(10)).rates[READ].value == 10


def test_disturbed_readings_are_passed_over_while_there_are_others() -> None:
    made = calibration(FakeDevice(), probe(READ, 1.0))
    made.read(READ)
    assert made.around(readings(10, 99, 10, disturbed=(False, True, False))).rates[READ].value == 10
    assert made.around(readings(10, 20, disturbed=(True, True))).rates[READ].value == 20


def test_the_upper_end_is_the_fastest_sample_ever_seen_on_this_device() -> None:
    made = calibration(FakeDevice(), probe(READ, 0.01))
    made.read(READ)
    assert made.ceilings().rates[READ].high == pytest.approx(100)
    made.earlier = {READ: Reading(250.0, 200.0, "k")}
    assert made.ceilings().rates[READ].high == 250
    assert made.around(readings(10, 20)).rates[READ].high == 250
    assert made.ceilings().upper().rates[READ].value == 250


def test_touching_the_vector_engine_touches_full_fp32_products_too() -> None:
    made = calibration(FakeDevice(), probe(str(VECTOR), 1.0), probe("tensor:fp32", 0.1))
    assert set(made.touch([str(VECTOR)])) == {str(VECTOR), "tensor:fp32"}
    made.touch(["tensor:bf16"])  # not known here: nothing happens
    vector = made.ceilings().engine(VECTOR)
    assert vector is not None
    assert vector.value == pytest.approx(10)  # FMA chains of a product beat an elementwise kernel


def test_a_narrow_product_is_no_slower_than_one_in_fp32() -> None:
    """A CPU without fp16 instructions: its fp16 products are slow, but its fused attention converts to fp32."""
    made = calibration(FakeDevice(), probe("tensor:fp16", 1.0, "slow"), probe("tensor:fp32", 0.1, "fast"))
    assert set(made.touch(["tensor:fp16"])) == {"tensor:fp16", "tensor:fp32"}
    fp16 = made.ceilings().engine(tensor("fp16"))
    assert fp16 is not None
    assert fp16.value == pytest.approx(10)
    assert made.fastest("tensor:fp16") == pytest.approx(10)
    assert made.best_kernel("tensor:fp16") == "fast"


def test_a_mix_takes_the_best_pattern_that_writes_as_much() -> None:
    rates = {READ: 30.0, TRIAD: 40.0, COPY: 20.0, UPDATE: 60.0, WRITE: 15.0}
    known = MeasuredCeilings("m", {name: Rate(v, v / 2, v * 2) for name, v in rates.items()})
    (memory,) = known.memory
    assert memory.rate(1, 0).value == 30
    assert memory.rate(1, 1).value == 60
    assert memory.rate(0, 1).value == 15
    assert memory.rate(2, 1).value == pytest.approx(40)
    assert 30 < memory.rate(5, 1).value < 40


def test_an_engine_that_was_not_measured_says_why() -> None:
    known = MeasuredCeilings("m", {READ: Rate.exactly(1.0)}, missing={"tensor:fp8": "torch refuses"})
    with pytest.raises(RooflineError, match="torch refuses") as caught:
        known.engine(tensor("fp8"))
    assert caught.value.code == "no-engine"
    assert known.engine(SPECIAL) is None


def test_only_what_can_limit_an_op_is_touched_beside_it() -> None:
    known = ceilings()
    gemv = relevant(predict(Linear(tokens=1, in_features=4096, out_features=4096), known))
    assert set(gemv) == {READ, TRIAD}
    gemm = relevant(predict(Linear(tokens=4096, in_features=8192, out_features=4096), known))
    assert set(gemm) == {READ, TRIAD, "tensor:bf16"}
    assert set(relevant(predict(Residual(tokens=64, hidden_size=64), known))) == {TRIAD}
    assert {COPY, UPDATE, "special:fp32"} <= set(relevant(predict(Activation(tokens=64, features=64), known)))


# Calibration ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def made_up_probes(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Probes of a machine with 10 B/s of memory; notes the working set."""
    noted: dict[str, int] = {}

    def memory(device, working_set):
        noted["working_set"] = working_set
        return [probe(name, 0.1, f"{name} {i}", work=1.0 + i / 10) for name in probes.WRITTEN for i in range(5)]

    def engine(device, wanted):
        if wanted == tensor("fp8"):
            raise RooflineError("no storage", code="no-engine")
        if wanted == tensor("int8"):
            raise RuntimeError("not implemented for 'Char'\nand a long trace")
        return [probe(str(wanted), 0.1)]

    monkeypatch.setattr(probes, "memory_probes", memory)
    monkeypatch.setattr(probes, "engine_probes", engine)
    monkeypatch.setattr(probes, "launch_probe", lambda device: probe(probes.LAUNCH, 0.5))
    monkeypatch.setattr(probes, "cache_probe", lambda device, size: probe("cache", 0.01 if size <= 256 else 0.09))
    return noted


def test_calibration_measures_memory_the_engines_asked_for_and_the_launch(made_up_probes) -> None:
    made = calibrate(FakeDevice(), [tensor("bf16"), tensor("fp8"), tensor("int8")])
    known = made.ceilings()
    assert {*probes.WRITTEN, "tensor:bf16", "tensor:fp32", "vector:fp32"} == set(known.rates)
    assert known.launch_s == pytest.approx(0.5)
    assert known.missing == {"tensor:fp8": "no storage", "tensor:int8": "not implemented for 'Char'"}
    assert len(made.kernels(READ)) == thresholds.TOUCHED_KERNELS
    assert made.kernels(READ)[0] == f"{READ} 4"


def test_a_cache_is_believed_when_it_is_twice_as_fast_as_memory(made_up_probes) -> None:
    # 10 B/s of memory; a quarter of 1 KiB is read at 100 B/s, a quarter of 1 MiB at 11
    assert calibrate(FakeDevice(caches=(64, 1 << 10, 1 << 20)), []).believed_cache == 1 << 10
    assert calibrate(FakeDevice(caches=(64, 1 << 10)), []).believed_cache == 1 << 10
    assert calibrate(FakeDevice(caches=(1 << 20, 1 << 21)), []).believed_cache == 1 << 20  # none: the level below


def test_the_working_set_outgrows_the_cache_within_the_memory_limit(made_up_probes) -> None:
    calibrate(FakeDevice(caches=(64, 1 << 10)), [])
    assert made_up_probes["working_set"] >= thresholds.CEILING_SPAN * (1 << 10)
    calibrate(FakeDevice(caches=(64, 1 << 20), memory_bytes=1 << 20), [])
    assert 3 * made_up_probes["working_set"] <= thresholds.CEILING_MEMORY * (1 << 20)


def test_only_the_kernels_that_won_before_are_measured_again(made_up_probes) -> None:
    first = calibrate(FakeDevice(), [])
    keep = {name: first.kernels(name)[:1] for name in first.names}
    seen = module.Evidence({READ: Reading(99.0, 50.0, "k")}, keep, believed_cache=1 << 10)
    again = calibrate(FakeDevice(), [], earlier=seen)
    assert again.kernels(READ) == keep[READ]
    assert again.believed_cache == 1 << 10
    assert again.ceilings().rates[READ].high == 99


def test_kernels_of_a_release_that_called_them_otherwise_are_not_missed(made_up_probes) -> None:
    first = calibrate(FakeDevice(), [])
    renamed = dict.fromkeys(first.names, ("a kernel of another release",))
    again = calibrate(FakeDevice(), [], earlier=module.Evidence({}, renamed, first.believed_cache))
    assert again.ceilings().rates.keys() == first.ceilings().rates.keys()
    assert again.ceilings().memory[0].points


def test_progress_says_what_is_measured(made_up_probes) -> None:
    told: list[str] = []
    calibrate(FakeDevice(), [tensor("bf16")], progress=told.append)
    assert told[0] == "memory ceilings"
    assert any("tensor:bf16" in line for line in told)
