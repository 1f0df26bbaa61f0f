"""The operands of a timed run, made from ``Op.tensors()`` alone; the only reader of ``Tensor.fill``.

Data is normal, seeded, and never zeros: zeros draw less power, so a GPU would clock higher on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

import torch

from roofline.dtypes import DTYPES
from roofline.errors import RooflineError
from roofline.kernels import packed
from roofline.kernels.base import Operand
from roofline.kernels.packed import Packed
from roofline.ops.base import Fill, Op, Tensor

BLOCK = 4_194_301
"""Elements drawn at most; a larger tensor repeats them. A prime, so that no two rows of a matrix are alike."""


def make_inputs(
    op: Op,
    device: torch.device | str,
    *,
    seed: int = 0,
    generator: torch.Generator | None = None,
    given: Mapping[str, Operand] | None = None,
) -> dict[str, Operand]:
    """Every tensor of ``op`` by name, on ``device``; those ``given`` are taken as they are instead of made.

    What is read is filled (normal data quantised with real scales where the format has them, indices as their
    ``fill`` says); what is only written is allocated and poisoned: NaN, or the lowest integer. A ``generator`` (of
    the device) goes on where it stands and wins over ``seed``.
    """
    device = torch.device(device)
    if generator is None:
        generator = torch.Generator(device).manual_seed(seed)
    taken = given or {}
    return {
        tensor.name: taken[tensor.name] if tensor.name in taken else _operand(tensor, device, generator)
        for tensor in op.tensors()
    }


def storage_bytes(operands: Operand | Iterable[Operand]) -> int:
    """Bytes of the storage of an operand, or of several."""
    if isinstance(operands, (torch.Tensor, Packed)):
        return int(operands.nbytes)
    return sum(int(operand.nbytes) for operand in operands)


def _operand(tensor: Tensor, device: torch.device, generator: torch.Generator) -> Operand:
    shape = tuple(int(extent) for extent in tensor.shape)
    if tensor.access == "write":
        return _poisoned(shape, tensor.dtype, device)
    if tensor.role == "index":
        return _indices(tensor, shape, device, generator)
    if _is_plain(tensor.dtype):
        return _normal(shape, _torch_dtype(tensor.dtype), device, generator)
    return packed.quantize(_normal(shape, torch.float32, device, generator), tensor.dtype)


def _is_plain(name: str) -> bool:
    return DTYPES[name].block_bits == 0


def _torch_dtype(name: str) -> torch.dtype:
    found: torch.dtype = getattr(torch, str(DTYPES[name].torch_name))
    return found


def _normal(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> torch.Tensor:
    count = prod(shape)
    drawn = torch.float32 if dtype.itemsize == 1 else dtype
    block = torch.empty(min(count, BLOCK), dtype=drawn, device=device).normal_(generator=generator).to(dtype)
    if count <= BLOCK:
        return block.view(shape)
    whole = torch.empty(count, dtype=dtype, device=device)
    for start in range(0, count, BLOCK):
        part = whole[start : start + BLOCK]
        part.copy_(block[: part.numel()])
    return whole.view(shape)


def _poisoned(shape: tuple[int, ...], name: str, device: torch.device) -> Operand:
    if not _is_plain(name):
        storage = packed.empty(shape, name, device)
        storage.poison()
        return storage
    dtype = _torch_dtype(name)
    storage = torch.empty(shape, dtype=dtype, device=device)
    if dtype == torch.bool:
        return storage.fill_(False)
    return storage.fill_(torch.nan if dtype.is_floating_point else torch.iinfo(dtype).min)


def _indices(tensor: Tensor, shape: tuple[int, ...], device: torch.device, generator: torch.Generator) -> torch.Tensor:
    make = _FILLS.get(tensor.fill.kind)
    if make is None:
        raise RooflineError(f"{tensor.name}: an index tensor is not filled with {tensor.fill.kind}", code="bad-fill")
    return make(tensor.fill, shape, device, generator).to(_torch_dtype(tensor.dtype))


def _integers(fill: Fill, shape: tuple[int, ...], device: torch.device, generator: torch.Generator) -> torch.Tensor:
    """Values in [0, high); with ``distinct`` exactly so many different ones, in random order."""
    count, high = prod(shape), int(fill.high)
    if fill.distinct is None:
        return torch.randint(high, shape, device=device, generator=generator)
    distinct = int(fill.distinct)
    values = torch.randperm(high, device=device, generator=generator)[:distinct]
    again = torch.randint(distinct, (count - distinct,), device=device, generator=generator)
    drawn = torch.cat((values, values[again]))
    return drawn[torch.randperm(count, device=device, generator=generator)].view(shape)


def _permutation(fill: Fill, shape: tuple[int, ...], device: torch.device, generator: torch.Generator) -> torch.Tensor:
    """Each of 0 .. n - 1 once."""
    return torch.randperm(prod(shape), device=device, generator=generator).view(shape)


def _offsets(fill: Fill, shape: tuple[int, ...], device: torch.device, generator: torch.Generator) -> torch.Tensor:
    """Ascending ends of groups, the last of them ``high``."""
    ends = torch.randint(int(fill.high) + 1, shape, device=device, generator=generator).sort().values
    ends[..., -1] = int(fill.high)
    return ends


def _routing(fill: Fill, shape: tuple[int, ...], device: torch.device, generator: torch.Generator) -> torch.Tensor:
    """(tokens, k): k different experts of ``high`` for each token, uniformly."""
    tokens, chosen = shape
    return torch.rand(tokens, int(fill.high), device=device, generator=generator).topk(chosen).indices


_FILLS = {"integers": _integers, "permutation": _permutation, "offsets": _offsets, "routing": _routing}
