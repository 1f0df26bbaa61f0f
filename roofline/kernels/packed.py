"""``Packed``: a tensor in a format with scales (fp8-row, int8, int4, nvfp4, mxfp4, mxfp8), as it lies in memory.

The storage of payload and scales takes exactly the bytes of ``ops.sizes.bytes_of``. Quantising is by the largest
magnitude of each block; the scale is rounded to its own format first, so that payload and scale belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import torch
from torch.nn.functional import pad

from roofline.dtypes import DTYPES, ROW, DType

_E4M3 = torch.float8_e4m3fn
_E4M3_MAX = 448.0
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_E8M0_BIAS = 127
_E8M0_NAN = 255
_INT4_MIDDLE = 8


@dataclass(frozen=True, slots=True)
class Packed:
    """``shape`` elements of storage dtype ``dtype``.

    ``payload``: (..., columns) in int8 or float8_e4m3fn, or for the 4-bit formats (..., bytes) uint8 with the even
    element in the low half.
    ``scales``: (..., blocks): fp32 (fp8-row), fp16 (int8, int4), E4M3 (nvfp4), or the biased exponent of a power of
    two as uint8 (mxfp4, mxfp8).
    ``zeros``: (..., blocks) fp16 for int4-g128-zp, else None: a value is ``(code - 8) * scale + zero``, as in torch's
    own int4 weights.
    """

    dtype: str
    shape: tuple[int, ...]
    payload: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of payload, scales and zero points."""
        return sum(int(part.nbytes) for part in self.parts)

    @property
    def parts(self) -> tuple[torch.Tensor, ...]:
        """Payload, scales and zero points, where there are any."""
        return (self.payload, self.scales) if self.zeros is None else (self.payload, self.scales, self.zeros)

    @property
    def device(self) -> torch.device:
        """Where it lies."""
        return self.payload.device

    def dequantize(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """The values, computed in fp32 (fp64 for fp64) and returned as ``dtype``."""
        work = torch.float64 if dtype == torch.float64 else torch.float32
        blocks = _blocked(self._unscaled(work), DTYPES[self.dtype]) * self._scales(work).unsqueeze(-1)
        if self.zeros is not None:
            blocks = blocks + self.zeros.to(work).unsqueeze(-1)
        return blocks.flatten(-2)[..., : self.shape[-1]].to(dtype)

    def codes(self) -> torch.Tensor:
        """The 4-bit codes as uint8, one an element."""
        return unpack_halves(self.payload)[..., : self.shape[-1]]

    def _unscaled(self, work: torch.dtype) -> torch.Tensor:
        """What the payload says before scales."""
        if DTYPES[self.dtype].bits == 8:
            return self.payload.to(work)
        if DTYPES[self.dtype].native == "fp4":
            return _table((*_E2M1, *(-value for value in _E2M1)), work, self.device)[self.codes().long()]
        return self.codes().to(work) - _INT4_MIDDLE

    def _scales(self, work: torch.dtype) -> torch.Tensor:
        if self.scales.dtype != torch.uint8:
            return self.scales.to(work)
        exponents = self.scales.to(work)
        return torch.where(exponents == _E8M0_NAN, torch.nan, torch.exp2(exponents - _E8M0_BIAS))

    def copy_(self, source: Packed) -> None:
        """Copy another of the same shape and format."""
        for mine, other in zip(self.parts, source.parts, strict=True):
            mine.copy_(other)

    def map(self, shape: Sequence[int], change: Callable[[torch.Tensor], torch.Tensor]) -> Packed:
        """The same format with ``change`` applied to each part: an index or a view that leaves the last axis alone."""
        zeros = None if self.zeros is None else change(self.zeros)
        return Packed(self.dtype, tuple(shape), change(self.payload), change(self.scales), zeros)

    def last_positions(self, count: int) -> Packed:
        """A view of the last ``count`` entries of the axis before the last."""
        start = self.shape[-2] - count
        return self.map((*self.shape[:-2], count, self.shape[-1]), lambda part: part[..., start:, :])

    def poison(self) -> None:
        """Make every value NaN."""
        self.payload.zero_()
        if self.scales.dtype == torch.uint8:
            self.scales.fill_(_E8M0_NAN)
        else:
            self.scales.fill_(torch.nan)


def empty(shape: Sequence[int], name: str, device: torch.device) -> Packed:
    """Storage for ``shape`` elements of format ``name``, uninitialised."""
    row, leading = DTYPES[name], tuple(shape[:-1])
    columns = shape[-1]
    blocks = block_count(columns, row)
    if row.bits == 8:
        payload_dtype = torch.int8 if name == "int8" else _E4M3
        payload = torch.empty((*leading, columns), dtype=payload_dtype, device=device)
    else:
        payload = torch.empty((*leading, -(-columns // 2)), dtype=torch.uint8, device=device)
    scales = torch.empty((*leading, blocks), dtype=_scale_dtype(name), device=device)
    zeros = torch.empty_like(scales) if name.endswith("-zp") else None
    return Packed(name, tuple(shape), payload, scales, zeros)


def quantize(values: torch.Tensor, name: str) -> Packed:
    """``values`` in format ``name``, one scale for each block of the last axis."""
    if name.endswith("-zp"):
        return _quantize_asymmetric(values, name)
    row = DTYPES[name]
    blocks = _blocked(values.float(), row)
    limit = {"int8": 127.0, "int4-g128": 7.0}.get(name, 6.0 if row.native == "fp4" else _E4M3_MAX)
    stored, scale = _round_scale(blocks.abs().amax(-1) / limit, name)
    scaled = (blocks / scale.unsqueeze(-1)).clamp(-limit, limit).flatten(-2)[..., : values.shape[-1]]
    return Packed(name, tuple(values.shape), _encode(scaled, name), stored)


def block_count(columns: int, row: DType) -> int:
    """How many scales a row of ``columns`` elements has."""
    return 1 if row.block == ROW else -(-columns // row.block)


def pack_halves(codes: torch.Tensor) -> torch.Tensor:
    """Codes of 4 bits, two a byte, the even one low; an odd row ends in a zero."""
    codes = pad(codes, (0, codes.shape[-1] % 2))
    return codes[..., 0::2] | (codes[..., 1::2] << 4)


def unpack_halves(data: torch.Tensor) -> torch.Tensor:
    """The inverse of ``pack_halves`` (with the padding)."""
    return torch.stack((data & 15, data >> 4), -1).flatten(-2)


@cache
def _table(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A constant on the device: made once, as the copy from the host would wait for a GPU in every call."""
    return torch.tensor(values, dtype=dtype, device=device)


def _blocked(values: torch.Tensor, row: DType) -> torch.Tensor:
    """(..., columns) as (..., blocks, block), zeros at the end of the last block."""
    columns = values.shape[-1]
    width = columns if row.block == ROW else row.block
    blocks = block_count(columns, row)
    return pad(values, (0, blocks * width - columns)).unflatten(-1, (blocks, width))


def _scale_dtype(name: str) -> torch.dtype:
    if name.startswith("mx"):
        return torch.uint8
    return {"fp8-row": torch.float32, "nvfp4": _E4M3}.get(name, torch.float16)


def _round_scale(scale: torch.Tensor, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The scale as it is stored, and its value; never zero, so that a block of zeros divides."""
    dtype = _scale_dtype(name)
    if dtype == torch.uint8:
        # rounding up keeps the largest element of the block in range
        exponent = scale.clamp(min=2.0**-_E8M0_BIAS).log2().ceil().clamp(-_E8M0_BIAS, _E8M0_BIAS)
        return (exponent + _E8M0_BIAS).to(dtype), torch.exp2(exponent)
    smallest = {torch.float32: 1e-30, torch.float16: 2.0**-24}.get(dtype, 2.0**-9)
    stored = scale.clamp(min=smallest).to(dtype)
    return stored, stored.float()


def _encode(scaled: torch.Tensor, name: str) -> torch.Tensor:
    row = DTYPES[name]
    if name == "int8":
        return scaled.round().to(torch.int8)
    if row.bits == 8:
        return scaled.to(_E4M3)
    if name == "int4-g128":
        return pack_halves((scaled.round() + _INT4_MIDDLE).to(torch.uint8))
    middles = tuple((low + high) / 2 for low, high in pairwise(_E2M1))
    codes = torch.bucketize(scaled.abs(), _table(middles, torch.float32, scaled.device)).to(torch.uint8)
    return pack_halves(codes | ((scaled < 0).to(torch.uint8) << 3))


def _quantize_asymmetric(values: torch.Tensor, name: str) -> Packed:
    """Codes 0..15 over the range of each block, the last one padded with its own last element."""
    row, columns = DTYPES[name], values.shape[-1]
    missing = -columns % row.block
    filled = torch.cat((values, values[..., -1:].expand(*values.shape[:-1], missing)), -1).float()
    blocks = filled.unflatten(-1, (-1, row.block))
    low, high = blocks.amin(-1), blocks.amax(-1)
    stored, scale = _round_scale((high - low) / 15, name)
    zeros = (low + _INT4_MIDDLE * scale).to(stored.dtype)
    steps = (blocks - zeros.float().unsqueeze(-1)) / scale.unsqueeze(-1)
    codes = (steps.round() + _INT4_MIDDLE).clamp(0, 15).flatten(-2)[..., :columns]
    return Packed(name, tuple(values.shape), pack_halves(codes.to(torch.uint8)), stored, zeros)
