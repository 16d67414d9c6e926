"""How a command fails: one line on standard error that says what and what to do, and an exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

import typer

from hortus.kube.errors import KubeError
from hortus.kube.kubeconfig import KubeconfigError
from hortus.terminal.table import clean

T = TypeVar("T")

EXIT_ERROR = 1
EXIT_TIMEOUT = 4
"""What was waited for did not happen in time; usage errors are 2, as everywhere."""


class CommandError(Exception):
    """What a person is to read, and the exit code."""

    def __init__(self, message: str, *, code: int = EXIT_ERROR) -> None:
        super().__init__(message)
        self.code = code


def run(command: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine; errors of ours end the program with their message, never with a traceback."""
    try:
        return asyncio.run(command)
    except CommandError as error:
        _end(str(error), error.code)
    except (KubeError, KubeconfigError) as error:
        _end(str(error), EXIT_ERROR)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # The reader of our output has gone, as `| head` does.
        sys.stderr.close()
        raise typer.Exit(0) from None


def _end(message: str, code: int) -> NoReturn:
    lines = "\n".join(clean(line) for line in message.splitlines())
    typer.secho(f"error: {lines}", fg=typer.colors.RED if sys.stderr.isatty() else None, err=True)
    raise typer.Exit(code)
