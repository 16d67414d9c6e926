"""Ends of a command: an error is one line on standard error with the problem and the fix, and an exit code.

Ctrl-C ends a command with 130 and without output, a reader that closes the output with 0 and without output.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO, TypeVar

import click

from hortus.terminal.table import clean

T = TypeVar("T")

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_TIMEOUT = 4
"""The awaited condition did not come in time."""
EXIT_INTERRUPTED = 130
"""128 and the number of SIGINT."""


_UNWRITABLE = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT, errno.EBADF})
"""Errors of a write to an output that is there."""


class CommandError(Exception):
    """The message for the user, and the exit code."""

    def __init__(self, message: str, *, code: int = EXIT_ERROR) -> None:
        super().__init__(message)
        self.code = code


def run(command: Coroutine[Any, Any, T]) -> T:
    """Runs a command's coroutine; known errors end the program with their message, never with a traceback."""
    import asyncio

    from hortus.kube.errors import KubeError, NotServed
    from hortus.kube.kubeconfig import KubeconfigError

    try:
        return asyncio.run(_interruptible(command))
    except CommandError as error:
        fail(str(error), error.code)
    except NotServed as error:
        fail(f"{error}: if this is not Hortus' management cluster, choose it with --kubeconfig FILE or --context NAME")
    except (KubeError, KubeconfigError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        _leave_unawaited()
        raise SystemExit(EXIT_INTERRUPTED) from None


def _leave_unawaited() -> None:
    """Turns off the warning of a coroutine that was never awaited, which is no mistake in an interrupted program.

    The traceback of the interrupt holds the coroutine until this has run.
    """
    import warnings

    warnings.filterwarnings("ignore", message="coroutine .* was never awaited", category=RuntimeWarning)


async def _interruptible(command: Coroutine[Any, Any, T]) -> T:
    """The result of `command`; after Ctrl-C no error of it, which would hide the interrupt from asyncio.run."""
    import asyncio

    try:
        return await command
    except (Exception, SystemExit):
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        raise


@contextmanager
def whole_program() -> Iterator[None]:
    """Around a program: ends it for what a command leaves unhandled, after its output is written."""
    try:
        try:
            yield
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
    except KeyboardInterrupt:
        _leave_unawaited()
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        _discard()
        raise SystemExit(0) from None
    except CommandError as error:
        fail(str(error), error.code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    except click.ClickException as error:
        fail(_usage(error), error.exit_code)
    except click.exceptions.Exit as end:
        raise SystemExit(end.exit_code) from None
    except UnicodeEncodeError as error:
        fail(f"{error.object!a} is not text in UTF-8", EXIT_USAGE)
    except OSError as error:
        if error.filename is not None or error.errno not in _UNWRITABLE:
            raise
        _discard()
        fail(f"the output cannot be written: {error.strerror}")


def fail(message: str, code: int = EXIT_ERROR) -> NoReturn:
    """Ends the program with one line on standard error."""
    text = "error: " + "\n".join(map(clean, message.splitlines()))
    click.echo(click.style(text, fg="red") if coloured(sys.stderr) else text, err=True, color=coloured(sys.stderr))
    raise SystemExit(code)


def coloured(stream: TextIO) -> bool:
    """Returns true for a terminal that shows colours, unless the user wants none (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _usage(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"\nSee `{context.command_path} --help`." if context is not None else ""
    return f"{error.format_message()}{hint}"


def _discard() -> None:
    """Sends what is still in the buffer of standard output nowhere, so that its flush at the exit cannot fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
