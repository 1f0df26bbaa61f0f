"""How an architecture composes operations: a published config is read into a description, a description into a tree."""

from roofline.models.decoder import FUSIONS, Fusion, decoder_step
from roofline.models.decoder_config import CONFIG_KEYS, DECODERS, DecoderConfig, read_decoder
from roofline.models.precision import Precision, read_precision

__all__ = [
    "CONFIG_KEYS",
    "DECODERS",
    "FUSIONS",
    "DecoderConfig",
    "Fusion",
    "Precision",
    "decoder_step",
    "read_decoder",
    "read_precision",
]
