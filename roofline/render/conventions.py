"""The rules of accounting, for ``explain --conventions`` and the documents."""

from __future__ import annotations

from typing import Final

CONVENTIONS: Final[tuple[tuple[str, str], ...]] = (
    (
        "FLOPs",
        (
            "A multiply-add is 2 FLOPs. Matmul FLOPs go to the matrix engine of the dtype computed in "
            "(tensor:bf16), elementwise FLOPs to the vector engine (vector:fp32). A transcendental (exp, tanh, "
            "erf, rsqrt) counts 1 vector FLOP and also 1 operation of the special-function unit (special:fp32). "
            "FLOPs are tensor plus vector; intensity is FLOPs over bytes; special operations are never summed "
            "into FLOPs."
        ),
    ),
    (
        "softmax",
        (
            "3 FLOPs a score: exponentiate, accumulate, normalise. Naive attention with N = 4096 and d = 128 in "
            "fp16 then has 4 N^2 d + 3 N^2 FLOPs, 8 N^2 + 8 N d bytes and an intensity of 62.42."
        ),
    ),
    (
        "visible pairs",
        (
            "Attention counts the visible query-key pairs exactly (causal with its diagonal, windows with their "
            "triangle, chunks after a prefix), never N^2 / 2. Queries are the last of cached + queries keys, so a"
            " decode step at context C attends to C + 1 keys, reads C + 1 and appends 1. An unfused causal "
            "implementation still computes the whole square and is charged for it."
        ),
    ),
    (
        "bytes",
        (
            "Compulsory traffic: each distinct input once, each output once, at its own dtype with block scales "
            "and zero points. An unfused implementation is several ops, so it is charged every round trip of "
            "every intermediate."
        ),
    ),
    (
        "read is not resident",
        (
            "The LM head is read, the embedding table is not (only the rows that are looked up). In prefill only "
            "the last position of each sequence goes through the LM head. Tied weights are resident once."
        ),
    ),
    (
        "peaks",
        (
            "Dense. Storage and compute dtype are separate: without `compute` a matmul runs on the native engine "
            "of the stored weight, and a device without that engine is an error; weight-only formats say "
            "`compute: bf16`; tf32 is a compute dtype over fp32 storage. fp32 on a device without such a matrix "
            "engine runs on the vector lanes."
        ),
    ),
    (
        "units",
        (
            "kB, MB, GB are powers of 1000, KiB, MiB, GiB of 1024. Memory capacities are binary, rates decimal, "
            "link bandwidth is one direction of one device."
        ),
    ),
    (
        "floor",
        (
            "A floor is what the ceilings allow, not a forecast. An op's floor is the largest of its times "
            "against each ceiling; the tree's floor is the sum over its ops, run one after the other with data in"
            " memory. The lower bound is the largest over resources of all compulsory work, which no overlap "
            "beats. A tree's bound is the resource that holds the largest share of the floor; a tie goes to "
            "memory."
        ),
    ),
    (
        "near the ridge",
        (
            "Where the memory floor and the compute floor are within a factor of two of each other, the bound is "
            "named but marked, and no measurement is asked to confirm it."
        ),
    ),
    (
        "above the roof",
        (
            "A measured time under the floor is an accounting fault until explained (cache-resident data, wrong "
            "bytes, a ceiling measured too low, a card boosting past its rated clock); it is never an efficiency "
            "of 105 %."
        ),
    ),
)
"""Each rule as (title, text)."""
