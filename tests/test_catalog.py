"""The catalogue: names, paths and aliases."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import catalog
from roofline.catalog import (
    Room,
    aliases,
    find,
    names,
    read_yaml,
    resolve,
    roots,
)
from roofline.errors import RooflineError

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


def test_upper_and_lower_case_are_one_unless_two_names_differ_by_it(shop: Path):
    assert resolve("hardware", "H100-SXM") == resolve("hardware", "h100-sxm")
    assert resolve("hardware", "H100") == resolve("hardware", "h100")
    assert resolve("workloads", "Decode.yaml") == resolve("workloads", "decode")
    assert refusal("hardware", "H100-S").code == "unknown-hardware"
    lower = resolve("hardware", "h100-sxm")
    lower.with_name("H100-SXM.yaml").write_text("name: H100-SXM\n")
    assert resolve("hardware", "h100-sxm") == lower
    assert refusal("hardware", "H100-Sxm").code == "unknown-hardware"


def test_an_unknown_model_near_nothing_lists_the_models(shop: Path):
    assert "known are " in refusal("workloads/models", "nosuch").message
    assert "llama-3.1-8b" in refusal("workloads/models", "nosuch").message


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
