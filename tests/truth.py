"""What formulas are judged against: masks built entry by entry, and the bytes that a kernel is seen to touch."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from roofline.kernels import Kernel, Packed, make_inputs
from roofline.ops import Op


def mask(queries: int, cached: int, kind: str = "causal", window: int | None = None, sinks: int = 0) -> numpy.ndarray:
    """(queries, keys) booleans, written as the definition of each mask reads, one entry at a time."""
    keys = cached + queries
    rows = numpy.arange(cached, keys)[:, None]
    columns = numpy.arange(keys)[None, :]
    if kind == "full":
        return numpy.ones((queries, keys), bool) if window is None else numpy.abs(rows - columns) <= window // 2
    seen = columns <= rows
    if window is not None:
        seen &= (columns > rows - window) | (columns < sinks)
    return seen


def counted_flops(call: Callable[[], object]) -> int:
    """Matmul FLOPs of a call, as torch's own counter has them."""
    counter = FlopCounterMode(display=False)
    with counter:
        call()
    return int(counter.get_total_flops())


def tensor_flops(op: Op) -> int:
    """FLOPs of an op on matrix engines."""
    return sum(count for engine, count in op.arithmetic().items() if engine.unit == "tensor")


def touched_bytes(op: Op, kernel: Kernel, device: str = "cpu") -> dict[str, int]:
    """Bytes of each operand that a run of ``kernel`` reads or writes, each counted once either way.

    Every aten call is watched. What is read before the kernel wrote it itself counts as read; what is written (or
    returned fresh) counts as written; storage that is neither an operand nor returned does not count.
    """
    operands = make_inputs(op, device)
    call = kernel.bind(op, operands)
    meter = _Meter({tensor.name: _parts(operands[tensor.name]) for tensor in op.tensors()})
    with meter:
        returned = call() or {}
    seen = meter.bytes()
    for name, fresh in returned.items():
        seen[name] += fresh.nbytes
    return seen


def temporary_bytes(op: Op, kernel: Kernel, device: str = "cpu") -> int:
    """Bytes that a run of ``kernel`` writes to storage that is neither an operand nor returned."""
    operands = make_inputs(op, device)
    call = kernel.bind(op, operands)
    meter = _Meter({tensor.name: _parts(operands[tensor.name]) for tensor in op.tensors()})
    with meter:
        returned = call() or {}
    return meter.made - sum(fresh.nbytes for fresh in returned.values())


def _parts(operand: torch.Tensor | Packed) -> tuple[torch.Tensor, ...]:
    return operand.parts if isinstance(operand, Packed) else (operand,)


class _Meter(TorchDispatchMode):
    """Which elements of watched storages are read, and which are written."""

    def __init__(self, watched: dict[str, tuple[torch.Tensor, ...]]) -> None:
        super().__init__()
        self.watched = watched
        self.made = 0
        self.read: dict[int, torch.Tensor] = {}
        self.written: dict[int, torch.Tensor] = {}
        for parts in watched.values():
            for part in parts:
                count = part.untyped_storage().nbytes() // part.element_size()
                self.read[_key(part)] = torch.zeros(count, dtype=torch.bool)
                self.written[_key(part)] = torch.zeros(count, dtype=torch.bool)

    def bytes(self) -> dict[str, int]:
        return {
            name: sum(
                int((marks[_key(part)]).sum()) * part.element_size()
                for part in parts
                for marks in (self.read, self.written)
            )
            for name, parts in self.watched.items()
        }

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.is_view:
            return func(*args, **kwargs)
        self._note(func, args, kwargs)
        result = func(*args, **kwargs)
        known = {_key(tensor) for value in (*args, *kwargs.values()) for tensor in _tensors(value)}
        self.made += sum(tensor.nbytes for tensor in _tensors(result) if _key(tensor) not in known)
        return result

    def _note(self, func, args, kwargs) -> None:
        schema = func._schema.arguments
        values = dict(zip((argument.name for argument in schema), args, strict=False)) | kwargs
        writes = {argument.name for argument in schema if argument.alias_info and argument.alias_info.is_write}
        for name, value in values.items():
            if name not in writes or _updates(func, name):
                for tensor in _tensors(value):
                    if not _is_ignored(func, name, kwargs):
                        self._mark(self.read, _rows_read(func, name, tensor, values), unless=self.written)
        for name in writes:
            for tensor in _tensors(values.get(name)):
                self._mark(self.written, tensor)

    def _mark(self, marks, tensor: torch.Tensor, unless=None) -> None:
        if _key(tensor) not in marks:
            return
        flat = marks[_key(tensor)]
        view = flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        if unless is None:
            view.fill_(True)
        else:
            own = unless[_key(tensor)].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
            view.logical_or_(~own)


def _key(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _tensors(value: object) -> Iterable[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return (value,)
    return tuple(item for item in value if isinstance(item, torch.Tensor)) if isinstance(value, (list, tuple)) else ()


def _updates(func, name: str) -> bool:
    """In-place operators read what they write; copies and out= do not."""
    operator = func._schema.name.removeprefix("aten::")
    return name == "self" and operator.endswith("_") and operator not in ("copy_", "fill_", "zero_")


def _is_ignored(func, name: str, kwargs) -> bool:
    """A product with beta = 0 does not read what it adds to."""
    return func._schema.name in ("aten::baddbmm", "aten::addmm") and name == "self" and kwargs.get("beta", 1) == 0


def _rows_read(func, name: str, tensor: torch.Tensor, values) -> torch.Tensor:
    """Of the table of a gather, the rows that are asked for."""
    index = {"aten::index_select": "index", "aten::index": "indices"}.get(func._schema.name)
    if index is None or name != "self":
        return tensor
    (rows,) = _tensors(values[index])
    return tensor[: rows.unique().numel()]  # as many as are distinct: which ones does not change the count
