"""What is run of a model: the phases of a decoder, the denoising of a diffusion model. Declared like an op's fields."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from roofline.ops.base import size
from roofline.ops.sizes import Size


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
