"""Output of a failing command."""

from __future__ import annotations

import io
import sys

import pytest

from hortus.terminal import CommandError, raw, run


def test_an_error_with_escapes_from_a_server_does_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    async def failing() -> None:
        raise CommandError("first \x1b[2Jline\nsecond \u202eline")

    with pytest.raises(SystemExit):
        run(failing())
    assert capsys.readouterr().err == "error: first [2Jline\nsecond line\n"


@pytest.mark.parametrize("tty", [False, True])
def test_what_an_object_holds_goes_into_a_pipe_as_it_is_and_to_a_terminal_harmlessly(
    monkeypatch: pytest.MonkeyPatch, tty: bool
) -> None:
    """Kubeconfigs are printed this way: otherwise the writer of a Secret could write to the terminal of its reader."""
    content = "token: \x1b]0;owned\x07a\u202eb\x9b1m\n\tend\n".encode() + b"\xff"
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(out, "isatty", lambda: tty)
    monkeypatch.setattr(sys, "stdout", out)
    raw(content)
    assert isinstance(out.buffer, io.BytesIO)
    assert out.buffer.getvalue() == ("token: ]0;ownedab1m\n\tend\n\ufffd".encode() if tty else content)
