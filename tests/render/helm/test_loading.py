"""Claims about untrusted charts: each is refused with a reason, or loaded without further effects."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.render.charts import SMALL

from hortus.render.helm import ChartError, ChartSource, load_archive, load_chart, load_files, render_chart
from hortus.render.helm.ignore import IgnoreRules

CHART = b"apiVersion: v2\nname: c\nversion: 1.0.0\n"


def packed(entries: dict[str, bytes], *, links: dict[str, tuple[bytes, str]] | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for name, (kind, target) in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            archive.addfile(entry)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("c/../../etc/passwd", "climbs out"),
        ("c/..", "climbs out"),
        ("/etc/passwd", "absolute path"),
        ("c//etc/passwd", "empty part"),
        ("c:/windows", "absolute path"),
        ("c\\..\\x", "backslash"),
        ("x", "outside of the chart's folder"),
        ("Chart.yaml", "outside of the chart's folder"),
    ],
)
def test_a_path_that_leaves_the_chart_is_refused(name: str, problem: str) -> None:
    with pytest.raises(ChartError, match=problem):
        load_archive(packed({"c/Chart.yaml": CHART, name: b"x"}))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(kind: bytes) -> None:
    with pytest.raises(ChartError, match=r"chart archive: entry 'c/templates/a\.yaml': .*only files and folders"):
        load_archive(packed({"c/Chart.yaml": CHART}, links={"c/templates/a.yaml": (kind, "/etc/passwd")}))


def test_a_file_too_large_is_refused_before_it_is_read() -> None:
    with pytest.raises(ChartError, match="'c/big': 6291456 bytes are more than the allowed 5242880"):
        load_archive(packed({"c/Chart.yaml": CHART, "c/big": bytes(6 << 20)}))


def test_a_bomb_is_refused() -> None:
    with pytest.raises(ChartError, match="grows more than 200 times"):
        load_archive(packed({"c/Chart.yaml": CHART, "c/x": bytes(5 << 20)}))


def test_charts_within_a_chart_share_its_limits() -> None:
    inner = packed({"c/Chart.yaml": CHART, "c/x": bytes(3 << 20)})
    few, many = ({f"c/charts/{number}.tgz": inner for number in range(count)} for count in (2, 40))
    assert len(load_archive(packed({"c/Chart.yaml": CHART, **few})).dependencies) == 2
    with pytest.raises(ChartError, match="unpacks to more than the allowed"):
        load_archive(packed({"c/Chart.yaml": CHART, **many}))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "gzipped"),
        (b"PK\x03\x04", "gzipped"),
        (gzip.compress(b"not a tar"), "ends without an end mark"),
        (gzip.compress(b""), "ends without an end mark"),
        (packed({}), "holds no files"),
        (packed({"c/Chart.yaml": CHART})[:40], "ends in the middle"),
        (packed({"c/values.yaml": b""}), r"Chart\.yaml file is missing"),
    ],
    # An archive holds the second of its making: two workers would not agree on the tests' names.
    ids=["nothing", "zip", "no-tar", "empty", "no-files", "half", "no-chart"],
)
def test_what_is_no_chart_archive_is_named(data: bytes, problem: str) -> None:
    with pytest.raises(ChartError, match=problem):
        load_archive(data)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "apiVersion is required|name is required"),
        ("[a]", "array into Go value of type chart.Metadata"),
        ("a: b: c", r"cannot load Chart\.yaml"),
        ("apiVersion: v2\nname: ..\nversion: 1.0.0", "is not allowed"),
        ("apiVersion: v2\nname: a/b\nversion: 1.0.0", "is invalid"),
        ("apiVersion: v2\nname: a\nversion: x", "is invalid"),
        ("apiVersion: v2\nname: a\nversion: 1.0.0\ntype: x", "type"),
        ("apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [null]", "null"),
        ("apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [{name: x, alias: 'a b'}]", "alias"),
        ("apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [{name: x}, {name: x}]", "more than one"),
        (
            "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: x",
            "string into Go struct field",
        ),
        ("apiVersion: v2\nname: a\nversion: 1.0.0\nannotations: {a: [1]}", "annotations"),
        ("apiVersion: v2\nname: a\nversion: 1.0.0\nmaintainers: [x]", "maintainers"),
        ("apiVersion: v2\nname: a\nversion: 1.0.0\nkeywords: x", "keywords"),
        ("apiVersion: v2\nname: a\nversion: 1.0.0\nannotations: [1]", "annotations"),
        ("&a [*a]", "mapping|anchor"),
    ],
)
def test_what_is_wrong_with_a_chart_is_named(text: str, problem: str) -> None:
    with pytest.raises(ChartError, match=problem):
        load_files({"Chart.yaml": text.encode()}.items())


def test_charts_within_charts_without_end_are_refused() -> None:
    data = packed({"c/Chart.yaml": CHART})
    for _ in range(20):
        data = packed({"c/Chart.yaml": CHART, "c/charts/c.tgz": data})
    with pytest.raises(ChartError, match="nested deeper"):
        load_archive(data)


def test_a_directory_is_read_without_what_helmignore_names_and_without_links_that_leave_it(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_bytes(CHART)
    (tmp_path / "templates" / "a.yaml").write_text("kind: A")
    (tmp_path / "templates" / ".hidden").write_text("{{ broken")
    (tmp_path / "x.bak").write_text("")
    (tmp_path / ".helmignore").write_text("*.bak\n")
    chart = load_chart(tmp_path)
    assert [name for name, _ in chart.files] == [".helmignore"]
    assert render_chart(chart, {}).objects == [{"kind": "A"}]
    (tmp_path / "leak").symlink_to("/etc/hostname")
    with pytest.raises(ChartError, match="link that leaves the chart"):
        ChartSource.from_directory(tmp_path)
    (tmp_path / "leak").unlink()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ChartError, match="irregular file"):
        load_chart(tmp_path)


@pytest.mark.parametrize(
    ("rule", "path", "is_directory", "ignored"),
    [
        ("*.bak", "a/b.bak", False, True),
        ("/x", "x", False, True),
        ("/x", "a/x", False, False),
        ("a/*.txt", "a/b.txt", False, True),
        ("a/*.txt", "a/b/c.txt", False, False),
        ("dir/", "dir", True, True),
        ("dir/", "dir", False, False),
        ("[ab]?", "b1", False, True),
        ("[^ab]", "c", False, True),
        ("!keep", "other", False, True),
        ("!keep", "keep", False, False),
        ("# x", "# x", False, False),
    ],
)
def test_helmignore_means_what_it_means_to_helm(rule: str, path: str, is_directory: bool, ignored: bool) -> None:
    assert IgnoreRules(rule).ignores(path, is_directory=is_directory) is ignored


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_an_archive_with_bytes_changed_loads_or_ends_in_our_own_error(data: st.DataObject) -> None:
    raw = bytearray(gzip.decompress(packed({f"c/{name}": content for name, content in SMALL.items()})))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    whole = bytearray(gzip.compress(bytes(raw), mtime=0))
    if data.draw(st.booleans()):
        whole[data.draw(st.integers(3, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        render_chart(load_archive(bytes(whole)), {})
    except ChartError as error:
        assert str(error)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["Chart.yaml", "values.yaml", "values.schema.json", "templates/a.yaml", "templates/_h.tpl"])
        | st.sampled_from(["charts/x/Chart.yaml", "charts/y.tgz", "Chart.lock", "requirements.yaml", "crds/a.yaml"]),
        st.one_of(
            st.text(max_size=40), st.sampled_from([CHART.decode(), "{", "a: &x [*x]", "type: 5", "---\n---", "\t"])
        ),
        max_size=6,
    )
)
def test_files_of_any_content_render_or_end_in_our_own_error(files: dict[str, str]) -> None:
    try:
        render_chart(load_files((name, text.encode("utf-8", "replace")) for name, text in files.items()), {})
    except ChartError as error:
        assert str(error)
