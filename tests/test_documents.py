"""The YAML loader: what it reads, where it says things stand, and each thing it refuses."""

import json
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.documents import MAX_BYTES, Document, near_files, parse_yaml, read_yaml
from roofline.errors import RooflineError
from roofline.scalars import MAX_DEPTH

PARSERS = ["libyaml", "pure"] if yaml.__with_libyaml__ else ["pure"]


@pytest.fixture(params=PARSERS)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "pure":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    return request.param


def refused(text: str, name: str = "f.yaml") -> RooflineError:
    with pytest.raises(RooflineError) as caught:
        parse_yaml(text, name)
    assert caught.value.exit_code == 2
    assert caught.value.file == name
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


def place(error: RooflineError) -> tuple[int | None, int | None]:
    return error.line, error.column


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("", None), ("~", None), ("null", None), ("Null", None), ("true", True), ("False", False),
        ("0", 0), ("12", 12), ("-5", -5), ("+5", 5), ("1_000", 1000), ("9007199254740993", 2**53 + 1),
        ("1e12", 1e12), ("989.4e12", 989.4e12), ("1.5", 1.5), ("-1.5", -1.5), (".5", 0.5), ("1.", 1.0), ("1E-3", 1e-3),
        ("yes", "yes"), ("no", "no"), ("on", "on"), ("off", "off"), ("y", "y"), ("4:30", "4:30"),
        ("2026-01-01", "2026-01-01"), ("010", "010"), ("0x10", "0x10"), ("0o10", "0o10"), ("0b1", "0b1"),
        (".nan", ".nan"), (".inf", ".inf"), ("-.inf", "-.inf"), ("1e999", "1e999"), ("1__0", "1__0"), ("=", "="),
        ("nan", "nan"), ("inf", "inf"), ("٣", "٣"), ("'true'", "true"), ('"12"', "12"), ("''", ""),
        ("|\n  12\n", "12\n"),
        ("3.35 TB/s", "3.35 TB/s"), ("8k", "8k"), ("1" * 5000, "1" * 5000),
    ],
)  # fmt: skip
def test_scalars(parser: str, written: str, value: object):
    data = parse_yaml(f"a: {written}", "f.yaml").data
    assert data == {"a": value}
    assert type(data["a"]) is type(value)


def test_nested_data(parser: str):
    text = "a:\n  - 1\n  - {b: [x, 2.5], c: null}\nd: {}\ne: []\n"
    assert parse_yaml(text, "f.yaml").data == {"a": [1, {"b": ["x", 2.5], "c": None}], "d": {}, "e": []}


def test_words_that_yaml_1_1_takes_for_booleans_may_be_keys(parser: str):
    assert parse_yaml("on: 1\nyes: 2\n'1': 3\n'<<': 4\n", "f.yaml").data == {"on": 1, "yes": 2, "1": 3, "<<": 4}


def test_json_is_read_too(parser: str):
    text = '{\n  "hidden_size": 4096,\n  "rope": {"theta": 5e5, "eps": 1e-05},\n  "tie": false, "x": null\n}\n'
    expected = {"hidden_size": 4096, "rope": {"theta": 5e5, "eps": 1e-5}, "tie": False, "x": None}
    assert parse_yaml(text, "config.json").data == expected


@pytest.mark.parametrize("text", ["\ufeffa: 1", "%YAML 1.2\n---\na: 1\n...\n", "---\na: 1\n", "a: 1\n...\n"])
def test_marks_around_one_document(parser: str, text: str):
    assert parse_yaml(text, "f.yaml").data == {"a": 1}


def test_changing_the_data_leaves_the_places(parser: str):
    document = parse_yaml("a:\n  b: 1\n", "f.yaml")
    document.data.clear()
    assert document.locate(["a", "b"]) == (2, 6)


# ---------------------------------------------------------------- places

TEXT = """\
# a comment
name: x
memory:
  hbm:
    bandwidth: 3.35 TB/s
  "l2": {capacity: 50 MiB}
ops:
  - op: linear
    tokens: 8
  - attention
"""


@pytest.fixture
def document(parser: str) -> Document:
    return parse_yaml(TEXT, "f.yaml")


@pytest.mark.parametrize(
    ("loc", "key", "value"),
    [
        (["name"], (2, 1), (2, 7)),
        (["memory"], (3, 1), (4, 3)),
        (["memory", "hbm", "bandwidth"], (5, 5), (5, 16)),
        (["memory", "l2"], (6, 3), (6, 9)),
        (["memory", "l2", "capacity"], (6, 10), (6, 20)),
        (["ops", 0, "tokens"], (9, 5), (9, 13)),
        (["ops", "0", "tokens"], (9, 5), (9, 13)),
        (["ops", 1], (10, 5), (10, 5)),
        ([], (2, 1), (2, 1)),
    ],
)
def test_where_keys_and_values_stand(document: Document, loc: list[str | int], key, value):
    assert document.locate(loc, of="key") == key
    assert document.locate(loc) == value


@pytest.mark.parametrize(
    ("loc", "parent"),
    [
        (["memory", "hbm", "capacity"], (4, 3)),
        (["memory", "hbm", "bandwidth", "x"], (5, 5)),
        (["memory", 0], (3, 1)),
        (["ops", 2], (7, 1)),
        (["ops", -1], (7, 1)),
        (["ops", "tokens"], (7, 1)),
        (["nothing", "hbm"], (2, 1)),
    ],
)
def test_what_is_not_there_is_placed_at_its_nearest_parent(document: Document, loc: list[str | int], parent):
    assert document.locate(loc) == document.locate(loc, of="key") == parent


def test_columns_count_characters_not_bytes(parser: str):
    assert parse_yaml("a: {é: µs, b: 1}", "f.yaml").locate(["a", "b"], of="key") == (1, 12)


def test_an_error_has_the_place_and_the_dotted_key(document: Document):
    error = document.error(["ops", 0, "tokens"], "too few", code="bad-value", suggestions=["16"])
    assert str(error) == "f.yaml:9:13: too few (did you mean 16?)"
    assert (error.code, error.key) == ("bad-value", "ops.0.tokens")
    assert document.error([], "x", code="y").key is None


def test_duplicate_keys(parser: str):
    error = refused("a:\n  b: 1\n  c: 2\n  b: 3\n")
    assert (error.code, place(error), error.key) == ("duplicate-key", (4, 3), "a.b")
    assert "line 2" in error.message


def test_duplicate_keys_however_they_are_quoted(parser: str):
    assert refused("{a: 1, 'a': 2}").code == "duplicate-key"


def test_merge_keys(parser: str):
    error = refused("a: {b: 1}\nc:\n  <<: {b: 2}\n")
    assert (error.code, place(error)) == ("merge-key", (3, 3))


@pytest.mark.parametrize("text", ["a: &x 1\nb: 2", "a: 1\nb: &x [1]", "a: &x {b: *x}", "&x a: 1", "a: *x", "*x : 1"])
def test_anchors_aliases_and_self_reference(parser: str, text: str):
    assert refused(text).code == "yaml-alias"


def test_an_alias_bomb(parser: str):
    lines = ["a0: &a0 [x, x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30))]
    error = refused("\n".join(lines))
    assert (error.code, place(error)) == ("yaml-alias", (1, 5))


@pytest.mark.parametrize(
    "tag",
    ["!!python/object/apply:os.system", "!!python/name:os.system", "!!str", "!!int", "!", "!own", "!<tag:x,2000:y>"],
)
@pytest.mark.parametrize("value", ["x", "[x]", "{x: y}"])
def test_tags(parser: str, tag: str, value: str):
    error = refused(f"a: 1\nb: {tag} {value}")
    assert (error.code, place(error), error.key) == ("yaml-tag", (2, 4), "b")


def test_several_documents(parser: str):
    error = refused("a: 1\n---\nb: 2\n")
    assert (error.code, place(error)) == ("several-documents", (2, 1))


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "---\n...\n", "null", "~"])
def test_empty_files(parser: str, text: str):
    assert refused(text).code == "empty-file"


@pytest.mark.parametrize(
    ("text", "what"), [("- a\n- b", "a list"), ("[]", "a list"), ("hello", "a single value"), ("5", "a single value")]
)
def test_a_top_level_that_is_no_mapping(parser: str, text: str, what: str):
    error = refused(text)
    assert (error.code, place(error)) == ("not-a-mapping", (1, 1))
    assert what in error.message


@pytest.mark.parametrize("key", ["1", "1.5", "true", "null", "~", "[a]", "{a: 1}", "1e3"])
def test_keys_that_are_no_text(parser: str, key: str):
    error = refused(f"a: 1\n? {key}\n: 2\n")
    assert (error.code, place(error)) == ("bad-key", (2, 3))


def test_a_number_as_a_key_is_told_to_wear_quotes(parser: str):
    assert 'write "4090"' in refused("4090: rtx-4090").message


def test_nesting(parser: str):
    inside = MAX_DEPTH - 1  # the top mapping is the first level
    assert parse_yaml(f"a: {'[' * inside}{']' * inside}", "f.yaml").data
    assert refused(f"a: {'[' * MAX_DEPTH}{']' * MAX_DEPTH}").code == "too-deep"


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "a: " + "[" * 100_000])
def test_absurd_nesting_costs_nothing(parser: str, text: str):
    assert refused(text).code == "too-deep"


@pytest.mark.parametrize("text", ["a:\n\tb: 1\n", "\ta: 1\n", "a:\n  b: 1\n \tc: 2\n"])
def test_tabs(parser: str, text: str):
    error = refused(text)
    assert (error.code, "tab" in error.message) == ("yaml-syntax", True)
    assert error.line == next(n for n, row in enumerate(text.split("\n"), 1) if "\t" in row)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: b: c", 1),
        ("a: 1\nb: @x", 2),
        ("a: 'x", 1),
        ("a: 1\n  b: 2\n", 2),
        ('a: "\\q"', 1),
        ("a:\n  b: 1\n c: 2", 3),
    ],
)
def test_other_syntax_errors_have_a_line_and_a_column(parser: str, text: str, line: int):
    error = refused(text)
    assert (error.code, error.line) == ("yaml-syntax", line)
    assert error.column


@pytest.mark.parametrize("text", ["a: [1, 2", "a: {b: 1", "a: ]"])
def test_unbalanced_brackets(parser: str, text: str):
    assert refused(text).code == "yaml-syntax"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: 1\nb: \x07", (2, 4)),
        ("\0", (1, 1)),
        ("a: \udc80", (1, 4)),
        ("a: 1\x1b[31m", (1, 5)),
        ("a: 1\nb: x\u202ey", (2, 5)),
    ],
)
def test_control_characters(parser: str, text: str, where: tuple[int, int]):
    error = refused(text)
    assert (error.code, place(error)) == ("not-text", where)


@pytest.mark.parametrize("escape", ["\\0", "\\ud800", "\\U00110000", "\\e[31m", "\\u202e", "\\u0085x\\u009b"])
def test_escapes_that_give_no_text(parser: str, escape: str):
    assert refused(f'a: "{escape}"').code in ("not-text", "yaml-syntax")


# ---------------------------------------------------------------- refusals of the file


def unreadable(path: Path) -> RooflineError:
    with pytest.raises(RooflineError) as caught:
        read_yaml(path)
    assert caught.value.exit_code == 2
    assert caught.value.file == str(path)
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


def test_a_file_is_named_as_the_user_wrote_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "f.yaml").write_text("a: 1\n")
    monkeypatch.chdir(tmp_path)
    document = read_yaml(Path("sub/f.yaml"))
    assert (document.name, document.data) == ("sub/f.yaml", {"a": 1})


def test_a_missing_file_with_the_nearest_names_beside_it(tmp_path: Path):
    (tmp_path / "decode.yaml").touch()
    (tmp_path / "other.txt").touch()
    error = unreadable(tmp_path / "decod.yaml")
    assert error.code == "missing-file"
    assert error.suggestions == (str(tmp_path / "decode.yaml"),)


def test_a_missing_directory(tmp_path: Path):
    assert unreadable(tmp_path / "none" / "f.yaml").code == "missing-file"
    (tmp_path / "file").touch()
    assert unreadable(tmp_path / "file" / "f.yaml").code == "missing-file"


def test_near_files_are_written_as_the_path_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "decode.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert near_files(Path("decode.yml")) == ("decode.yaml",)


def test_near_files_are_of_the_same_kind(tmp_path: Path):
    (tmp_path / "run.json").touch()
    (tmp_path / "decode.yaml").touch()
    (tmp_path / "folder.yaml").mkdir()
    assert near_files(tmp_path / "rum") == ()
    assert near_files(tmp_path / "xyz.json") == ()
    assert near_files(tmp_path / "rum.json") == (str(tmp_path / "run.json"),)
    assert near_files(tmp_path / "decod") == (str(tmp_path / "decode.yaml"),)
    assert near_files(tmp_path / "foldr.yaml") == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        (json.dumps({"k" * 2000: 1}), {"k" * 2000: 1}),
        ('{\n\t"a":\t[1, 2.5, -0, true, null]\n}', {"a": [1, 2.5, 0, True, None]}),
        ('{"\\ud83d\\ude00": 1E400}', {"😀": "1E400"}),
    ],
)
def test_json_that_is_no_yaml(tmp_path: Path, text: str, value: object):
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    document = read_yaml(path)
    assert document.data == value
    assert document.error(("a",), "wrong", code="x").file == str(path)


SMILE = "\\ud83d\\ude00"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f'{{"{SMILE}": 1, "{SMILE}": 2}}', "duplicate-key"),
        (f'{{"{SMILE}": NaN}}', "json-syntax"),
        (f'{{"{SMILE}": "\\u0000"}}', "not-text"),
        ('{"a": "\\ud83d"}', "not-text"),
        (f'["{SMILE}"]', "not-a-mapping"),
        (f'{{"{SMILE}": {"[" * 60}{"]" * 60}}}', "too-deep"),
        (f'{{"{SMILE}": {"[" * 100_000}', "too-deep"),
        ('{"a": 1,, "b": 2}', "json-syntax"),
        ("", "empty-file"),
        ('{"a": 1, "a": 2}', "duplicate-key"),
    ],
)
def test_json_that_is_refused(tmp_path: Path, text: str, code: str):
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    assert unreadable(path).code == code


def test_a_directory(tmp_path: Path):
    assert unreadable(tmp_path).code == "is-directory"


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "f.yaml"
    path.write_text("a: 1\n")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert unreadable(path).code == "no-permission"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_no_permission_for_real(tmp_path: Path):
    path = tmp_path / "f.yaml"
    path.write_text("a: 1\n")
    path.chmod(0)
    assert unreadable(path).code == "no-permission"


def test_a_file_over_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a: 1\n" * (MAX_BYTES // 2))
    monkeypatch.setattr(Path, "open", lambda *_, **__: pytest.fail("opened"))
    error = unreadable(path)
    assert error.code == "too-large"
    assert "2.5 MiB" in error.message


def test_the_limit_itself_is_fine(tmp_path: Path):
    path = tmp_path / "f.yaml"
    line = b"a: 1\n"
    path.write_bytes(line + b"#" * (MAX_BYTES - len(line)))
    assert read_yaml(path).data == {"a": 1}
    path.write_bytes(line + b"#" * (MAX_BYTES - len(line) + 1))
    assert unreadable(path).code == "too-large"


@pytest.mark.parametrize("content", [b"\x7fELF\0\0\x01", b"a: \0", b"\x93NUMPY\0"])
def test_a_binary_file(tmp_path: Path, content: bytes):
    path = tmp_path / "f.yaml"
    path.write_bytes(content)
    assert unreadable(path).code == "not-text"


def test_text_that_is_not_utf8(tmp_path: Path):
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a: 1\nb: caf\xe9\n")
    error = unreadable(path)
    assert (error.code, place(error)) == ("not-text", (2, 7))
    assert "0xe9" in error.message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_does_not_hang(tmp_path: Path):
    path = tmp_path / "f.yaml"
    os.mkfifo(path)
    assert unreadable(path).code == "not-a-file"


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="this system has no /dev/zero")
def test_a_device_is_not_read():
    assert unreadable(Path("/dev/zero")).code == "not-a-file"


def test_paths_that_no_system_has(tmp_path: Path):
    assert unreadable(tmp_path / ("x" * 5000)).code == "unreadable"
    assert unreadable(Path("a\0b.yaml")).code == "unreadable"


def test_links_that_lead_in_a_circle(tmp_path: Path):
    path = tmp_path / "f.yaml"
    path.symlink_to(path)
    assert unreadable(path).code == "unreadable"


# ---------------------------------------------------------------- anything at all

YAML_LIKE = st.text(alphabet="ab1:-?[]{},&*!|>'\"%@`#~<. \n\t\\", max_size=60)


@settings(deadline=None)
@given(st.one_of(st.text(), YAML_LIKE, YAML_LIKE.map(lambda text: f"a:\n  {text}")), st.sampled_from(PARSERS))
def test_any_text_is_a_mapping_or_one_error(text: str, parser: str):
    with pytest.MonkeyPatch.context() as patch:
        if parser == "pure":
            patch.delattr(yaml, "CSafeLoader", raising=False)
        try:
            document = parse_yaml(text, "f.yaml")
        except RooflineError as error:
            assert (error.file, error.exit_code) == ("f.yaml", 2)
        else:
            assert isinstance(document.data, dict)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "f.yaml"


@settings(deadline=None)
@given(content=st.one_of(st.binary(), st.text().map(str.encode)))
def test_any_bytes_are_a_mapping_or_one_error(scratch: Path, content: bytes):
    scratch.write_bytes(content)
    try:
        document = read_yaml(scratch)
    except RooflineError as error:
        assert error.file == str(scratch)
    else:
        assert isinstance(document.data, dict)


@pytest.mark.skipif(len(PARSERS) < 2, reason="PyYAML was built without libyaml: there is one parser")
@settings(deadline=None)
@given(YAML_LIKE.map(lambda text: f"a: {text}"))
def test_both_parsers_read_the_same(text: str):
    found = []
    for parser in PARSERS:
        with pytest.MonkeyPatch.context() as patch:
            if parser == "pure":
                patch.delattr(yaml, "CSafeLoader")
            try:
                found.append(parse_yaml(text, "f.yaml").data)
            except RooflineError:  # they differ in which odd punctuation they take for an error
                return
    assert repr(found[0]) == repr(found[1])


TEXTS = st.text(st.characters(max_codepoint=0xFFFD, exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]))
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(TEXTS, TREES, max_size=4), st.sampled_from([None, 2]))
def test_what_json_writes_is_read_as_it_was(data: dict[str, object], indent: int | None):
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    assert repr(parse_yaml(text, "f.yaml").data) == repr(data)
