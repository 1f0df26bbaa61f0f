"""``quantization_config`` of a published checkpoint, read into one of our storage dtypes where one is exactly that."""

from collections.abc import Mapping
from typing import Any

from roofline.fields import Where, shown


def stored_as(config: Any, where: Where) -> str | None:
    """The storage dtype of the quantised weights; None for a checkpoint that is not quantised.

    Understood are GPTQ and AWQ of 4 bits in groups of 128, and fp8 with one scale a tensor or a row. Anything else
    raises ``RooflineError`` ("unsupported-quantization"): its scales would be counted wrongly.
    """
    if not config:
        return None
    if not isinstance(config, Mapping):
        raise where.error(
            ("quantization_config",), f"quantization_config must be a mapping, not {shown(config)}", code="bad-value"
        )
    method = config.get("quant_method")
    found = None
    if method in ("gptq", "awq"):
        found = _int4(config, zero_point=method == "awq")
    elif method == "fp8" and not config.get("weight_block_size"):
        found = "fp8"
    elif method == "fbgemm_fp8":
        found = "fp8-row"
    if found is None:
        raise where.error(
            ("quantization_config",),
            f"quantization {shown(method)} as configured here matches no storage dtype exactly: state `precision`",
            code="unsupported-quantization",
            of="key",
        )
    return found


def _int4(config: Mapping[str, Any], *, zero_point: bool) -> str | None:
    """GPTQ packs zero points unless it is symmetric; AWQ says ``zero_point``."""
    if config.get("bits", config.get("w_bit")) != 4 or config.get("group_size", config.get("q_group_size")) != 128:
        return None
    has_zero = config.get("zero_point", True) if zero_point else not config.get("sym", True)
    return "int4-g128-zp" if has_zero else "int4-g128"
