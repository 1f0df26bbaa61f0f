"""How an architecture composes operations: a published config is read into a description, a description into a tree."""

from roofline.models.config import read_config
from roofline.models.decoder import FUSIONS, Fusion, decoder_step
from roofline.models.decoder_config import DECODERS, DecoderConfig, read_decoder
from roofline.models.phases import PHASES, Decode, Denoise, Prefill
from roofline.models.precision import Precision, read_precision

__all__ = [
    "DECODERS",
    "FUSIONS",
    "PHASES",
    "Decode",
    "DecoderConfig",
    "Denoise",
    "Fusion",
    "Precision",
    "Prefill",
    "decoder_step",
    "read_config",
    "read_decoder",
    "read_precision",
]
