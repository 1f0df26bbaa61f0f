"""Diffusion transformers described by their sizes, or read from the ``config.json`` of a diffusers transformer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from roofline.errors import RooflineError
from roofline.fields import Where, build, read_size, shown
from roofline.models.config import KIND
from roofline.models.phases import GUIDANCE
from roofline.ops.base import flag, option, size
from roofline.ops.elementwise import FUNCTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionConfig:
    """A diffusion transformer: patches of a latent image (or video), text, adaLN from the timestep.

    ``attention`` says how the text comes in. ``joint`` (SD3, FLUX): ``layers`` blocks in which image and text have
    their own weights and attend together, then ``single_layers`` blocks in which they share weights and attention
    and MLP run side by side. ``cross`` (PixArt, Wan): self-attention, then attention to the text. ``self`` (DiT): no
    text; a class label is added to the timestep.

    ``modulation: block`` gives each block its own linear layer from the timestep to scales, shifts and gates;
    ``shared`` has one for all blocks, and a small table in each block that is added to it.
    """

    attention: str = option("joint, cross or self", ("joint", "cross", "self"))
    hidden_size: int = size("h", "width of the stream")
    layers: int = size("L", "blocks; with joint attention those with weights for text and image each")
    single_layers: int = size("L_1", "blocks with shared weights after them (joint attention only)", min=0, default=0)
    heads: int = size("H", "attention heads")
    head_dim: int = size("d", "size of a head; by default hidden_size / heads", default=None)
    intermediate_size: int = size("f", "width inside the MLP; by default 4 hidden_size", default=None)
    activation: str = option("function of the MLP", FUNCTIONS, default="gelu-tanh")
    modulation: str = option("where scales and shifts come from", ("block", "shared"), default="block")
    qk_norm: str = option("RMSNorm of queries and keys: none, by head or over all heads", ("none", "head", "full"),
                          default="none")  # fmt: skip
    rotary: bool = flag("rotary positions in self-attention")
    cross_norm: bool = flag("a LayerNorm with weights before cross-attention")
    context_pre_only: bool = flag("the last joint block updates no text (SD3)")
    latent_channels: int = size("C", "channels of the latent", default=16)
    out_channels: int = size("C_o", "channels that are predicted; by default as many", default=None)
    patch_size: int = size("p", "height and width of a patch of the latent", default=2)
    patch_frames: int = size("p_t", "latent frames in a patch", default=1)
    vae_factor: int = size("v", "pixels along a side of one latent position", default=8)
    vae_frames: int = size("v_t", "frames that one latent frame holds, the first alone", default=4)
    text_width: int = size("t", "width of the text encoder's output; 0 without text", min=0, default=0)
    text_tokens: int = size("T", "tokens of the text where the descriptor does not say", min=0, default=0)
    pooled_width: int = size("t_p", "width of the pooled text that is added to the timestep", min=0, default=0)
    time_width: int = size("t_t", "width of the sinusoids of the timestep", default=256)
    guidance_embeds: bool = flag("the guidance scale is embedded like the timestep (guidance-distilled models)")
    size_embeds: bool = flag("resolution and aspect ratio are embedded too, each into a third of the width (PixArt)")
    classes: int = size("n_c", "rows of the table of class labels; 0 without", min=0, default=0)
    guidance: str = option("how the model is guided where the descriptor does not say", GUIDANCE, default="cfg")

    def __post_init__(self) -> None:
        """Fill the sizes that follow from others; a head size only where the heads divide the width."""
        follows = {"intermediate_size": 4 * self.hidden_size, "out_channels": self.latent_channels}
        if self.hidden_size % self.heads == 0:
            follows["head_dim"] = self.hidden_size // self.heads
        for name, value in follows.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    @property
    def width(self) -> int:
        """Width of all heads together."""
        return self.heads * self.head_dim

    def check(self) -> None:
        """Raise ``RooflineError`` where fields do not go together."""
        if not self.head_dim:
            raise _clash(f"hidden_size must be a multiple of heads ({self.heads}) where head_dim is not given", "heads")
        joint = self.attention == "joint"
        if joint and self.modulation == "shared":
            raise _clash("joint attention goes with modulation: block", "modulation")
        if self.size_embeds and self.hidden_size % 3:
            raise _clash("size_embeds needs a hidden_size that is a multiple of 3", "size_embeds")
        for name in ("single_layers", "context_pre_only"):
            if getattr(self, name) and not joint:
                raise _clash(f"{name} goes with attention: joint", name)
        if self.cross_norm and self.attention != "cross":
            raise _clash("cross_norm goes with attention: cross", "cross_norm")
        if (self.text_width == 0) != (self.attention == "self"):
            needs = "has no text" if self.attention == "self" else "needs a text_width"
            raise _clash(f"attention: {self.attention} {needs}", "text_width")


def _clash(message: str, key: str) -> RooflineError:
    return RooflineError(message, code="bad-combination", key=key)


# ---------------------------------------------------------------- published configs of diffusers


def _read_flux(read: "_Keys") -> dict[str, Any]:
    """FLUX.1: the latent is packed into 2x2 patches before the transformer (in_channels 64)."""
    read.only("patch_size", 1, "packed outside of the model")
    channels = read.packed("in_channels", 64)
    out = read.packed("out_channels", channels)
    distilled = read.flag("guidance_embeds", False)
    return {
        "attention": "joint",
        "layers": read.size("num_layers", 19),
        "single_layers": read.size("num_single_layers", 38, 0),
        "qk_norm": "head",
        "rotary": True,
        "latent_channels": channels // 4,
        "out_channels": out // 4,
        "text_width": read.size("joint_attention_dim", 4096),
        "text_tokens": 512,
        "pooled_width": read.size("pooled_projection_dim", 768),
        "guidance_embeds": distilled,
        "guidance": "distilled" if distilled else "none",
        **read.heads(24, 128),
    }


def _read_sd3(read: "_Keys") -> dict[str, Any]:
    """SD3 and SD3.5-large: text of CLIP (77 tokens) and T5 (256) side by side."""
    heads = read.heads(18, 64)
    read.only("caption_projection_dim", heads["hidden_size"], "the width of the stream")
    read.only("dual_attention_layers", [], "blocks with a second attention are not supported")
    norm = read.data.get("qk_norm")
    if norm not in (None, "rms_norm"):
        raise read.refuse("qk_norm", "only rms_norm or null is supported")
    channels = read.size("in_channels", 16)
    return {
        "attention": "joint",
        "layers": read.size("num_layers", 18),
        "qk_norm": "head" if norm else "none",
        "context_pre_only": True,
        "latent_channels": channels,
        "out_channels": read.size("out_channels", 16),
        "patch_size": read.size("patch_size", 2),
        "text_width": read.size("joint_attention_dim", 4096),
        "text_tokens": 333,
        "pooled_width": read.size("pooled_projection_dim", 2048),
        **heads,
    }


def _read_pixart(read: "_Keys") -> dict[str, Any]:
    """PixArt alpha and sigma; models for 1024 px (a latent of 128) embed the size of the image too by default."""
    heads = read.heads(16, 72)
    read.only("cross_attention_dim", heads["hidden_size"], "the width of the stream")
    read.only("activation_fn", "gelu-approximate", "the only MLP supported here")
    channels = read.size("in_channels", 4)
    given = read.data.get("use_additional_conditions") is not None
    large = read.size("sample_size", 128) == 128
    return {
        "attention": "cross",
        "layers": read.size("num_layers", 28),
        "modulation": "shared",
        "size_embeds": read.flag("use_additional_conditions", large) if given else large,
        "latent_channels": channels,
        "out_channels": read.size("out_channels", channels if "out_channels" in read.data else 8),
        "patch_size": read.size("patch_size", 2),
        "text_width": read.size("caption_channels", 4096),
        "text_tokens": 300,
        **heads,
    }


def _read_wan(read: "_Keys") -> dict[str, Any]:
    """Wan 2.1 text-to-video."""
    read.only("image_dim", None, "image-to-video is not supported")
    read.only("added_kv_proj_dim", None, "image-to-video is not supported")
    read.only("qk_norm", "rms_norm_across_heads", "the only norm that the model has")
    patch = read.data.get("patch_size", [1, 2, 2])
    if not isinstance(patch, list) or len(patch) != 3 or patch[1] != patch[2]:
        raise read.refuse("patch_size", "must be [frames, side, side]")
    frames, side, _ = (read_size("patch_size", item, read.where) for item in patch)
    channels = read.size("in_channels", 16)
    return {
        "attention": "cross",
        "layers": read.size("num_layers", 40),
        "intermediate_size": read.size("ffn_dim", 13824),
        "modulation": "shared",
        "qk_norm": "full",
        "rotary": True,
        "cross_norm": read.flag("cross_attn_norm", True),
        "latent_channels": channels,
        "out_channels": read.size("out_channels", channels),
        "patch_size": side,
        "patch_frames": frames,
        "text_width": read.size("text_dim", 4096),
        "text_tokens": 512,
        "time_width": read.size("freq_dim", 256),
        **read.heads(40, 128),
    }


_CLASSES: dict[str, Callable[["_Keys"], dict[str, Any]]] = {
    "FluxTransformer2DModel": _read_flux,
    "SD3Transformer2DModel": _read_sd3,
    "PixArtTransformer2DModel": _read_pixart,
    "WanTransformer3DModel": _read_wan,
}
DIFFUSERS = tuple(_CLASSES)
"""The values of ``_class_name`` that can be read."""


def read_diffusion(data: Mapping[str, Any], where: Where) -> DiffusionConfig:
    """Read a description by sizes (``kind: diffusion-transformer``) or a diffusers config (``_class_name``)."""
    if "_class_name" not in data:
        sizes = {key: value for key, value in data.items() if key != "kind"}
        config: DiffusionConfig = build(DiffusionConfig, sizes, where, of=f"kind: {KIND}", also=("kind",))
        return config
    name = data["_class_name"]
    if not isinstance(name, str) or name not in _CLASSES:
        raise where.error(
            ("_class_name",),
            f"_class_name {shown(name)} is not supported: supported are {', '.join(_CLASSES)}",
            code="unsupported-model",
        )
    config = DiffusionConfig(**_CLASSES[name](_Keys(data, where)))
    try:
        config.check()
    except RooflineError as error:  # its keys are ours, not the file's
        raise where.error((), error.message, code=error.code, suggestions=error.suggestions) from None
    return config


@dataclass(frozen=True, slots=True)
class _Keys:
    """A diffusers config: its keys, with the defaults of the class where one is missing."""

    data: Mapping[str, Any]
    where: Where

    def size(self, key: str, default: int, minimum: int = 1) -> int:
        value = self.data.get(key)
        return default if value is None else read_size(key, value, self.where, minimum)

    def packed(self, key: str, default: int) -> int:
        """Channels of 2x2 patches: a multiple of 4."""
        channels = self.size(key, default)
        if channels % 4:
            message = f"{key} must be a multiple of 4, the positions of a packed patch, not {channels}"
            raise self.where.error((key,), message, code="bad-value")
        return channels

    def flag(self, key: str, default: bool) -> bool:
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            raise self.refuse(key, "must be true or false")
        return value

    def only(self, key: str, value: Any, why: str) -> None:
        """Refuse any other value of a key that changes the arithmetic."""
        given = self.data.get(key, value)
        if given != value:
            raise self.refuse(key, why)

    def refuse(self, key: str, why: str) -> RooflineError:
        message = f"{key} {shown(self.data.get(key))} is not supported: {why}"
        return self.where.error((key,), message, code="unsupported-model")

    def heads(self, heads: int, head_dim: int) -> dict[str, int]:
        heads = self.size("num_attention_heads", heads)
        head_dim = self.size("attention_head_dim", head_dim)
        return {"heads": heads, "head_dim": head_dim, "hidden_size": heads * head_dim}
