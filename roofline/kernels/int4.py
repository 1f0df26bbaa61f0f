"""torch's int4 weight-only product: its packed layouts, which differ between the CPU and CUDA."""

from __future__ import annotations

from collections.abc import Callable

import torch

from roofline.kernels.packed import Packed

GROUP = 128
_INNER_TILES = 8
"""Tiles of 16 along K that torch's CUDA layout interleaves (2, 4 or 8)."""


def bind(x: torch.Tensor, weight: Packed) -> Callable[[], torch.Tensor]:
    """The call that multiplies ``x`` by ``weight``.T, the weight brought into torch's layout once.

    torch computes ``(code - 8) * scale + zero`` with both in the dtype of x; without zero points they are 0.
    """
    zeros = torch.zeros_like(weight.scales) if weight.zeros is None else weight.zeros
    parameters = torch.stack((weight.scales, zeros), -1).transpose(0, 1).contiguous().to(x.dtype)
    if x.device.type == "cpu":
        layout = torch._convert_weight_to_int4pack_for_cpu(weight.codes().to(torch.int32), 1)
        return lambda: torch._weight_int4pack_mm_for_cpu(x, layout, GROUP, parameters)
    codes = weight.codes()
    layout = torch._convert_weight_to_int4pack(codes[:, 0::2] << 4 | codes[:, 1::2], _INNER_TILES)
    return lambda: torch._weight_int4pack_mm(x, layout, GROUP, parameters)
