"""Visible query-key pairs: the one place where an attention mask is counted, exactly.

The queries are the last ``queries`` positions of ``cached + queries`` keys (bottom-right alignment), so decode is
``queries=1``, a whole prompt is ``cached=0``, a chunk or a speculative verify is anything between.
"""

from roofline.ops.sizes import Size, half, minimum, triangle

CAUSAL = "causal"
FULL = "full"
MASKS = (CAUSAL, FULL)


def pairs(queries: Size, cached: Size = 0, *, mask: str = CAUSAL, window: Size | None = None, sinks: Size = 0) -> Size:
    """How many (query, key) pairs are visible in one sequence of one head.

    * ``causal``: position p sees keys 0..p; with a ``window`` the last ``window`` of them, itself included (Mistral's
      and FlashAttention's ``left = window - 1``), and always the first ``sinks`` keys (StreamingLLM).
    * ``full``: every query sees every key; with a ``window`` only keys at most ``window // 2`` away on either side
      (ModernBERT's local attention). Sinks are not defined there.

    Equal to the number of true entries of the boolean mask, which the tests build and count.
    """
    keys = cached + queries
    if mask == CAUSAL:
        if window is None:
            return queries * cached + triangle(queries)
        # sinks and window never overlap while both are partial, so their sizes add
        return _capped(cached, keys, window + sinks)
    if window is None:
        return queries * keys
    reach = _either_side(window)
    left = _capped(cached - 1, keys - 1, reach)
    right = _capped(-1, queries - 1, reach)
    return queries + left + right


def keys_read(
    queries: Size, cached: Size = 0, *, mask: str = CAUSAL, window: Size | None = None, sinks: Size = 0
) -> Size:
    """How many distinct keys at least one of the queries sees: what must be read from the cache."""
    keys = cached + queries
    if window is None:
        return keys
    reach = window - 1 + sinks if mask == CAUSAL else _either_side(window)
    return minimum(keys, queries + reach)


def top_k_pairs(queries: Size, cached: Size, k: Size) -> Size:
    """Visible pairs where each query attends to at most ``k`` of the keys that causality lets it see."""
    return _capped(cached, cached + queries, k)


def _capped(first: Size, last: Size, limit: Size) -> Size:
    """The sum of min(j, limit) for j = first + 1 .. last, with first >= -1.

    The ramp up to the limit and the flat part are added, never a large sum subtracted from another: float64 would
    lose the digits.
    """
    low, high = minimum(first, limit), minimum(last, limit)
    ramp = half((high - low) * (low + high + 1))
    return ramp + (last - first - (high - low)) * limit


def _either_side(window: Size) -> Size:
    if hasattr(window, "free_symbols"):
        import sympy

        return sympy.floor(window / 2)
    return window // 2
