"""Hypothesis strategies for operations, drawn from what each op declares about its own fields."""

from __future__ import annotations

from hypothesis import strategies as st

from roofline.dtypes import DTYPES
from roofline.errors import RooflineError
from roofline.ops.base import FieldInfo, Op, op_fields

FLOATS = ("fp64", "fp32", "bf16", "fp16")
NARROW = ("fp8", "fp8-row", "int8", "int4-g128", "int4-g128-zp", "nvfp4", "mxfp4", "mxfp8")

_FEW = {"batch", "images", "heads", "kv_heads"}


@st.composite
def ops(draw, op_type: type[Op], *, most: int = 40, dtypes: tuple[str, ...] | None = None, **fixed) -> Op:
    """A valid op of ``op_type``: sizes up to ``most``, storage dtypes among ``dtypes`` (None: all), ``fixed`` kept."""
    infos = op_fields(op_type)
    values = {
        name: fixed[name] if name in fixed else draw(_field(name, info, most, dtypes)) for name, info in infos.items()
    }
    values = _fit(draw, infos, values, fixed)
    op = op_type(**values)
    try:
        op.check()
    except RooflineError:
        from hypothesis import reject

        reject()
    return op


def _field(name: str, info: FieldInfo, most: int, dtypes: tuple[str, ...] | None) -> st.SearchStrategy:
    if info.kind == "size":
        largest = min(most, 6) if name in _FEW else most
        drawn = st.integers(info.minimum, max(info.minimum, largest))
    elif info.kind == "flag":
        drawn = st.booleans()
    elif info.kind == "storage":
        drawn = st.sampled_from(dtypes or tuple(info.choices))
    elif info.kind == "compute":
        drawn = st.sampled_from(("bf16", "fp16", "fp32"))
    else:
        drawn = st.sampled_from(info.choices)
    return st.none() | drawn if info.optional else drawn


def _fit(draw, infos: dict[str, FieldInfo], values: dict, fixed: dict) -> dict:
    """Make sizes that depend on each other fit, where drawing until they do would take too long."""
    fitted = dict(values)
    if "heads" in infos and "kv_heads" in infos and values["kv_heads"] is not None and "kv_heads" not in fixed:
        fitted["heads"] = values["kv_heads"] * draw(st.integers(1, 4))
    if "images" in infos and "tokens" not in fixed:
        fitted["tokens"] = values["images"] * draw(st.integers(1, 8))
    if "distinct" in infos and values["distinct"] is not None:
        fitted["distinct"] = min(values["distinct"], values["tokens"], values["vocab_size"])
    if infos.keys() >= {"append", "cached"} and not values["append"]:
        fitted["cached"] = 0
    if infos.keys() >= {"append", "head_dim"}:
        fitted["head_dim"] += values["head_dim"] % 2
    if infos.keys() >= {"keys", "window", "sinks"}:
        _fit_mask(fitted, values)
    if "compute" in infos and values["compute"] is None and _weight_only(values):
        fitted["compute"] = "bf16"
    return fitted | fixed


def _fit_mask(fitted: dict, values: dict) -> None:
    if values["keys"] is not None:
        fitted.update(cached=0, window=None, sinks=0)
    elif values["window"] is None or values["mask"] != "causal":
        fitted["sinks"] = 0


def _weight_only(values: dict) -> bool:
    stored = values.get("weight_dtype") or values["dtype"]
    return DTYPES[stored].native is None
