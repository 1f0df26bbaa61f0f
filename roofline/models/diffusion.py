"""Denoising steps of a diffusion transformer as a tree of ops.

Counted: the transformer, with its patch, text and timestep embedders, in every pass. Not counted: the text encoder
and the VAE (they run once an image), the scheduler's update and the mixing of the two guided predictions (a few FLOPs
for each latent element), and sums of conditioning vectors (one row an image). Names follow diffusers.

``serving`` fuses what is fused in practice: one linear for q, k and v, LayerNorm with the modulation after it, gate
with the residual add. With ``none`` the projections are apart, LayerNorm and modulation are two kernels, and attention
is three.
"""

from dataclasses import dataclass

from roofline.models.decoder import Fusion
from roofline.models.diffusion_config import DiffusionConfig
from roofline.models.phases import Denoise, latent_frames
from roofline.models.precision import Precision
from roofline.ops import (
    Activation,
    Attention,
    Embedding,
    LayerNorm,
    Linear,
    Node,
    Residual,
    RMSNorm,
    RotaryEmbedding,
    ScaleShift,
    group,
)
from roofline.ops.sizes import Size


@dataclass(frozen=True, slots=True)
class _Pass:
    """One pass of the transformer: what every part of it needs to know."""

    config: DiffusionConfig
    precision: Precision
    images: Size
    image_tokens: Size
    text_tokens: Size
    fused: bool

    @property
    def dtype(self) -> str:
        return self.precision.activations

    @property
    def image_rows(self) -> Size:
        return self.images * self.image_tokens

    @property
    def text_rows(self) -> Size:
        return self.images * self.text_tokens

    def linear(self, name: str, rows: Size, in_features: int, out_features: int) -> Node:
        """A linear layer with a bias, as all of them have."""
        op = Linear(
            tokens=rows,
            in_features=in_features,
            out_features=out_features,
            bias=True,
            dtype=self.dtype,
            weight_dtype=self.precision.weights,
            out_dtype=self.dtype,
            compute=self.precision.compute,
        )
        return Node(name, op=op)

    def act(self, name: str, rows: Size, features: int, function: str) -> Node:
        return Node(name, op=Activation(tokens=rows, features=features, function=function, dtype=self.dtype))

    def two_layers(self, name: str, rows: Size, in_features: int, function: str, width: int | None = None) -> Node:
        """An embedder: linear, activation, linear."""
        hidden = width or self.config.hidden_size
        return group(
            name,
            self.linear("linear_1", rows, in_features, hidden),
            self.act("act", rows, hidden, function),
            self.linear("linear_2", rows, hidden, hidden),
        )

    def modulation(self, chunks: int) -> Node:
        """Scales, shifts and gates from the timestep.

        A linear layer of this block; or a small table, of which each image gets a copy added to what all blocks share.
        """
        hidden = self.config.hidden_size
        if self.config.modulation == "block":
            return self.linear("linear", self.images, hidden, chunks * hidden)
        rows = self.images * chunks
        table = Embedding(tokens=rows, vocab_size=chunks, hidden_size=hidden, distinct=chunks, dtype=self.dtype)
        return Node("scale_shift_table", op=table)

    def scale_shift(self, rows: Size, name: str = "norm") -> tuple[Node, ...]:
        """LayerNorm without weights, then scale and shift."""
        hidden = self.config.hidden_size
        op = ScaleShift(tokens=rows, hidden_size=hidden, images=self.images, norm=self.fused, dtype=self.dtype)
        if self.fused:
            return (Node(name, op=op),)
        norm = LayerNorm(tokens=rows, hidden_size=hidden, affine=False, dtype=self.dtype)
        return (Node(name, op=norm), Node(f"{name}_scale_shift", op=op))

    def residual(self, name: str, rows: Size, *, gate: bool = True) -> Node:
        """The residual add, with its gate."""
        images = self.images if gate else 1
        op = Residual(tokens=rows, hidden_size=self.config.hidden_size, gate=gate, images=images, dtype=self.dtype)
        return Node(name, op=op)

    def projections(self, rows: Size, fused: str, *apart: str) -> tuple[Node, ...]:
        """Linear layers of one input, each as wide as all heads: fused into one, or apart."""
        hidden, width = self.config.hidden_size, self.config.width
        if self.fused:
            return (self.linear(fused, rows, hidden, len(apart) * width),)
        return tuple(self.linear(name, rows, hidden, width) for name in apart)

    def qk_norm(self, name: str, rows: Size) -> tuple[Node, ...]:
        """The RMSNorm of queries or keys, of each head or of all heads together."""
        config = self.config
        if config.qk_norm == "none":
            return ()
        by_head = config.qk_norm == "head"
        op = RMSNorm(
            tokens=rows * config.heads if by_head else rows,
            hidden_size=config.head_dim if by_head else config.width,
            dtype=self.dtype,
        )
        return (Node(name, op=op),)

    def attention(self, tokens: Size) -> tuple[Node, ...]:
        """Rotary positions and attention of ``tokens`` positions of each image among themselves."""
        config = self.config
        rotary = RotaryEmbedding(
            batch=self.images, heads=config.heads, head_dim=config.head_dim, queries=tokens, dtype=self.dtype
        )
        return (*((Node("rotary_emb", op=rotary),) if config.rotary else ()), *self._attend(tokens, None))

    def cross_attention(self) -> tuple[Node, ...]:
        """Attention of the image's positions to the text's."""
        return self._attend(self.image_tokens, self.text_tokens)

    def _attend(self, queries: Size, keys: Size | None) -> tuple[Node, ...]:
        config = self.config
        op = Attention(
            batch=self.images,
            heads=config.heads,
            head_dim=config.head_dim,
            queries=queries,
            keys=keys,
            mask="full",
            kv_cache=False,
            implementation="fused" if self.fused else "naive",
            dtype=self.dtype,
        )
        parts = op.parts()
        return tuple(Node(f"attn_{part}", op=child) for part, child in parts) if parts else (Node("attn", op=op),)

    def mlp(self, name: str, rows: Size) -> Node:
        hidden, inner = self.config.hidden_size, self.config.intermediate_size
        return group(
            name,
            self.linear("linear_in", rows, hidden, inner),
            self.act("act", rows, inner, self.config.activation),
            self.linear("linear_out", rows, inner, hidden),
        )


def diffusion_step(
    config: DiffusionConfig, what: Denoise, *, precision: Precision | None = None, fusion: Fusion = "serving"
) -> Node:
    """``what.steps`` denoising steps; sizes may be ints, float64 arrays or sympy symbols.

    Classifier-free guidance doubles the passes: ``cfg`` runs them as one batch, so that weights are read once,
    ``cfg-sequential`` one after the other.
    """
    guidance = what.guidance or config.guidance
    side = config.vae_factor * config.patch_size
    frames = latent_frames(config, what.frames) // config.patch_frames
    one = _Pass(
        config,
        precision or Precision(weights="bf16"),
        what.batch * (2 if guidance == "cfg" else 1),
        frames * (what.height // side) * (what.width // side),
        config.text_tokens if what.text_tokens is None else what.text_tokens,
        fusion == "serving",
    )
    nodes = _transformer(one)
    if guidance == "cfg-sequential":
        nodes = (group("pass", *nodes, repeat=2, shared=True),)
    return group("denoise", group("step", *nodes, repeat=what.steps, shared=True))


def _transformer(one: _Pass) -> tuple[Node, ...]:
    config = one.config
    patch = config.patch_frames * config.patch_size**2
    blocks = {"joint": _joint_blocks, "cross": _blocks, "self": _blocks}[config.attention](one)
    return (
        one.linear("patch_embed", one.image_rows, config.latent_channels * patch, config.hidden_size),
        _time_embed(one),
        *_text_embed(one),
        *blocks,
        group("norm_out", one.modulation(2), *one.scale_shift(one.image_rows)),
        one.linear("proj_out", one.image_rows, config.hidden_size, config.out_channels * patch),
    )


def _time_embed(one: _Pass) -> Node:
    """Timestep, guidance scale, pooled text, size and class label, embedded into one row an image."""
    config, rows = one.config, one.images
    nodes = [one.two_layers("timestep_embedder", rows, config.time_width, "silu")]
    if config.guidance_embeds:
        nodes.append(one.two_layers("guidance_embedder", rows, config.time_width, "silu"))
    if config.pooled_width:
        nodes.append(one.two_layers("text_embedder", rows, config.pooled_width, "silu"))
    if config.size_embeds:
        third = config.hidden_size // 3
        nodes.append(one.two_layers("resolution_embedder", 2 * rows, config.time_width, "silu", third))
        nodes.append(one.two_layers("aspect_ratio_embedder", rows, config.time_width, "silu", third))
    if config.classes:
        table = Embedding(tokens=rows, vocab_size=config.classes, hidden_size=config.hidden_size, dtype=one.dtype)
        nodes.append(Node("class_embedder", op=table))
    nodes.append(one.act("act", rows, config.hidden_size, "silu"))
    if config.modulation == "shared":
        nodes.append(one.linear("linear", rows, config.hidden_size, 6 * config.hidden_size))
    return group("time_embed", *nodes)


def _text_embed(one: _Pass) -> tuple[Node, ...]:
    """The text encoder's output brought to the width of the stream."""
    width = one.config.text_width
    if one.config.attention == "joint":
        return (one.linear("context_embedder", one.text_rows, width, one.config.hidden_size),)
    return (one.two_layers("caption_projection", one.text_rows, width, "gelu-tanh"),) if width else ()


def _joint_blocks(one: _Pass) -> tuple[Node, ...]:
    """Blocks with weights for each stream, then blocks in which both streams are one sequence."""
    config = one.config
    pre_only = 1 if config.context_pre_only else 0
    nodes = []
    if config.layers > pre_only:
        nodes.append(group("transformer_blocks", *_joint_block(one), repeat=config.layers - pre_only))
    if pre_only:
        nodes.append(group("last_transformer_block", *_joint_block(one, pre_only=True)))
    if config.single_layers:
        nodes.append(group("single_transformer_blocks", *_single_block(one), repeat=config.single_layers))
    return tuple(nodes)


def _joint_block(one: _Pass, *, pre_only: bool = False) -> tuple[Node, ...]:
    image, text = one.image_rows, one.text_rows
    width, hidden = one.config.width, one.config.hidden_size
    attention = [
        *one.projections(image, "to_qkv", "to_q", "to_k", "to_v"),
        *one.projections(text, "add_qkv_proj", "add_q_proj", "add_k_proj", "add_v_proj"),
        *one.qk_norm("norm_q", image),
        *one.qk_norm("norm_k", image),
        *one.qk_norm("norm_added_q", text),
        *one.qk_norm("norm_added_k", text),
        *one.attention(one.image_tokens + one.text_tokens),
        one.linear("to_out", image, width, hidden),
    ]
    if not pre_only:
        attention.append(one.linear("to_add_out", text, width, hidden))
    return (
        group("norm1", one.modulation(6), *one.scale_shift(image)),
        group("norm1_context", one.modulation(2 if pre_only else 6), *one.scale_shift(text)),
        group("attn", *attention),
        *_after_attention(one, "", image),
        *(() if pre_only else _after_attention(one, "_context", text)),
    )


def _after_attention(one: _Pass, stream: str, rows: Size) -> tuple[Node, ...]:
    """The rest of a block for one stream: gated residual, modulated MLP, gated residual."""
    return (
        one.residual(f"attn_residual{stream}", rows),
        *one.scale_shift(rows, f"norm2{stream}"),
        one.mlp(f"ff{stream}", rows),
        one.residual(f"ff_residual{stream}", rows),
    )


def _single_block(one: _Pass) -> tuple[Node, ...]:
    """Attention and MLP side by side on one sequence of text and image, with one projection out of both."""
    config = one.config
    rows = one.image_rows + one.text_rows
    hidden, width, inner = config.hidden_size, config.width, config.intermediate_size
    if one.fused:
        projections: tuple[Node, ...] = (one.linear("to_qkv_mlp_proj", rows, hidden, 3 * width + inner),)
    else:
        projections = (
            one.linear("proj_mlp", rows, hidden, inner),
            *one.projections(rows, "to_qkv", "to_q", "to_k", "to_v"),
        )
    return (
        group("norm", one.modulation(3), *one.scale_shift(rows)),
        group(
            "attn",
            *projections,
            *one.qk_norm("norm_q", rows),
            *one.qk_norm("norm_k", rows),
            *one.attention(one.image_tokens + one.text_tokens),
        ),
        one.act("act_mlp", rows, inner, config.activation),
        one.linear("proj_out", rows, width + inner, hidden),
        one.residual("residual", rows),
    )


def _blocks(one: _Pass) -> tuple[Node, ...]:
    """Blocks of one stream: self-attention, attention to the text where there is any, MLP."""
    config, rows = one.config, one.image_rows
    attention = (
        *one.projections(rows, "to_qkv", "to_q", "to_k", "to_v"),
        *one.qk_norm("norm_q", rows),
        *one.qk_norm("norm_k", rows),
        *one.attention(one.image_tokens),
        one.linear("to_out", rows, config.width, config.hidden_size),
    )
    first, *rest = _after_attention(one, "", rows)
    block = (
        group("norm1", one.modulation(6), *one.scale_shift(rows)),
        group("attn1", *attention),
        first,
        *(_cross(one) if config.attention == "cross" else ()),
        *rest,
    )
    return (group("transformer_blocks", *block, repeat=config.layers),)


def _cross(one: _Pass) -> tuple[Node, ...]:
    """Attention to the text; its keys and values are projected anew in every step."""
    config, rows = one.config, one.image_rows
    norm = LayerNorm(tokens=rows, hidden_size=config.hidden_size, dtype=one.dtype)
    attention = (
        *((Node("norm", op=norm),) if config.cross_norm else ()),
        one.linear("to_q", rows, config.hidden_size, config.width),
        *one.projections(one.text_rows, "to_kv", "to_k", "to_v"),
        *one.qk_norm("norm_q", rows),
        *one.qk_norm("norm_k", one.text_rows),
        *one.cross_attention(),
        one.linear("to_out", rows, config.width, config.hidden_size),
    )
    return (group("attn2", *attention), one.residual("cross_residual", rows, gate=False))
