"""fp32 products in fp32, and TF32 only where it is asked for: torch's process-wide switches, set and put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from roofline.kernels.base import Call, Outputs


def scoped(call: Call, engine_dtype: str) -> Call:
    """``call`` with the matrix precision of ``engine_dtype`` (fp32 or tf32) while it runs; others need no switch."""
    if engine_dtype not in ("fp32", "tf32"):
        return call

    def with_precision() -> Outputs:
        with fp32_products(tf32=engine_dtype == "tf32"):
            return call()

    return with_precision


@contextmanager
def fp32_products(*, tf32: bool) -> Iterator[None]:
    """Products of fp32 matrices in TF32 or in full fp32, on every backend, whatever the process is set to."""
    switches = _switches()
    before = [getattr(owner, name) for owner, name, _, _ in switches]
    for owner, name, full, fast in switches:
        setattr(owner, name, fast if tf32 else full)
    try:
        yield
    finally:
        for (owner, name, _, _), value in zip(switches, before, strict=True):
            setattr(owner, name, value)


def _switches() -> list[tuple[Any, str, Any, Any]]:
    """(object, attribute, value for fp32, value for TF32); torch renamed them in 2.9 and refuses a mix of both."""
    owners = (torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None))
    new = [(owner, "fp32_precision", "ieee", "tf32") for owner in owners if hasattr(owner, "fp32_precision")]
    return list(new) or [(torch.backends.cuda.matmul, "allow_tf32", False, True)]
