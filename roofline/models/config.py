"""``read_config``: which kind of model a config describes, and its description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from roofline.errors import nearest
from roofline.fields import Nowhere, Where, shown
from roofline.models.decoder_config import DECODERS, DecoderConfig, read_decoder

if TYPE_CHECKING:
    from roofline.models.diffusion_config import DiffusionConfig

KIND = "diffusion-transformer"
"""The ``kind:`` of a description of a diffusion transformer by its sizes."""


def read_config(
    data: Mapping[str, Any], where: Where | None = None, *, strict: bool = False, precision_given: bool = False
) -> DecoderConfig | DiffusionConfig:
    """The description in a config: of a decoder (``model_type``), of a diffusion transformer (``_class_name`` or
    ``kind``).

    ``where`` points errors at their place. ``strict`` refuses unknown keys, for descriptions that are written by hand.
    ``precision_given``: the precision is stated elsewhere, so that how the checkpoint is stored does not matter.
    Raises ``RooflineError`` for what is not supported, saying what is.
    """
    place = where or Nowhere()
    if "_class_name" in data or "kind" in data:
        from roofline.models.diffusion_config import read_diffusion  # only what a command needs is loaded

        kind = data.get("kind", KIND)
        if kind != KIND:
            message = f"kind must be {KIND}, not {shown(kind)}"
            raise place.error(("kind",), message, code="bad-value", suggestions=nearest(str(kind), (KIND,)))
        return read_diffusion(data, place)
    if "model_type" not in data:
        raise place.error(
            (),
            f"this describes no model: it needs a model_type ({', '.join(DECODERS)}), the _class_name of a diffusers "
            f"transformer, or kind: {KIND}",
            code="missing-key",
        )
    return read_decoder(data, place, strict=strict, precision_given=precision_given)
