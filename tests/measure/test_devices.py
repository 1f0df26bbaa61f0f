from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from roofline.errors import RooflineError
from roofline.measure import devices, host
from tests.measure.fakes import FakeCall


def test_a_missing_torch_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RooflineError) as caught:
        devices.pick("cpu")
    assert caught.value.code == "torch-missing"
    assert "pip install 'roofline[measure]'" in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_torch_that_does_not_load_is_said_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise OSError(f"lib{name}_cpu.so: cannot open shared object file")

    monkeypatch.setattr(devices, "import_module", broken)
    with pytest.raises(RooflineError, match="libtorch_cpu") as caught:
        devices.torch_module()
    assert caught.value.code == "torch-missing"


@pytest.mark.parametrize("name", ["gpu", "cpu:1", "auto:0", "cuda:x", "CPU", ""])
def test_a_name_that_is_no_device_says_what_is(name: str) -> None:
    with pytest.raises(RooflineError, match=r"auto, cpu, cuda or cuda:N") as caught:
        devices.pick(name)
    assert caught.value.key == "--device"


def test_auto_falls_back_to_the_cpu(torch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert devices.pick("auto").kind == "cpu"


def test_no_gpu_is_said_with_the_way_out(torch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RooflineError, match="--device cpu"):
        devices.pick("cuda")


def test_a_gpu_that_is_not_there_says_which_are(torch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(RooflineError, match="cuda:0 to cuda:1"):
        devices.pick("cuda:2")


def test_the_cpu_uses_what_it_may(torch, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    monkeypatch.setattr(host, "usable_cores", lambda: 1)
    monkeypatch.setattr(host, "available_memory", lambda: 1000)
    try:
        device = devices.pick("cpu")
        assert torch.get_num_threads() == device.threads == 1
        assert device.memory_bytes == 500
        assert devices.pick("cpu", max_memory=100).memory_bytes == 100
        assert devices.pick("cpu", max_memory=5000).memory_bytes == 1000
        assert device.min_sample_s >= 1e-3
    finally:
        torch.set_num_threads(before)


def cpu(waited: list[int | None]) -> devices.Cpu:
    series = iter(waited)
    return devices.Cpu("cpu", "cpu", 1, 1 << 30, (1 << 20,), 1e-3, waited_ns=lambda: next(series))


def test_a_sample_is_disturbed_when_its_threads_waited_for_a_core() -> None:
    call = FakeCall()
    assert cpu([0, 10**12]).sample([call, call]).disturbed
    assert call.run == 2
    assert not cpu([5, 5]).sample([call]).disturbed
    assert not cpu([None, None]).sample([call]).disturbed  # a system that does not tell
    assert cpu([0, 0]).sample([call]).seconds > 0


# CUDA, through a torch that is made up: what is tested is the order of things on the stream.


class Stream:
    """Notes what is put on the stream; ``drained``: the spin ended before the host had queued all."""

    def __init__(self, drained: bool = False) -> None:
        self.log: list[str] = []
        self.drained = drained

    def torch(self) -> Any:
        def event(enable_timing: bool) -> Any:
            assert enable_timing
            return SimpleNamespace(
                record=lambda: self.log.append("event"),
                query=lambda: self.drained,
                synchronize=lambda: self.log.append("wait"),
                elapsed_time=lambda other: 2.5,
            )

        class Guard:
            def __init__(self, index: int) -> None: ...
            def __enter__(self) -> None: ...
            def __exit__(self, *args: object) -> None: ...

        cuda = SimpleNamespace(
            Event=event,
            device=Guard,
            synchronize=lambda index: None,
            empty_cache=lambda: self.log.append("empty"),
            _sleep=lambda cycles: self.log.append("hold"),
        )
        return SimpleNamespace(cuda=cuda, int8="int8", empty=self.buffer)

    def buffer(self, size: int, dtype: str, device: str) -> Any:
        self.log.append(f"buffer {size}")
        return SimpleNamespace(zero_=lambda: self.log.append("flush"))


def gpu(stream: Stream) -> devices.Cuda:
    return devices.Cuda(stream.torch(), 0, "gpu", "gpu", None, None, 1 << 30, (1000,))


def test_a_gpu_sample_flushes_holds_the_stream_and_times_between_events() -> None:
    stream = Stream()
    device = gpu(stream)
    sample = device.sample([lambda: stream.log.append("kernel")] * 2)
    assert sample.seconds == pytest.approx(2.5e-3)
    assert not sample.disturbed
    stream.log.clear()
    device.sample([lambda: stream.log.append("kernel")] * 2)
    assert stream.log == ["flush", "hold", "event", "kernel", "kernel", "event", "wait"]


def test_the_flush_writes_twice_the_cache() -> None:
    stream = Stream()
    gpu(stream).sample([lambda: None])
    assert "buffer 2000" in stream.log


def test_a_gpu_that_waited_for_the_host_is_disturbed() -> None:
    assert gpu(Stream(drained=True)).sample([lambda: None]).disturbed


def test_memory_is_given_back_to_the_driver() -> None:
    stream = Stream()
    gpu(stream).release()
    assert stream.log == ["empty"]


class Nvml:
    def __init__(self, reasons: int) -> None:
        self.reasons, self.open = reasons, 0

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        assert handle == "GPU-1-2"
        return self.reasons

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"570.1"


@pytest.mark.parametrize(("reasons", "throttled"), [(0x0, False), (0x1, False), (0x4, True), (0x40, True)])
def test_throttling_is_what_nvml_says(reasons: int, throttled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml(reasons)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert devices.nvml_throttled("1-2") is throttled
    assert devices.nvml_throttled("GPU-1-2") is throttled
    assert devices._nvidia_driver() == "570.1"
    assert nvml.open == 0


def test_nvml_that_is_missing_or_broken_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert devices.nvml_throttled("1-2") is None
    assert devices._nvidia_driver() is None
    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(nvmlInit=lambda: None))
    assert devices.nvml_throttled("1-2") is None
    assert devices.nvml_throttled(None) is None
