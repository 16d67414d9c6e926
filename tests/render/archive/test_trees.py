"""Trees in and out: packing, unpacking, folders on disk."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.render.archive.making import entry, tar, zipped

from hortus.render.archive import (
    ArchiveError,
    File,
    Folder,
    Limits,
    Rule,
    Tree,
    pack_tar,
    pack_tgz,
    pack_zip,
    read_archive,
    unpack_archive,
)

PARTS = st.text(st.characters(codec="utf-8", categories=["Ll", "Lo", "Nd"], include_characters="-_. "), min_size=1)
PATHS = st.lists(PARTS.filter(lambda part: part not in (".", "..")), min_size=1, max_size=5).map("/".join)
FILES = st.dictionaries(PATHS, st.builds(File, st.binary(max_size=2000), st.booleans()), max_size=8)


def tree_or_nothing(files: dict[str, File]) -> Tree | None:
    try:
        return Tree(files)
    except ArchiveError:
        return None


@settings(max_examples=120, deadline=None)
@given(FILES.map(tree_or_nothing).filter(lambda tree: tree is not None))
def test_packing_and_reading_give_the_tree_back(tree: Tree) -> None:
    for pack in (pack_tar, pack_tgz, pack_zip):
        packed = pack(tree)
        assert read_archive(packed) == tree
        assert pack(Tree(dict(reversed(list(tree.items()))))) == packed, "the order of making does not show"


def test_long_names_go_through_every_form_of_tar_header() -> None:
    names = ["a" * 100, "b" * 101, "d" * 150 + "/" + "e" * 100, "d" * 200 + "/" + "f" * 60, "g/" * 20 + "h" * 200]
    tree = Tree(dict.fromkeys(names, b"x"))
    packed = pack_tar(tree)
    assert read_archive(packed) == tree
    with tarfile.open(fileobj=io.BytesIO(packed)) as other:
        assert sorted(other.getnames()) == sorted(names)


def test_other_readers_accept_what_we_pack(tmp_path: Path) -> None:
    tree = Tree({"Chart.yaml": b"name: x\n", "bin/run": File(b"#!/bin/sh\n", executable=True)}, frozenset({"empty"}))
    with tarfile.open(fileobj=io.BytesIO(pack_tgz(tree, prefix="chart", folders=True))) as found:
        modes = {info.name: (info.mode, info.mtime, info.uid) for info in found.getmembers()}
    assert modes == {
        "chart/Chart.yaml": (0o644, 0, 0),
        "chart/bin": (0o755, 0, 0),
        "chart/bin/run": (0o755, 0, 0),
        "chart/empty": (0o755, 0, 0),
    }
    with zipfile.ZipFile(io.BytesIO(pack_zip(tree))) as other:
        assert other.testzip() is None
        assert other.read("bin/run") == b"#!/bin/sh\n"
        assert other.getinfo("bin/run").external_attr >> 16 == 0o100755


def test_gnu_tar_and_ours_read_one_another(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / ("deep" * 30)).mkdir(parents=True)
    (source / ("deep" * 30) / ("name" * 30)).write_bytes(b"x" * 1000)
    (source / "plain.yaml").write_bytes(b"a: 1\n")
    for form in ("gnu", "pax", "ustar", "v7"):
        names = ["plain.yaml"] if form in ("ustar", "v7") else ["."]
        packed = subprocess.run(
            ["tar", "-C", source, f"--format={form}", "-czf", "-", *names], capture_output=True, check=True
        ).stdout
        assert read_archive(packed).read("plain.yaml") == b"a: 1\n"
    listed = subprocess.run(
        ["tar", "-tzf", "-"], input=pack_tgz(Folder(source).tree()), capture_output=True, check=True
    )
    assert sorted(listed.stdout.decode().split()) == sorted(["plain.yaml", f"{'deep' * 30}/{'name' * 30}"])


def test_unpacked_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        data = pack_tgz(Tree({"a/b": b"1", "run": File(b"2", executable=True)}, frozenset({"empty"})), folders=True)
        unpack_archive(data, tmp_path / "out")
    finally:
        os.umask(before)
    found = {str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode) for path in sorted(tmp_path.rglob("*"))}
    assert found == {"out": 0o700, "out/a": 0o700, "out/a/b": 0o600, "out/empty": 0o700, "out/run": 0o700}
    assert Folder(tmp_path / "out").tree().digest() == read_archive(data).digest()


def test_a_folder_that_exists_is_not_unpacked_into(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        unpack_archive(tar(entry(b"a")), tmp_path)


def test_a_folder_on_disk_is_read_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("canary")
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("x")
    (root / "link").symlink_to("../outside/secret")
    (root / "folder").symlink_to("../outside")
    folder = Folder(root)
    assert folder.read("file") == b"x"
    assert folder.is_file("file")
    assert folder.is_folder("")
    assert not folder.is_file("absent/below")
    for path in ("link", "folder/secret", "folder"):
        with pytest.raises((ArchiveError, NotADirectoryError)):
            folder.read(path)
    for path, rule in (("../outside/secret", Rule.PARENT), ("/etc/passwd", Rule.ABSOLUTE), ("link", Rule.LINK)):
        with pytest.raises(ArchiveError) as caught:
            folder.is_file(path)
        assert caught.value.rule is rule
    with pytest.raises(ArchiveError) as caught:
        folder.tree()
    assert caught.value.rule is Rule.LINK
    with pytest.raises(FileNotFoundError):
        folder.read("absent")
    with pytest.raises(IsADirectoryError):
        Folder(tmp_path).read("outside")


def test_pipes_and_sizes_in_a_folder_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArchiveError) as caught:
        Folder(tmp_path).tree()
    assert caught.value.rule is Rule.FIFO
    (tmp_path / "pipe").unlink()
    (tmp_path / "large").write_bytes(bytes(1000))
    with pytest.raises(ArchiveError) as caught:
        Folder(tmp_path, limits=Limits(file=999)).tree()
    assert caught.value.rule is Rule.SIZE


def test_a_tree_is_looked_into_by_path() -> None:
    tree = read_archive(zipped({"chart/Chart.yaml": b"1", "chart/templates/a": b"2"}))
    assert tree.single_folder() == "chart"
    assert dict(tree.below("chart")) == {"Chart.yaml": File(b"1"), "templates/a": File(b"2")}
    assert tree.below("chart").folders == {"templates"}
    assert tree.is_folder("chart/templates")
    with pytest.raises(IsADirectoryError):
        tree.read("chart")
    with pytest.raises(FileNotFoundError):
        tree.read("chart/absent")
    with pytest.raises(ArchiveError):
        tree.below("chart").single_folder()


def test_digests_tell_trees_apart() -> None:
    trees = [
        Tree({"a": b"x"}),
        Tree({"a": b"y"}),
        Tree({"b": b"x"}),
        Tree({"a": File(b"x", executable=True)}),
        Tree({"a": b"x"}, frozenset({"c"})),
        Tree({"a": b"", "x": b""}),
        Tree({"ax": b""}),
    ]
    assert len({tree.digest() for tree in trees}) == len(trees)


def test_a_tree_takes_no_name_that_an_archive_may_not_hold() -> None:
    with pytest.raises(ArchiveError):
        Tree({"../x": b""})
