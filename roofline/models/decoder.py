"""One step of a dense decoder as a tree of ops: a prefill or a decode step.

Names follow transformers where it has one. Two trees of the same model:

* ``serving``, as a serving engine fuses: one linear for q, k and v, one for gate and up; RoPE writes keys and values
  into the cache; SiLU and product in one kernel; each residual add goes with the norm after it.
* ``none``: one kernel for each named operation and every round trip through memory between them; attention is three
  kernels over the whole square. (PyTorch in eager mode splits norm and RoPE into several more.)
"""

from dataclasses import dataclass
from typing import Literal

from roofline.models.decoder_config import DecoderConfig
from roofline.models.precision import Precision
from roofline.ops import (
    Attention,
    Embedding,
    GatedActivation,
    KVAppend,
    Linear,
    LMHead,
    Node,
    Residual,
    RMSNorm,
    RotaryEmbedding,
    group,
    node_of,
)
from roofline.ops.sizes import Size, minimum

Fusion = Literal["serving", "none"]
FUSIONS: tuple[Fusion, ...] = ("serving", "none")


@dataclass(frozen=True, slots=True)
class _Step:
    """What every part of a step needs to know."""

    config: DecoderConfig
    precision: Precision
    batch: Size
    queries: Size
    cached: Size
    fused: bool

    @property
    def tokens(self) -> Size:
        """Rows of the hidden states."""
        return self.batch * self.queries

    @property
    def dtype(self) -> str:
        return self.precision.activations

    def linear(self, out_features: int, in_features: int, *, bias: bool = False) -> Linear:
        """A linear layer on all rows."""
        return Linear(
            tokens=self.tokens,
            in_features=in_features,
            out_features=out_features,
            bias=bias,
            dtype=self.dtype,
            weight_dtype=self.precision.weights,
            out_dtype=self.dtype,
            compute=self.precision.compute,
        )

    def norm(self, *, residual: bool = False) -> RMSNorm:
        """A norm over the hidden size."""
        return RMSNorm(tokens=self.tokens, hidden_size=self.config.hidden_size, residual=residual, dtype=self.dtype)


def decoder_step(
    config: DecoderConfig,
    phase: Literal["prefill", "decode"],
    *,
    batch: Size = 1,
    context: Size = 0,
    tokens: Size = 1,
    prefix: Size = 0,
    precision: Precision | None = None,
    fusion: Fusion = "serving",
) -> Node:
    """One step of ``batch`` sequences.

    ``decode``: each sequence has ``context`` cached positions, computes one more and appends it, so that it attends to
    ``context + 1`` keys. ``prefill``: ``tokens`` new positions a sequence after ``prefix`` cached ones, and only the
    last of them goes through the LM head. Sizes may be ints, float64 arrays or sympy symbols.

    A layer with a sliding window keeps no more than the keys that it can still see (a rolling cache).
    """
    precision = precision or Precision(weights=config.dtype or "bf16")
    queries, cached = (1, context) if phase == "decode" else (tokens, prefix)
    step = _Step(config, precision, batch, queries, cached, fusion == "serving")
    first = (Node("input_layernorm", op=step.norm()),) if step.fused else ()
    last = () if step.fused else (Node("norm", op=step.norm()),)
    return group(phase, _embedding(step), *first, *_layers(step), *last, _lm_head(step))


def _embedding(step: _Step) -> Node:
    """Rows of the table; more tokens than the vocabulary has cannot all differ."""
    config = step.config
    op = Embedding(
        tokens=step.tokens,
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        distinct=minimum(step.tokens, config.vocab_size),
        tied=config.tied,
        dtype=step.dtype,
    )
    return Node("embed_tokens", op=op)


def _lm_head(step: _Step) -> Node:
    """One row a sequence."""
    config, precision = step.config, step.precision
    op = LMHead(
        rows=step.batch,
        hidden_size=config.hidden_size,
        vocab_size=config.vocab_size,
        tied=config.tied,
        dtype=step.dtype,
        weight_dtype=step.dtype if config.tied else precision.lm_head,
        out_dtype=step.dtype,
        compute=None if config.tied else precision.lm_head_compute,
    )
    return Node("lm_head", op=op)


def _layers(step: _Step) -> tuple[Node, ...]:
    """All layers, folded: one node, or one for each kind of attention where both occur."""
    config = step.config
    full, sliding = config.layers - config.sliding_layers, config.sliding_layers
    kinds = [(full, None, "full_attention"), (sliding, config.sliding_window, "sliding_attention")]
    present = [kind for kind in kinds if kind[0]]
    return tuple(
        group("layers" if len(present) == 1 else f"{name}_layers", *_layer(step, window), repeat=count)
        for count, window, name in present
    )


def _layer(step: _Step, window: int | None) -> tuple[Node, ...]:
    """One layer; fused, its last norm is the next layer's input norm, and the model's final norm in the last layer."""
    attention, mlp = group("self_attn", *_attention(step, window)), group("mlp", *_mlp(step))
    if step.fused:
        added = step.norm(residual=True)
        return (attention, Node("post_attention_layernorm", op=added), mlp, Node("next_input_layernorm", op=added))
    residual = Residual(tokens=step.tokens, hidden_size=step.config.hidden_size, dtype=step.dtype)
    return (
        Node("input_layernorm", op=step.norm()),
        attention,
        Node("attention_residual", op=residual),
        Node("post_attention_layernorm", op=step.norm()),
        mlp,
        Node("mlp_residual", op=residual),
    )


def _attention(step: _Step, window: int | None) -> tuple[Node, ...]:
    config, precision = step.config, step.precision
    cached = step.cached if window is None else minimum(step.cached, window - 1)
    shape = {
        "batch": step.batch,
        "heads": config.heads,
        "kv_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "queries": step.queries,
    }
    attention = Attention(
        **shape,
        cached=cached,
        window=window,
        implementation="fused" if step.fused else "naive",
        dtype=step.dtype,
        kv_dtype=precision.kv,
    )
    output = step.linear(config.hidden_size, config.heads * config.head_dim, bias=config.o_bias)
    return (
        *_qkv(step),
        *_qk_norms(step),
        *_rotary(step, cached),
        node_of("attn", attention),
        Node("o_proj", op=output),
    )


def _qkv(step: _Step) -> tuple[Node, ...]:
    config = step.config
    query, key = config.heads * config.head_dim, config.kv_heads * config.head_dim
    widths = {"qkv_proj": query + 2 * key} if step.fused else {"q_proj": query, "k_proj": key, "v_proj": key}
    return tuple(
        Node(name, op=step.linear(width, config.hidden_size, bias=config.qkv_bias)) for name, width in widths.items()
    )


def _qk_norms(step: _Step) -> tuple[Node, ...]:
    """An RMSNorm on every query head and one on every key head, each with one weight of a head's size."""
    config = step.config
    if not config.qk_norm:
        return ()
    return tuple(
        Node(name, op=RMSNorm(tokens=step.tokens * heads, hidden_size=config.head_dim, dtype=step.dtype))
        for name, heads in (("q_norm", config.heads), ("k_norm", config.kv_heads))
    )


def _rotary(step: _Step, cached: Size) -> tuple[Node, ...]:
    config = step.config
    rotary = RotaryEmbedding(
        batch=step.batch,
        heads=config.heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        queries=step.queries,
        cached=cached if step.fused else 0,
        append=step.fused,
        dtype=step.dtype,
        kv_dtype=step.precision.kv if step.fused else step.dtype,
    )
    if step.fused:
        return (Node("rotary_emb", op=rotary),)
    append = KVAppend(
        batch=step.batch,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        queries=step.queries,
        cached=cached,
        dtype=step.dtype,
        kv_dtype=step.precision.kv,
    )
    return (Node("rotary_emb", op=rotary), Node("kv_append", op=append))


def _mlp(step: _Step) -> tuple[Node, ...]:
    config = step.config
    hidden, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
    widths = {"gate_up_proj": 2 * inner} if step.fused else {"gate_proj": inner, "up_proj": inner}
    act = GatedActivation(
        tokens=step.tokens,
        intermediate_size=inner,
        function=config.activation,
        implementation="fused" if step.fused else "naive",
        dtype=step.dtype,
    )
    return (
        *(Node(name, op=step.linear(width, hidden, bias=bias)) for name, width in widths.items()),
        node_of("act_fn", act),
        Node("down_proj", op=step.linear(hidden, inner, bias=bias)),
    )
