"""Failures of a command: one line on standard error with the problem and the fix, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

import click

from hortus.terminal.table import clean

T = TypeVar("T")

EXIT_ERROR = 1
EXIT_TIMEOUT = 4
"""The awaited condition did not come in time. Usage errors have the usual code 2."""


class CommandError(Exception):
    """The message for the user, and the exit code."""

    def __init__(self, message: str, *, code: int = EXIT_ERROR) -> None:
        super().__init__(message)
        self.code = code


def run(command: Coroutine[Any, Any, T]) -> T:
    """Runs a command's coroutine; known errors end the program with their message, never with a traceback."""
    import asyncio

    from hortus.kube.errors import KubeError
    from hortus.kube.kubeconfig import KubeconfigError

    try:
        return asyncio.run(command)
    except CommandError as error:
        _end(str(error), error.code)
    except (KubeError, KubeconfigError) as error:
        _end(str(error), EXIT_ERROR)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        # The reader of the output has closed it, for example `| head`.
        sys.stderr.close()
        raise SystemExit(0) from None


def _end(message: str, code: int) -> NoReturn:
    lines = "\n".join(clean(line) for line in message.splitlines())
    click.secho(f"error: {lines}", fg="red" if sys.stderr.isatty() else None, err=True)
    raise SystemExit(code)
