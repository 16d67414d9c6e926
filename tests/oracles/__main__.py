"""`make oracles`: build the Go programs that tests compare with. Takes minutes the first time, nothing afterwards."""

from __future__ import annotations

import sys
import time

from tests.oracles.programs import build, built_program, programs, toolchain


def main() -> None:
    if toolchain() is None:
        print("no Go toolchain here (`go` on PATH): the tests will say which comparisons are not made")
        return
    for name in sys.argv[1:] or programs():
        if built_program(name) is not None:
            print(f"{name}: built already")
            continue
        print(f"{name}: building", flush=True)
        began = time.monotonic()
        build(name)
        print(f"{name}: built in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
