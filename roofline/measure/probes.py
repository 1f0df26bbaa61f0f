"""The kernels that ceilings are measured with: several a ceiling, as no single one reaches it on every machine.

Bytes are counted as ops are charged: each distinct stream once, an update twice, and no write-allocate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from roofline.dtypes import DTYPES
from roofline.engines import SPECIAL, VECTOR, Engine
from roofline.errors import RooflineError
from roofline.kernels import prepare
from roofline.measure.devices import Device, torch_module
from roofline.measure.timer import Call, Sampler
from roofline.ops.linear import Linear

READ, TRIAD, COPY, UPDATE, WRITE = "memory:read", "memory:triad", "memory:copy", "memory:update", "memory:write"

WRITTEN: Final = {READ: 0.0, TRIAD: 1 / 3, COPY: 0.5, UPDATE: 0.5, WRITE: 1.0}
"""Part of the traffic that each pattern writes."""

LAUNCH: Final = "launch"

_WIDTH: Final = 4096
_FILL_BLOCK: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class Probe:
    """One kernel that may reach a ceiling; ``work`` is what a call does, in the unit of the ceiling.

    ``serial``: it runs on one core, and ``work`` is that of all of them. It is heard only where the others were
    disturbed: with a busy neighbour every short parallel region waits for the thread that lost its core.
    """

    ceiling: str
    kernel: str
    work: float
    call: Call
    serial: bool = False


def unit(ceiling: str) -> str:
    """The unit of a ceiling's value."""
    if ceiling == LAUNCH:
        return "s"
    if ceiling in WRITTEN:
        return "B/s"
    return "op/s" if ceiling.startswith("special") or ":int" in ceiling else "FLOP/s"


def memory_probes(device: Device, working_set: int) -> list[Probe]:
    """Reads, triad, copy, update and writes over buffers of ``working_set`` bytes, each far larger than a cache."""
    torch = torch_module()
    a, b, c = (_normal(torch, device, working_set) for _ in range(3))
    size = a.numel() * a.element_size()
    fp32, int64 = torch.float32, torch.int64
    rows = {dtype: a.view(dtype).view(-1, _WIDTH) for dtype in (torch.bfloat16, fp32)}
    vectors = {dtype: _normal(torch, device, 4 * _WIDTH).view(dtype)[:_WIDTH] for dtype in rows}
    linear = torch.nn.functional.linear
    return [
        Probe(READ, "sum int64", size, partial(torch.sum, a.view(int64))),
        Probe(READ, "max int64", size, partial(torch.max, a.view(int64))),
        Probe(READ, "sum fp32", size, partial(torch.sum, a.view(fp32))),
        Probe(READ, "amax fp32", size, partial(torch.amax, a.view(fp32))),
        Probe(READ, "mv fp32", size, partial(torch.mv, rows[fp32], vectors[fp32])),
        *(
            Probe(READ, f"linear with one row {name}", size, partial(linear, vectors[dtype][None], rows[dtype]))
            for name, dtype in (("fp32", fp32), ("bf16", torch.bfloat16))
        ),
        Probe(WRITE, "fill_ fp32", size, partial(c.view(fp32).fill_, 1.5)),
        Probe(WRITE, "fill_ bf16", size, partial(c.fill_, 1.5)),
        Probe(COPY, "copy_ fp32", 2 * size, partial(c.view(fp32).copy_, a.view(fp32))),
        Probe(COPY, "copy_ bf16", 2 * size, partial(c.copy_, a)),
        Probe(UPDATE, "mul_ fp32", 2 * size, partial(b.view(fp32).mul_, 1.0)),
        Probe(UPDATE, "mul_ bf16", 2 * size, partial(b.mul_, 1.0)),
        Probe(TRIAD, "add out= fp32", 3 * size, partial(torch.add, a.view(fp32), b.view(fp32), out=c.view(fp32))),
        Probe(TRIAD, "add out= bf16", 3 * size, partial(torch.add, a, b, out=c)),
        Probe(TRIAD, "add_ in place fp32", 3 * size, partial(c.view(fp32).add_, a.view(fp32), alpha=1e-6)),
    ]


def cache_probe(device: Device, size: int) -> Probe:
    """A read of ``size`` bytes again and again."""
    torch = torch_module()
    return Probe("cache", "sum int64", size, partial(torch.sum, _normal(torch, device, size).view(torch.int64)))


def _normal(torch: Any, device: Device, size: int) -> Any:
    """``size`` bytes of bf16 normals; two of them read as one fp32 are a normal number again."""
    count = max(4 * _WIDTH, size // 2 // (4 * _WIDTH) * (4 * _WIDTH))
    block = torch.randn(min(count, _FILL_BLOCK), device=device.torch_name).to(torch.bfloat16)
    whole = torch.empty(count, dtype=torch.bfloat16, device=device.torch_name)
    for start in range(0, count, len(block)):
        part = whole[start : start + len(block)]
        part.copy_(block[: len(part)])
    return whole


# Engines -------------------------------------------------------------------------------------------------------------

_SHAPES: Final = (
    (256, 1024, 1024),
    (1024, 1024, 1024),
    (512, 2048, 2048),
    (4096, 512, 1024),
    (256, 4096, 2048),
    (2048, 1024, 2048),
)
"""(tokens, in, out) of the products tried at scale 1: small, square, wide, tall, deep, large."""

_MIN_PRODUCT_S: Final = {"cpu": 2e-3, "cuda": 1e-3}
_MAX_SCALE: Final = 8
_MAX_PRODUCT_S: Final = 0.06
"""A shape that takes longer is not tried: a slow engine is known from the small ones."""


def engine_probes(device: Device, engine: Engine) -> Iterator[Probe]:
    """Kernels that may reach an engine's peak. Raises ``RooflineError`` where torch has no product for it here."""
    if engine == SPECIAL:
        yield from _special_probes(device)
    elif engine == VECTOR:
        yield _fma_probe(device)
    elif engine.unit == "tensor":
        yield from _products(device, engine)


def _products(device: Device, engine: Engine) -> Iterator[Probe]:
    scale = _scale(device, engine)
    for shape in _SHAPES:
        probe = _product(device, engine, tuple(extent * scale for extent in shape))
        if shape == _SHAPES[0] or _seconds(probe, device) <= _MAX_PRODUCT_S:
            yield probe


def _scale(device: Device, engine: Engine) -> int:
    """How much larger than scale 1 a product must be to fill the device for a while."""
    scale = 1
    while scale < _MAX_SCALE:
        probe = _product(device, engine, tuple(extent * scale for extent in _SHAPES[1]))
        if _seconds(probe, device) >= _MIN_PRODUCT_S[device.kind]:
            break
        scale *= 2
    return scale


def _seconds(probe: Probe, device: Device) -> float:
    """Roughly, after one call to warm up."""
    sampler = Sampler([probe.call], device)
    return min(sampler.take().seconds, sampler.take().seconds)


def _product(device: Device, engine: Engine, shape: tuple[int, ...]) -> Probe:
    tokens, k, n = shape
    stored, compute = _storage(engine)
    op = Linear(tokens=tokens, in_features=k, out_features=n, dtype=stored, weight_dtype=stored, compute=compute)
    ready = prepare(op, device.torch_name)
    kernel = f"{ready.kernel.name} {engine.dtype} {tokens}x{k}x{n}"
    return Probe(str(engine), kernel, float(op.arithmetic()[op.engine]), ready.call)


def _storage(engine: Engine) -> tuple[str, str | None]:
    """The dtype to store operands in so that a product runs on ``engine``."""
    if engine.dtype == "tf32":
        return "fp32", "tf32"
    for name, row in DTYPES.items():
        if row.native == engine.dtype:
            return name, None
    raise RooflineError(f"no storage dtype feeds {engine}", code="no-engine")


_RESIDENT: Final = {"cpu": 1 << 16, "cuda": 1 << 22}
"""Elements for each core (CPU) or in all (GPU) of what must stay in cache."""

_SERIAL: Final = 30_000
"""Elements that torch still leaves to one thread."""


def _resident_elements(device: Device) -> int:
    return _RESIDENT[device.kind] * (device.threads or 1)


def _fma_probe(device: Device) -> Probe:
    torch = torch_module()
    count = _resident_elements(device)
    x, z = (torch.randn(count, device=device.torch_name) for _ in range(2))
    return Probe(str(VECTOR), "addcmul_ in cache", 2.0 * count, partial(z.addcmul_, x, x, value=1e-6))


def _special_probes(device: Device) -> Iterator[Probe]:
    torch = torch_module()
    count = _resident_elements(device)
    functions = {"exp": torch.exp, "exp2": torch.exp2, "sigmoid": torch.sigmoid, "tanh": torch.tanh}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        x = torch.randn(count, device=device.torch_name).to(dtype)
        out = torch.empty_like(x)
        for function, run in functions.items():
            yield Probe(str(SPECIAL), f"{function} {name} in cache", float(count), partial(run, x, out=out))
        rows = x.view(-1, 1024)
        yield Probe(str(SPECIAL), f"softmax {name} in cache", float(count), partial(torch.softmax, rows, -1))
    if device.kind == "cuda":
        # an elementwise exp is held back by the cache; inside attention exponentials come from registers
        q = torch.randn(16, 16, 2048, 64, device=device.torch_name, dtype=torch.bfloat16)
        attend = torch.nn.functional.scaled_dot_product_attention
        yield Probe(str(SPECIAL), "attention, 64 wide", 16.0 * 16 * 2048 * 2048, partial(attend, q, q, q))
    elif (device.threads or 1) > 1:
        x, out = torch.randn(_SERIAL), torch.empty(_SERIAL)
        work = float(_SERIAL * (device.threads or 1))
        yield Probe(str(SPECIAL), "exp2 fp32 on one core", work, partial(torch.exp2, x, out=out), serial=True)


def launch_probe(device: Device) -> Probe:
    """The smallest kernel there is: what starting one costs."""
    torch = torch_module()
    return Probe(LAUNCH, "add_ on one element", 1.0, partial(torch.ones(1, device=device.torch_name).add_, 1.0))
