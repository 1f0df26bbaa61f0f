"""The catalogue: names and paths, aliases, and pydantic's faults as places in a file."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from roofline import catalog
from roofline.catalog import (
    Room,
    aliases,
    find,
    for_pydantic,
    from_pydantic,
    names,
    parse_yaml,
    read_yaml,
    resolve,
    roots,
)
from roofline.errors import RooflineError
from roofline.quantities import parse

CHECKOUT = Path(__file__).resolve().parents[1]
ROOMS: list[Room] = ["hardware", "workloads", "workloads/models"]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue of our own, the only one there is; the working directory is another, empty one."""
    files = {
        "hardware/h100-sxm.yaml": "name: h100\n",
        "hardware/h100-pcie.yaml": "name: h100\n",
        "hardware/mi300x.yaml": "name: mi300x\n",
        "hardware/aliases.yaml": "h100: h100-sxm\n'300': mi300x\n",
        "hardware/.hidden.yaml": "",
        "hardware/notes.txt": "",
        "workloads/decode.yaml": "op: linear\n",
        "workloads/prefill.yaml": "op: linear\n",
        "workloads/models/llama-3.1-8b.json": "{}",
        "workloads/models/qwen3-8b.yaml": "",
        "workloads/models/mistral-7b/config.json": "{}",
        "workloads/models/empty/readme.txt": "",
    }
    for name, content in files.items():
        path = tmp_path / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("ROOFLINE_PATH", raising=False)
    monkeypatch.setattr(catalog, "_PACKAGE", tmp_path / "shop" / "roofline")
    return tmp_path / "shop"


def refusal(room: Room, text: str, base: Path | None = None) -> RooflineError:
    with pytest.raises(RooflineError) as caught:
        resolve(room, text, base=base)
    assert caught.value.exit_code == 2
    return caught.value


# ---------------------------------------------------------------- where the catalogue is


def test_a_checkout_reads_its_own_files(monkeypatch: pytest.MonkeyPatch):
    # An editable install leaves a copy of the catalogue in site-packages, which goes stale.
    monkeypatch.delenv("ROOFLINE_PATH", raising=False)
    assert roots() == [CHECKOUT]
    for room in ROOMS:
        assert all(str(find(room, name)).startswith(f"{CHECKOUT / room}{os.sep}") for name in names(room))


def test_an_installed_package_reads_the_files_inside_it(shop: Path):
    inside = shop / "roofline" / "_data" / "hardware"
    inside.mkdir(parents=True)
    (inside / "b200.yaml").touch()
    assert roots() == [shop / "roofline" / "_data"]
    assert names("hardware") == ["b200"]


def test_the_users_folders_come_first(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for folder in ("one", "two"):
        (tmp_path / folder / "hardware").mkdir(parents=True)
        (tmp_path / folder / "hardware" / "mine.yaml").touch()
    (tmp_path / "two" / "hardware" / "mi300x.yaml").touch()
    monkeypatch.setenv("ROOFLINE_PATH", os.pathsep.join([str(tmp_path / "one"), "", str(tmp_path / "two"), "nowhere"]))
    assert roots() == [tmp_path / "one", tmp_path / "two", Path("nowhere"), shop]
    assert names("hardware") == ["h100-pcie", "h100-sxm", "mi300x", "mine"]
    assert find("hardware", "mine") == tmp_path / "one" / "hardware" / "mine.yaml"
    assert find("hardware", "mi300x") == tmp_path / "two" / "hardware" / "mi300x.yaml"
    assert find("hardware", "h100-sxm") == shop / "hardware" / "h100-sxm.yaml"


# ---------------------------------------------------------------- names


def test_the_names_in_each_room(shop: Path):
    assert names("hardware") == ["h100-pcie", "h100-sxm", "mi300x"]
    assert names("workloads") == ["decode", "prefill"]
    assert names("workloads/models") == ["llama-3.1-8b", "mistral-7b", "qwen3-8b"]


def test_a_room_that_is_missing_is_empty(shop: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(catalog, "_PACKAGE", tmp_path / "void" / "roofline")
    assert [names(room) for room in ROOMS] == [[], [], []]
    assert aliases("hardware") == {}


def test_a_name_finds_its_file(shop: Path):
    assert find("hardware", "h100-sxm") == shop / "hardware" / "h100-sxm.yaml"
    assert find("workloads/models", "llama-3.1-8b") == shop / "workloads/models/llama-3.1-8b.json"
    assert find("workloads/models", "mistral-7b") == shop / "workloads/models/mistral-7b/config.json"


@pytest.mark.parametrize(
    "name",
    ["h100", "h100-", "h100-s", "100-sxm", "sxm", "H100-SXM", "h100-sxm ", "h100-sxm.yaml", "h100*", "", ".", "..",
     ".hidden", "notes", "aliases", "../workloads/decode", "../hardware/h100-sxm", "./h100-sxm", "/etc/passwd", "\0",
     "models/qwen3-8b"],
)  # fmt: skip
def test_a_name_is_matched_as_a_whole_or_not_at_all(shop: Path, name: str):
    assert find("hardware", name) is None


def test_no_part_of_any_name_in_the_catalogue_is_a_match():
    for room in ROOMS:
        known = names(room)
        for name in known:
            assert find(room, name) is not None
            for part in {name[:i] for i in range(len(name))} | {name[i:] for i in range(1, len(name))}:
                assert (find(room, part) is not None) == (part in known)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_file_of_the_room_or_one_error(text: str):
    for room in ROOMS:
        try:
            path = resolve(room, text)
        except RooflineError as error:
            assert error.code in ("missing-file", f"unknown-{catalog._NOUNS[room]}")
        else:
            assert path.exists()


# ---------------------------------------------------------------- aliases


def test_aliases_are_explicit(shop: Path):
    assert aliases("hardware") == {"300": "mi300x", "h100": "h100-sxm"}
    assert aliases("workloads") == {}
    assert resolve("hardware", "h100") == shop / "hardware" / "h100-sxm.yaml"
    assert resolve("hardware", "300.yaml") == shop / "hardware" / "mi300x.yaml"


def test_an_alias_that_names_nothing_is_a_fault_of_its_file(shop: Path):
    (shop / "hardware" / "aliases.yaml").write_text("h100: h100-sxm\nmi300: mi300\n")
    with pytest.raises(RooflineError) as caught:
        aliases("hardware")
    error = caught.value
    assert (error.code, error.line, error.column, error.key) == ("bad-alias", 2, 8, "mi300")
    assert error.suggestions == ("mi300x",)


def test_an_alias_is_no_alias_of_an_alias(shop: Path):
    (shop / "hardware" / "aliases.yaml").write_text("h100: h100-sxm\nhopper: h100\n")
    with pytest.raises(RooflineError, match="'hopper' must stand for a name in hardware/"):
        aliases("hardware")


def test_a_users_file_hides_an_alias_of_its_name(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mine = tmp_path / "mine" / "hardware"
    mine.mkdir(parents=True)
    (mine / "h100.yaml").touch()
    monkeypatch.setenv("ROOFLINE_PATH", str(mine.parent))
    assert resolve("hardware", "h100") == mine / "h100.yaml"
    assert "h100" not in aliases("hardware")


def test_a_users_alias_comes_first(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mine = tmp_path / "mine" / "hardware"
    mine.mkdir(parents=True)
    (mine / "aliases.yaml").write_text("h100: h100-pcie\n")
    monkeypatch.setenv("ROOFLINE_PATH", str(mine.parent))
    assert aliases("hardware") == {"300": "mi300x", "h100": "h100-pcie"}


@pytest.mark.parametrize("room", ROOMS)
def test_the_aliases_of_the_checkout_are_sound(room: Room, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ROOFLINE_PATH", raising=False)
    path = CHECKOUT / room / "aliases.yaml"
    written = read_yaml(path).data if path.is_file() else {}
    assert aliases(room) == written, "an alias is spelt like a name"
    assert set(written.values()) <= set(names(room))


# ---------------------------------------------------------------- what a user types


@pytest.mark.parametrize("text", ["decode", "decode.yaml", "decode.yml"])
def test_a_name_resolves_with_and_without_its_suffix(shop: Path, text: str):
    assert resolve("workloads", text) == shop / "workloads" / "decode.yaml"


def test_a_name_with_dots_is_not_cut(shop: Path):
    assert resolve("workloads/models", "llama-3.1-8b") == shop / "workloads/models/llama-3.1-8b.json"
    assert resolve("workloads/models", "llama-3.1-8b.json") == shop / "workloads/models/llama-3.1-8b.json"


@pytest.mark.parametrize("text", ["decode.yaml", "./decode.yaml", "decode.json"])
def test_a_file_that_exists_comes_before_the_catalogue(shop: Path, text: str):
    Path("decode.yaml").touch()
    Path("decode.json").touch()
    assert resolve("workloads", text) == Path(text)


def test_a_local_folder_or_file_never_hides_a_name(shop: Path):
    Path("decode").mkdir()
    Path("prefill").touch()
    assert resolve("workloads", "decode") == shop / "workloads" / "decode.yaml"
    assert resolve("workloads", "prefill") == shop / "workloads" / "prefill.yaml"


def test_a_path_to_a_folder_is_a_path(shop: Path):
    Path("llama").mkdir()
    assert resolve("workloads/models", "./llama") == Path("llama")
    assert resolve("workloads/models", "llama/") == Path("llama")


def test_a_path_may_be_relative_to_a_file(shop: Path, tmp_path: Path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "config.json").touch()
    assert resolve("workloads/models", "config.json", base=folder) == folder / "config.json"
    assert resolve("workloads/models", str(folder / "config.json"), base=shop) == folder / "config.json"
    assert resolve("workloads/models", "qwen3-8b", base=folder) == shop / "workloads/models/qwen3-8b.yaml"
    assert refusal("workloads/models", "./config.json").code == "missing-file"


@pytest.mark.parametrize(
    ("room", "text", "code", "suggestion"),
    [
        ("hardware", "h10", "unknown-hardware", "h100"),
        ("hardware", "H100-SXM", "unknown-hardware", "h100-sxm"),
        ("hardware", "h100-smx", "unknown-hardware", "h100-sxm"),
        ("workloads", "decod", "unknown-workload", "decode"),
        ("workloads/models", "llama", "unknown-model", "llama-3.1-8b"),
    ],
)
def test_an_unknown_name_gets_the_nearest(shop: Path, room: Room, text: str, code: str, suggestion: str):
    error = refusal(room, text)
    assert error.code == code
    assert error.suggestions[0] == suggestion
    assert str(error).startswith(f"unknown {code.removeprefix('unknown-')} {text!r}")


@pytest.mark.parametrize("text", ["", ".", "..", "zzzzz", "\0", "x" * 5000, "~", "*"])
def test_a_name_near_nothing_says_how_to_list_them(shop: Path, text: str):
    error = refusal("hardware", text)
    assert error.code == "unknown-hardware"
    assert "roofline hardware list" in error.message
    assert len(str(error)) < 200


@pytest.mark.parametrize(
    "text", ["decoed.yaml", "sub/decode.yaml", "./decode", "../decode.yaml", "/decode.yaml", "decoed.json"]
)
def test_what_looks_like_a_path_is_a_missing_file(shop: Path, text: str):
    error = refusal("workloads", text)
    assert (error.code, error.file) == ("missing-file", text)
    assert "decode" in error.suggestions
    assert str(error).startswith(f"{text}: no such file, and no workload of that name")


def test_a_missing_file_gets_the_files_beside_it_first(shop: Path):
    Path("decode-mine.yaml").touch()
    assert refusal("workloads", "decode-mien.yaml").suggestions[0] == "decode-mine.yaml"


def test_an_unknown_name_gets_the_local_file_that_a_path_would_reach(shop: Path):
    Path("mine.yaml").touch()
    Path("folder").mkdir()
    assert refusal("workloads", "mine").suggestions == ("mine.yaml",)
    assert refusal("workloads", "folder").suggestions == (f".{os.sep}folder",)


def test_a_closed_folder_is_left_to_the_reader(shop: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    assert resolve("workloads", "closed/mine.yaml") == Path("closed/mine.yaml")


# ---------------------------------------------------------------- pydantic's faults


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Memory(Strict):
    kind: Literal["dram"] = "dram"
    bandwidth: Annotated[float, BeforeValidator(for_pydantic(lambda value: parse(value, "bytes/s")))]


class Cache(Strict):
    kind: Literal["cache"]
    ways: int = Field(ge=1)


class Spec(Strict):
    batch: int = Field(gt=0)
    name: str = Field(default="x", min_length=1)
    exact: bool = False
    sizes: list[int] = Field(default=[], max_length=2)
    memory: dict[str, Memory] = {}
    level: Annotated[Memory | Cache, Field(discriminator="kind")] | None = None
    either: Memory | Cache | None = None
    peaks: dict[Annotated[str, Field(pattern="^[a-z0-9]+$")], float] = {}
    phase: Literal["prefill", "decode"] = "decode"

    @field_validator("name")
    @classmethod
    def name_is_good(cls, name: str) -> str:
        if name == "bad":
            raise AssertionError("the name is bad")
        if name == "worse":
            raise ValueError("the name is worse")
        return name

    @model_validator(mode="after")
    def batch_is_lucky(self) -> "Spec":
        if self.batch == 13:
            raise ValueError(RooflineError("13 is unlucky", key="batch", code="unlucky", suggestions=["12"]))
        if self.batch == 15:
            raise ValueError(RooflineError("1 and 15 do not go together", key="sizes.1"))
        if self.batch == 14:
            raise ValueError("14 is no better")
        return self


def allowed(loc: tuple[str | int, ...]) -> list[str]:
    return list(Memory.model_fields if loc[:1] == ("memory",) else Spec.model_fields)


def fault(text: str, allow: Callable[[Any], list[str]] | None = allowed) -> RooflineError:
    document = parse_yaml(text, "f.yaml")
    with pytest.raises(ValidationError) as caught:
        Spec.model_validate(document.data)
    error = from_pydantic(document, caught.value, allow)
    assert (error.exit_code, error.file) == (2, "f.yaml")
    assert "Value error" not in error.message
    assert "Assertion failed" not in error.message
    assert "https" not in error.message
    return error


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("batch: abc", "f.yaml:1:8: batch must be a whole number, not 'abc'"),
        ("batch: 1.5", "f.yaml:1:8: batch must be a whole number, not 1.5"),
        ("batch:", "f.yaml:1:7: batch must be a whole number, but is empty"),
        ("batch: [1]", "f.yaml:1:8: batch must be a whole number, not a list"),
        ("batch: -3", "f.yaml:1:8: batch must be greater than 0, not -3"),
        ("batch: 1\nexact: maybe", "f.yaml:2:8: exact must be true or false, not 'maybe'"),
        ("batch: 1\nname: 5", "f.yaml:2:7: name must be text, not 5"),
        ("batch: 1\nname: true", "f.yaml:2:7: name must be text, not true"),
        ("batch: 1\nname: ''", "f.yaml:2:7: name must have at least 1 character, not ''"),
        ("batch: 1\nname: bad", "f.yaml:2:7: the name is bad"),
        ("batch: 1\nname: worse", "f.yaml:2:7: the name is worse"),
        ("batch: 1\nsizes: 3", "f.yaml:2:8: sizes must be a list, not 3"),
        ("batch: 1\nsizes: [1, b]", "f.yaml:2:12: sizes.1 must be a whole number, not 'b'"),
        ("batch: 1\nsizes: [1, 2, 3]", "f.yaml:2:8: sizes must have at most 2 items after validation, not 3"),
        ("batch: 1\nmemory: {hbm: 5}", "f.yaml:2:15: hbm must be a mapping of keys to values, not 5"),
        ("batch: 1\nphase: decod",
         "f.yaml:2:8: phase must be one of prefill, decode, not 'decod' (did you mean decode?)"),
        ("batch: 1\npeaks: {A-1: 3}", "f.yaml:2:9: A-1 must match pattern '^[a-z0-9]+$', not 'A-1'"),
        ("batch: 1\nlevel: {kind: cahce}",
         "f.yaml:2:8: level must be one of dram, cache, not 'cahce' (did you mean cache?)"),
        ("batch: 1\nlevel: {ways: 2}", "f.yaml:2:1: missing key 'kind' in level"),
        ("batch: 1\nlevel: {kind: cache, ways: 0}", "f.yaml:2:28: ways must be greater than or equal to 1, not 0"),
        ("name: y", "f.yaml:1:1: missing key 'batch'"),
        ("batch: 1\nmemory:\n  hbm: {}", "f.yaml:3:3: missing key 'bandwidth' in memory.hbm"),
        ("name: y\nbatch: 13", "f.yaml:2:8: 13 is unlucky (did you mean 12?)"),
        ("sizes: [2, 1]\nbatch: 15", "f.yaml:1:12: 1 and 15 do not go together"),
        ("name: y\nbatch: 14", "f.yaml:1:1: 14 is no better"),
    ],
)  # fmt: skip
def test_one_fault_in_one_line(text: str, line: str):
    assert str(fault(text)) == line


def test_an_unknown_key_says_what_is_allowed_and_the_nearest():
    error = fault("batch: 1\nmemory:\n  hbm:\n    bandwith: 3 TB/s\n")
    assert (error.code, error.line, error.column, error.key) == ("unknown-key", 4, 5, "memory.hbm.bandwith")
    assert error.message == "unknown key 'bandwith' in memory.hbm: allowed are bandwidth, kind"
    assert error.suggestions == ("bandwidth",)


def test_an_unknown_key_where_nothing_is_known_of_the_right_ones():
    error = fault("batch: 1\nbits: 1", allow=None)
    assert (error.message, error.suggestions) == ("unknown key 'bits'", ())


def test_an_unknown_key_comes_before_a_missing_one_and_that_before_a_wrong_value():
    assert fault("name: 5\nbacth: 3").suggestions[0] == "batch"
    assert fault("name: 5").code == "missing-key"
    assert fault("name: 5\nbatch: 1").code == "bad-value"


def test_a_readers_own_error_keeps_its_code_and_its_advice():
    error = fault("batch: 1\nmemory:\n  hbm:\n    bandwidth: 400 Gb/s\n")
    assert (error.code, error.line, error.column, error.key) == ("bad-quantity", 4, 16, "memory.hbm.bandwidth")
    assert error.suggestions == ("50 GB/s", "400 GB/s")


def test_an_error_about_the_whole_points_at_the_key_it_names():
    error = fault("name: y\nbatch: 13")
    assert (error.code, error.key) == ("unlucky", "batch")


def test_a_long_value_is_cut():
    assert len(str(fault(f"batch: {'x' * 5000}"))) < 200


def test_a_union_without_a_tag_gives_one_error_too():
    assert fault("batch: 1\neither: {ways: 0}").line == 2
