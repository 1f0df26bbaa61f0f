from __future__ import annotations

import pytest

from roofline.errors import RooflineError
from roofline.fields import Nowhere
from roofline.models.quantization import stored_as

GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128}


@pytest.mark.parametrize(
    ("config", "dtype"),
    [
        (None, None),
        ({}, None),
        ({**GPTQ, "sym": True}, "int4-g128"),
        ({**GPTQ, "sym": False}, "int4-g128-zp"),
        (AWQ, "int4-g128-zp"),
        ({**AWQ, "zero_point": False}, "int4-g128"),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 128, "zero_point": True}, "int4-g128-zp"),
        ({"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8-row"),
    ],
)
def test_schemes_that_one_of_our_dtypes_is_exactly(config, dtype):
    assert stored_as(config, Nowhere()) == dtype


@pytest.mark.parametrize(
    "config",
    [
        {**GPTQ, "bits": 3},
        {**GPTQ, "group_size": 32},
        {**AWQ, "group_size": 64},
        {"quant_method": "fp8", "weight_block_size": [128, 128]},
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
        {"quant_method": "compressed-tensors"},
        {"quant_method": "mxfp4"},
        {"bits": 4},
    ],
)
def test_scales_that_would_be_counted_wrongly_are_refused_and_the_way_out_is_said(config):
    with pytest.raises(RooflineError, match="state `precision`") as caught:
        stored_as(config, Nowhere())
    assert caught.value.code == "unsupported-quantization"
    assert caught.value.key == "quantization_config"


def test_it_must_be_a_mapping():
    with pytest.raises(RooflineError, match="must be a mapping"):
        stored_as("fp8", Nowhere())
