"""`hortus garden audit`: verify and replay print what they find, and end with a code that a script can read."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result
from tests.domains.garden.audit.receiver.receivers import numbers_in, settings_in
from tests.domains.garden.audit.spool.spools import KEYED, opened, put

from hortus.cli.shell import app
from hortus.domains.garden.audit.buffer.spool import Spool


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, ["garden", "audit", *words])


def spooled(folder: Path) -> Spool:
    spool = opened(folder, chain=KEYED)
    put(spool, *range(20))
    spool.close()
    return spool


def key_in(folder: Path) -> str:
    path = folder / "chain.key"
    path.write_bytes(b"a key of thirty-two bytes or so.")
    return str(path)


def test_a_spool_as_it_was_written_verifies(tmp_path: Path) -> None:
    spool, key = spooled(tmp_path / "spool"), key_in(tmp_path)
    found = typed("verify", str(tmp_path / "spool"), "--key-file", key, "--expect", f"20={spool.committed.digest}")
    assert (found.exit_code, found.output.splitlines()[1:]) == (
        0,
        [f"Sequence 0 to 20, head {spool.committed.digest}", "Every line is as it was written."],
    )


def test_an_altered_spool_ends_with_one_and_names_the_place(tmp_path: Path) -> None:
    spooled(tmp_path / "spool")
    path = next((tmp_path / "spool").glob("*.segment"))
    path.write_bytes(path.read_bytes().replace(b'"000003"', b'"000033"'))
    found = typed("verify", str(tmp_path / "spool"), "--key-file", key_in(tmp_path))
    assert found.exit_code == 1
    assert "FINDING: segment 1, offset 690: the bytes of the frame are not those that were written; 1 lines" in (
        found.output
    )


def test_verification_without_the_key_says_what_is_needed(tmp_path: Path) -> None:
    spooled(tmp_path / "spool")
    found = typed("verify", str(tmp_path / "spool"))
    assert (found.exit_code, "made with a key: give the key file" in found.output) == (1, True)


def test_lines_are_replayed_to_standard_output_and_to_a_sink(tmp_path: Path) -> None:
    spooled(tmp_path / "spool")
    key = key_in(tmp_path)
    found = typed("replay", str(tmp_path / "spool"), "--key-file", key, "--from", "5", "--to", "8")
    assert (found.exit_code, numbers_in(found.stdout_bytes)) == (0, [5, 6, 7])
    settings_in(tmp_path)
    words = ["--config", str(tmp_path / "receiver.yaml"), "--sink", "archive"]
    found = typed("replay", str(tmp_path / "spool"), "--key-file", key, *words)
    assert (found.exit_code, found.output) == (0, "Sent 20 lines.\n")
    assert numbers_in((tmp_path / "audit.ndjson").read_bytes()) == list(range(20))
    found = typed("replay", str(tmp_path / "spool"), "--key-file", key, *words[:2], "--sink", "other")
    assert (found.exit_code, "has no sink 'other'; there are: archive" in found.output) == (1, True)


def test_replay_leaves_altered_lines_out_and_says_so(tmp_path: Path) -> None:
    spooled(tmp_path / "spool")
    path = next((tmp_path / "spool").glob("*.segment"))
    path.write_bytes(path.read_bytes().replace(b'"000003"', b'"000033"'))
    found = typed("replay", str(tmp_path / "spool"), "--key-file", key_in(tmp_path))
    assert found.exit_code == 1
    assert numbers_in(found.stdout_bytes) == [number for number in range(20) if number != 3]
