"""What is run of a model: a phase of a decoder, the denoising of a diffusion model. Declared like an op's fields."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from roofline.errors import RooflineError
from roofline.ops.base import FieldInfo, size
from roofline.ops.sizes import Size

if TYPE_CHECKING:
    from roofline.models.diffusion_config import DiffusionConfig

GUIDANCE = ("cfg", "cfg-sequential", "distilled", "none")
"""Classifier-free guidance as one pass over twice the batch or as two passes; one pass in the other cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """One token for each sequence."""

    phase: ClassVar[Literal["decode"]] = "decode"

    batch: Size = size("B", "sequences", default=1)
    context: Size = size("c", "positions of each sequence that are cached already; it attends to one more", min=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """A prompt, or a chunk of one, for each sequence."""

    phase: ClassVar[Literal["prefill"]] = "prefill"

    batch: Size = size("B", "sequences", default=1)
    tokens: Size = size("q", "new tokens of each sequence")
    prefix: Size = size("c", "positions of each sequence that are cached already", min=0, default=0)


PHASES: dict[str, type[Decode] | type[Prefill]] = {kind.phase: kind for kind in (Prefill, Decode)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Denoise:
    """Denoising steps for each image or video."""

    batch: Size = size("B", "images or videos", default=1)
    height: Size = size("y", "pixels")
    width: Size = size("x", "pixels")
    frames: Size = size("n_f", "frames of a video; 1 for an image", default=1)
    text_tokens: Size = size("T", "tokens of each prompt; by default what the model was made for", default=None)
    steps: Size = size("n", "denoising steps", default=1)
    guidance: str | None = field(
        default=None,
        metadata={
            "info": FieldInfo(
                "option",
                "cfg: two passes as one batch; cfg-sequential: one after the other; distilled, none: one; "
                "by default what the model was made for",
                choices=GUIDANCE,
                optional=True,
            )
        },
    )

    def check_with(self, config: "DiffusionConfig") -> None:
        """Raise ``RooflineError`` where the latent is no whole number of patches, or the text does not fit the model.

        Pixels come in multiples of ``vae_factor * patch_size``; frames are 1 more than a multiple of ``vae_frames``.
        """
        side = config.vae_factor * config.patch_size
        for key, value in (("height", self.height), ("width", self.width)):
            if value % side:
                raise _multiple(key, value, side, 0)
        if (self.frames - 1) % config.vae_frames or latent_frames(config, self.frames) % config.patch_frames:
            raise _multiple("frames", self.frames, config.vae_frames * config.patch_frames, 1)
        if config.attention == "self":
            if self.text_tokens is not None:
                raise RooflineError("this model takes no text", code="bad-combination", key="text_tokens")
        elif not (self.text_tokens or config.text_tokens):
            message = "missing key 'text_tokens': the model's description does not say"
            raise RooflineError(message, code="missing-key", key="text_tokens")


def latent_frames(config: "DiffusionConfig", frames: Size) -> Size:
    """The first frame alone, then ``vae_frames`` frames in each latent frame (causal video VAEs)."""
    return 1 + (frames - 1) // config.vae_frames


def _multiple(key: str, value: int, of: int, more: int) -> RooflineError:
    below = max(value - more, 0) // of * of + more
    near = [str(number) for number in (below, below + of) if number > 0]
    rule = f"a multiple of {of}" + (f" plus {more}" if more else "")
    message = f"{key} must be {rule} for this model, not {value}"
    return RooflineError(message, code="bad-value", key=key, suggestions=near)
