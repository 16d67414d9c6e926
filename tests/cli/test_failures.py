"""What a failing command shows."""

from __future__ import annotations

import pytest
import typer

from hortus.terminal import CommandError, run


def test_an_error_with_escapes_from_a_server_does_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    async def failing() -> None:
        raise CommandError("first \x1b[2Jline\nsecond \u202eline")

    with pytest.raises(typer.Exit):
        run(failing())
    assert capsys.readouterr().err == "error: first [2Jline\nsecond line\n"
