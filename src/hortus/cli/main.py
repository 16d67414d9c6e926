"""Entry points of the programs `hortus`, `kubectl-hortus` and `kubectl_complete-hortus`.

The module imports nothing slow at its top, so that Ctrl-C ends the program without a traceback from the start.
"""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 and the number of the signal."""
COMPLETE = "_HORTUS_COMPLETE"
"""The environment variable by which a shell asks what may come next."""
_PLAIN = {"✓": "+", "✗": "x", "·": ".", "├": "|", "│": "|", "└": "`", "─": "-", "…": "..."}
"""Characters of our own output that an encoding may lack."""


def main() -> None:
    _start("hortus")


def kubectl_main() -> None:
    _start("kubectl hortus")


def kubectl_complete() -> None:
    """Answer kubectl, which asks `kubectl_complete-hortus` what may come next on the line of `kubectl hortus`."""
    signal.signal(signal.SIGINT, _interrupted)
    _prepare_streams()
    from hortus.cli.completion import for_kubectl
    from hortus.cli.shell import app
    from hortus.terminal import whole_program

    with whole_program():
        print(for_kubectl(app, sys.argv[1:]))


def _start(name: str) -> None:
    # While modules load there is nothing to clean up, and an exception could come up inside an extension module.
    signal.signal(signal.SIGINT, _interrupted)
    _prepare_streams()
    from hortus.cli.shell import app

    asked = os.environ.get(COMPLETE)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if asked:
            from hortus.cli.completion import answer

            answer(app, name, asked)
        else:
            app.main(prog_name=name)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    finally:
        # The output is written; an exception among the interpreter's last steps would be printed.
        signal.signal(signal.SIGINT, _interrupted)


def _interrupted(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _prepare_streams() -> None:
    """Opens standard streams that the parent closed, and lets the others write any character and all of a text.

    ASCII means that nobody chose an encoding: UTF-8 is written, as Python does in the locale C. In other encodings
    a character that they lack has a substitute.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - until the program ends
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(getattr(stream, "buffer", None), io.RawIOBase) and not stream.isatty():
            # Unbuffered, as by PYTHONUNBUFFERED: nobody would write the rest of what a pipe takes in part.
            encoding = stream.encoding
            setattr(sys, name, io.TextIOWrapper(io.BufferedWriter(stream.detach()), encoding, line_buffering=True))
    codecs.register_error("substitute", _substitute)
    for stream in (sys.stdout, sys.stderr):
        if codecs.lookup(stream.encoding).name == "ascii":
            stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        stream.reconfigure(errors="substitute")  # type: ignore[union-attr]


def _substitute(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(one) or ascii(one)[1:-1] for one in lacking), error.end
