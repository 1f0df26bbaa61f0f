"""Descriptors: what each form means, and each way to get one wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roofline import catalog
from roofline.errors import RooflineError
from roofline.ops import Attention, Linear
from roofline.ops.tree import leaves, parameters, resident_bytes, total
from roofline.workload import DecoderRun, DiffusionRun, OpRun, Workload, load

LINEAR = "op: linear\ntokens: 64\nin_features: 4096\nout_features: 4096\n"
DECODE = "model: llama-3.1-8b\nphase: decode\nbatch: 2\ncontext: 100\n"


@pytest.fixture
def write(tmp_path: Path):
    def written(text: str, name: str = "mine.yaml") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written


def flops(work: Workload) -> int:
    return total(work.tree, lambda op: op.flops)


def traffic(work: Workload) -> int:
    return total(work.tree, lambda op: op.traffic_bytes)


# ---------------------------------------------------------------- the catalogue


def test_the_catalogue_has_the_promised_workloads():
    assert {
        "prefill", "decode", "attention-naive", "attention-flash", "attention-decode", "linear", "mlp",
        "transformer-block", "diffusion-step",
    } <= set(catalog.names("workloads"))  # fmt: skip
    assert {"llama-3.1-8b", "llama-3.1-70b", "qwen3-8b", "mistral-7b", "flux.1-dev"} <= set(
        catalog.names("workloads/models")
    )


@pytest.mark.parametrize("name", catalog.names("workloads"))
def test_every_workload_loads_says_what_it_is_and_can_be_scaled(name):
    work = load(name)
    assert (work.name, work.source) == (name, f"workloads/{name}.yaml")
    assert work.description
    assert work.tree.name == name
    assert flops(work) > 0
    assert all(leaf.op.check() is None for leaf in leaves(work.tree))
    for size in set(work.sizes) & {"batch", "tokens"}:
        assert flops(work.with_(**{size: 2 * work.get(size)})) > flops(work)


def test_the_worked_numbers_of_attention():
    naive, flash = load("attention-naive"), load("attention-flash")
    assert flops(naive) == flops(flash) == 8_640_266_240
    assert traffic(naive) == 138_412_032
    assert flops(naive) / traffic(naive) == pytest.approx(62.42, abs=0.005)
    assert traffic(flash) == 4_194_304
    assert [leaf.name for leaf in leaves(naive.tree)] == ["scores", "softmax", "values"]


def test_the_worked_number_of_a_linear_layer():
    work = load("linear")
    assert flops(work) / traffic(work) == pytest.approx(62.06, abs=0.005)


def test_the_worked_numbers_of_decode_and_prefill():
    first = load("decode", ["batch=1", "context=0"])
    assert traffic(first) == pytest.approx(15.009e9, rel=0.01)
    assert load("decode", ["batch=64", "context=8192"]).new_tokens == 64
    assert flops(load("prefill")) == pytest.approx(61.62e12, rel=1e-3)
    assert load("prefill").new_tokens is None


def test_a_block_and_an_mlp_are_parts_of_the_model():
    block, mlp = load("transformer-block"), load("mlp")
    assert parameters(block.tree) == 218_103_808 + 2 * 4096
    assert parameters(mlp.tree) == 3 * 4096 * 14336
    assert [leaf.name for leaf in leaves(mlp.tree)] == ["gate_up_proj", "act_fn", "down_proj"]
    assert all(leaf.count == 1 for work in (block, mlp) for leaf in leaves(work.tree))


def test_the_diffusion_step_is_one_pass_of_flux():
    assert parameters(load("diffusion-step").tree) == 11_901_408_320
    many = load("diffusion-step", ["steps=28", "guidance=cfg"])
    assert flops(many) == pytest.approx(2 * 28 * flops(load("diffusion-step")), rel=1e-9)


# ---------------------------------------------------------------- forms


def test_one_op(write):
    work = load(write(f"{LINEAR}bias: true\nname: up\ndescription: a layer\nhardware: a100\n"))
    assert (work.name, work.description, work.hardware) == ("up", "a layer", "a100")
    assert work.subject.op == Linear(tokens=64, in_features=4096, out_features=4096, bias=True)
    assert [leaf.name for leaf in leaves(work.tree)] == ["up"]
    assert (work.new_tokens, work.notes) == (None, ())


def test_the_name_is_that_of_the_file_and_the_source_what_the_user_wrote(write):
    path = write(LINEAR, "my-layer.yaml")
    assert (load(path).name, load(path).source) == ("my-layer", path)


def test_fields_that_follow_from_others_keep_following(write):
    work = load(write("op: attention\nheads: 8\nhead_dim: 64\nqueries: 4\n"))
    assert work.with_(heads=16).subject.op == Attention(heads=16, kv_heads=16, head_dim=64, queries=4)
    grouped = load(write("op: attention\nheads: 8\nkv_heads: 2\nhead_dim: 64\nqueries: 4\n"))
    assert grouped.with_(heads=16).get("kv_heads") == 2


def test_sizes_as_people_write_them(write):
    work = load(write("op: linear\ntokens: 8k\nin_features: 1e3\nout_features: 4Ki\n"))
    assert (work.get("tokens"), work.get("in_features"), work.get("out_features")) == (8000, 1000, 4096)


def test_a_step_of_a_model(write):
    work = load(write(DECODE))
    assert isinstance(work.subject, DecoderRun)
    assert set(work.sizes) == {"batch", "context"}
    assert work.subject.precision.weights == "bf16", "as the checkpoint is published"
    assert load(write(f"{DECODE}precision: fp8\n")).subject.precision.weights == "fp8"
    assert resident_bytes(work.with_(context=1099).tree)["kv_cache"] == 2 * 1100 * 131_072


def test_a_chunk_after_a_prefix(write):
    chunk = load(write("model: llama-3.1-8b\nphase: prefill\ntokens: 512\nprefix: 8192\npart: attn\n"))
    attention = next(leaf.op for leaf in leaves(chunk.tree))
    assert attention.pairs == 512 * 8192 + 512 * 513 // 2
    assert traffic(chunk) == 44_040_192, "q and out of the chunk, k and v of all 8704 positions"


def test_a_description_is_the_descriptors_own_until_an_override_may_make_it_untrue(write):
    path = write(f"{DECODE}description: two users\n")
    assert load(path).description == load(path, ["hardware=h200"]).description == "two users"
    changed = load(path, ["batch=64", "precision.kv=fp8"])
    assert changed.description == "llama-3.1-8b decode: batch 64, context 100, weights bf16, kv fp8"
    assert load(write(DECODE)).description.startswith("llama-3.1-8b decode: batch 2")
    assert load(write(f"{LINEAR}bias: true\n")).description == (
        "op linear, tokens 64, in_features 4096, out_features 4096, bias true"
    )
    part = load("diffusion-step", ["part=transformer_blocks", "height=512"])
    assert part.description == (
        "flux.1-dev denoising, its transformer_blocks: batch 1, height 512, width 1024, frames 1, steps 1, weights bf16"
    )


def test_dtypes_can_be_changed(write):
    step, op = load(write(DECODE)).subject, load(write(LINEAR)).subject
    assert (step.dtypes, op.dtypes) == ({"weights": "bf16", "kv": "bf16"}, {"weights": "bf16"})
    narrow = step.with_dtypes(weights="int4-g128", compute="bf16").with_dtypes(kv="fp8")
    assert narrow.dtypes == {"weights": "int4-g128", "kv": "fp8"}
    assert narrow.precision.lm_head == "bf16"
    assert op.with_dtypes(weights="fp8").op.weight_dtype == "fp8"
    image = load("diffusion-step").subject
    assert isinstance(image, DiffusionRun)
    assert image.with_dtypes(weights="fp8", kv="fp8").dtypes == {"weights": "fp8"}
    cache = load("attention-decode").subject
    assert isinstance(cache, OpRun)
    assert cache.with_dtypes(kv="fp8").op.kv_dtype == "fp8"


def test_without_fusion_more_moves(write):
    fused, apart = load(write(DECODE)), load(write(f"{DECODE}fusion: none\n"))
    assert parameters(fused.tree) == parameters(apart.tree)
    assert traffic(fused) < traffic(apart)


def test_a_context_beyond_the_models_is_noted_and_not_refused(write):
    assert load(write(DECODE)).notes == ()
    [note] = load(write(DECODE), ["context=131072"]).notes
    assert "131,073 positions" in note


# ---------------------------------------------------------------- models

CONFIG = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "tie_word_embeddings": True,
    "torch_dtype": "float16",
}
STEP = "phase: decode\ncontext: 5\n"


def test_a_model_by_path_to_its_config_or_its_folder_beside_the_descriptor(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path.parent)
    write(json.dumps(CONFIG, indent=1), "tiny/config.json")
    by_file = load(write(f"model: tiny/config.json\n{STEP}"))
    by_folder = load(write(f"model: ./tiny\n{STEP}"))
    absolute = load(write(f"model: {tmp_path / 'tiny'}\n{STEP}"))
    assert parameters(by_file.tree) == parameters(by_folder.tree) == parameters(absolute.tree)
    assert by_file.subject.dtypes == {"weights": "fp16", "kv": "fp16"}


def test_a_model_by_path_from_the_working_directory(write, tmp_path, monkeypatch):
    write(json.dumps(CONFIG), "here/tiny/config.json")
    descriptor = write(f"model: ./tiny\n{STEP}", "elsewhere/mine.yaml")
    monkeypatch.chdir(tmp_path / "here")
    assert load(descriptor).subject.config.model_type == "qwen2"
    # what is typed at the shell is relative to where it is typed, whatever lies beside the descriptor
    write(json.dumps({**CONFIG, "model_type": "llama"}), "elsewhere/tiny/config.json")
    assert load(descriptor).subject.config.model_type == "llama"
    assert load(descriptor, ["model=./tiny"]).subject.config.model_type == "qwen2"


def test_the_transformer_of_a_diffusers_folder(write):
    write(json.dumps({"_class_name": "FluxTransformer2DModel", "num_layers": 1}), "flux/transformer/config.json")
    work = load(write("model: ./flux\nheight: 64\nwidth: 64\n"))
    assert isinstance(work.subject, DiffusionRun)
    assert work.subject.config.layers == 1


def test_a_model_written_out(write):
    sizes = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in CONFIG.items())
    assert load(write(f"model:\n{sizes}{STEP}")).subject.config.qkv_bias
    dit = "model: {kind: diffusion-transformer, attention: self, hidden_size: 64, layers: 2, heads: 4}\n"
    assert load(write(f"{dit}height: 32\nwidth: 32\nguidance: none\n")).subject.config.layers == 2


def test_a_checkpoint_whose_quantisation_is_in_another_file_needs_a_stated_precision(write):
    write(json.dumps(CONFIG), "tiny/config.json")
    write("{}", "tiny/hf_quant_config.json")
    with pytest.raises(RooflineError, match="hf_quant_config"):
        load(write(f"model: ./tiny\n{STEP}"))
    assert load(write(f"model: ./tiny\n{STEP}precision: fp8\n")).subject.dtypes["weights"] == "fp8"


def test_a_published_int4_checkpoint_is_unpacked_to_bf16(write):
    quantised = {**CONFIG, "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}
    write(json.dumps(quantised), "tiny/config.json")
    precision = load(write(f"model: ./tiny\n{STEP}precision: {{kv: fp8}}\n")).subject.precision
    assert (precision.weights, precision.compute, precision.kv) == ("int4-g128-zp", "bf16", "fp8")


def test_an_error_in_a_model_points_into_the_models_file(write):
    path = write('{\n  "model_type": "qwen2",\n  "hidden_size": "wide"\n}', "tiny/config.json")
    with pytest.raises(RooflineError) as caught:
        load(write(f"model: ./tiny\n{STEP}"))
    assert (caught.value.file, caught.value.line, caught.value.key) == (path, 3, "hidden_size")


# ---------------------------------------------------------------- what is wrong


def refused(path: str, *overrides: str) -> RooflineError:
    with pytest.raises(RooflineError) as caught:
        load(path, overrides)
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


FAULTS = [
    ("op: linaer\n", 1, "op", "unknown-op", "linear"),
    ("op: 3\n", 1, "op", "unknown-op", None),
    ("model: llama-3.1-8\nphase: decode\ncontext: 0\n", 1, "model", "unknown-model", "llama-3.1-8b"),
    ("model: [a]\nphase: decode\n", 1, "model", "bad-value", None),
    ("model: ./nowhere/config.json\nphase: decode\n", 1, "model", "missing-file", None),
    ("model: llama-3.1-8b\nphase: decoding\ncontext: 0\n", 2, "phase", "bad-value", "decode"),
    ("model: llama-3.1-8b\ncontext: 0\n", 1, "phase", "missing-key", None),
    ("model: llama-3.1-8b\nphase: decode\n", 1, "context", "missing-key", None),
    (f"{DECODE}contxt: 4\n", 5, "contxt", "unknown-key", "context"),
    (f"{DECODE}tokens: 4\n", 5, "tokens", "unknown-key", None),
    (f"{DECODE}part: mpl\n", 5, "part", "bad-value", "mlp"),
    (f"{DECODE}fusion: non\n", 5, "fusion", "bad-value", "none"),
    (f"{DECODE}precision: fp61\n", 5, "precision", "unknown-dtype", "fp16"),
    (f"{DECODE}precision:\n  weigths: fp8\n", 6, "precision.weigths", "unknown-key", "weights"),
    (f"{DECODE}precision:\n  weights: int4-g128\n", 6, "precision.weights", "compute-needed", None),
    (f"{DECODE}precision: {{weights: bf16, compute: fp8}}\n", 5, "precision.compute", "bad-value", None),
    (f"{DECODE}op: linear\n", 1, "model", "bad-combination", None),
    ("opp: linear\n", 1, "opp", "unknown-key", "op"),
    ("name: x\n", 1, None, "missing-key", None),
    (f"{LINEAR}name: 3\n", 5, "name", "bad-value", None),
    (f"{LINEAR}tokns: 4\n", 5, "tokns", "unknown-key", "tokens"),
    (LINEAR.replace("64", "-64"), 2, "tokens", "out-of-range", None),
    (LINEAR.replace("64", "sixty"), 2, "tokens", "bad-value", None),
    (f"{LINEAR}dtype: bf61\n", 5, "dtype", "unknown-dtype", "bf16"),
    (f"{LINEAR}weight_dtype: int4-g128\n", 5, "weight_dtype", "compute-needed", None),
    ("op: attention\nheads: 6\nkv_heads: 4\nhead_dim: 8\nqueries: 1\n", 3, "kv_heads", "bad-value", None),
    ("model: flux.1-dev\nheight: 1000\nwidth: 1024\n", 2, "height", "bad-value", "992"),
    ("model: flux.1-dev\nheight: 1024\n", 1, "width", "missing-key", None),
    ("model: flux.1-dev\nheight: 64\nwidth: 64\nguidance: cgf\n", 4, "guidance", "bad-value", "cfg"),
    ("model: flux.1-dev\nphase: decode\nheight: 64\nwidth: 64\n", 2, "phase", "unknown-key", None),
    (
        "model: flux.1-dev\nheight: 64\nwidth: 64\nprecision: {weights: fp8, kv: fp8}\n",
        4,
        "precision.kv",
        "bad-combination",
        None,
    ),
    (
        "model: llama-3.2-1b\nphase: decode\ncontext: 0\nprecision: {weights: fp8, lm_head: fp8}\n",
        4,
        "precision.lm_head",
        "bad-combination",
        None,
    ),
]


@pytest.mark.parametrize(("text", "line", "key", "code", "near"), FAULTS)
def test_a_fault_is_shown_where_it_is_with_the_nearest_right_thing(write, text, line, key, code, near):
    path = write(text)
    error = refused(path)
    assert (error.file, error.line, error.key, error.code) == (path, line, key, code)
    assert near is None or near in error.suggestions


@pytest.mark.parametrize(
    ("override", "near"),
    [
        ("bacth=3", "batch"),
        ("batch=-1", None),
        ("batch=x", None),
        ("precision=fp7", "fp8"),
        ("precision.kb=fp8", None),
        ("precision.weights=int4-g128", None),
        ("precision={weights: fp8, kv: fp8}", "--set precision.weights=fp8"),
        ("a.b.c=1", None),
        ("hardware.x=1", None),
        ("op=linear", None),
        ("phase=prefill", None),
        ("model=flux.1-dev", None),
        ("model=llama-3.1-8", "llama-3.1-8b"),
        ("model.hidden_size=8", None),
        ("part=mpl", "mlp"),
        ("batch", None),
    ],
)
def test_a_fault_in_an_override_names_the_override(write, override, near):
    error = refused(write(DECODE), override)
    assert str(error).startswith(f"--set {override}: ")
    assert error.file is None
    assert near is None or near in error.suggestions


def test_hardware_by_path_is_beside_the_descriptor_then_in_the_working_directory(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(f"{LINEAR}hardware: ./mine.yaml\n", "sub/w.yaml")
    write("name: mine\n", "mine.yaml")
    assert Path(str(load("sub/w.yaml").hardware)) == Path("mine.yaml")
    beside = write("name: mine\n", "sub/mine.yaml")
    assert load(path).hardware == beside
    assert load("sub/w.yaml").hardware == "sub/mine.yaml"
    assert Path(str(load(path, ["hardware=./mine.yaml"]).hardware)) == Path("mine.yaml")
    assert load(path, ["hardware=h100"]).hardware == "h100"


def test_a_name_is_one_short_printable_line(write):
    for bad in ("a/b", "a" * 81, "a\\nb", "a\\tb", "\\u2028"):
        error = refused(write(f'{LINEAR}name: "{bad}"\n'))
        assert (error.line, error.key, error.code) == (5, "name", "bad-value")
    assert load(write(f"{LINEAR}name: {'é' * 80}\n")).name == "é" * 80
    assert load(write(f'{LINEAR}description: "two\\n  lines"\n')).description == "two lines"


def test_an_override_of_the_op_is_blamed_for_keys_that_do_not_fit(write):
    path = write(LINEAR)
    error = refused(path, "op=softmax")
    assert str(error).startswith("--set op=softmax: does not go with the other keys of ")
    assert refused(path, "op=softmax", "tokens=0").code == "unknown-key"
    both = refused(path, "model=llama-3.1-8b")
    assert str(both).startswith("--set model=llama-3.1-8b: a descriptor has either")
    assert refused(path, "bais=true").message.startswith("--set bais=true")


def test_a_dtype_set_by_an_override_is_blamed_on_it(write):
    error = refused(write(LINEAR), "weight_dtype=int4-g128")
    assert (error.file, error.key) == (None, "weight_dtype")
    assert str(error).startswith("--set weight_dtype=int4-g128: ")


def test_a_file_that_cannot_be_read_is_one_line(write, tmp_path):
    assert refused(str(tmp_path / "none.yaml")).code == "missing-file"
    assert refused(f"{tmp_path}/").code == "is-directory"
    assert refused(write("")).code == "empty-file"
    assert refused(write("a: &x [1]\nb: *x\n")).code == "yaml-alias"
    assert refused(write("op: !!python/object/apply:os.system [ls]\n")).code == "yaml-tag"
    assert refused("decod").suggestions[0] == "decode"


def test_loading_needs_none_of_the_heavy_libraries():
    heavy = ("torch", "numpy", "sympy", "scipy", "matplotlib", "pydantic", "transformers", "difflib")
    code = (
        "import sys; from roofline.workload import load\n"
        "for name in ('decode', 'diffusion-step', 'linear'): load(name).tree\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert found.stdout.strip() == "[]"
