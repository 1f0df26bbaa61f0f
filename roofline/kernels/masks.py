"""Attention masks as booleans: what ``ops/masks.py`` counts."""

from __future__ import annotations

import torch

from roofline.ops import masks


def visible(
    queries: int,
    cached: int,
    device: torch.device,
    *,
    mask: str = masks.CAUSAL,
    window: int | None = None,
    sinks: int = 0,
) -> torch.Tensor:
    """(queries, cached + queries), true where a query sees a key; the queries are the last positions."""
    keys = cached + queries
    query = torch.arange(cached, keys, device=device).unsqueeze(1)
    key = torch.arange(keys, device=device).unsqueeze(0)
    if mask == masks.FULL:
        if window is None:
            return torch.ones((queries, keys), dtype=torch.bool, device=device)
        return (query - key).abs() <= window // 2
    seen = key <= query
    if window is None:
        return seen
    return seen & ((query - key < window) | (key < sinks))
