"""Entry points of the programs `hortus`, `kubectl-hortus` and `kubectl_complete-hortus`.

The module imports nothing slow at its top, so that Ctrl-C ends the program without a traceback from the start.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 and the number of the signal."""


def main() -> None:
    _start("hortus")


def kubectl_main() -> None:
    _start("kubectl hortus")


def kubectl_complete() -> None:
    """Answer kubectl, which asks `kubectl_complete-hortus` what may come next on the line of `kubectl hortus`."""
    signal.signal(signal.SIGINT, _interrupted)
    from hortus.cli.completion import for_kubectl
    from hortus.cli.shell import app

    print(for_kubectl(app, sys.argv[1:]))


def _start(name: str) -> None:
    # While modules load there is nothing to clean up, and an exception could come up inside an extension module.
    signal.signal(signal.SIGINT, _interrupted)
    from hortus.cli.shell import app

    signal.signal(signal.SIGINT, signal.default_int_handler)
    app.main(prog_name=name, complete_var="_HORTUS_COMPLETE")


def _interrupted(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
