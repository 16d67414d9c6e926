"""`make oracles`: build the programs that tests compare with. Takes minutes the first time, nothing afterwards."""

from __future__ import annotations

import sys
import time

from tests.oracles.programs import build, build_environment, built_program, environments, programs, toolchain


def main() -> None:
    asked = sys.argv[1:]
    for name in environments():
        if not asked or name in asked:
            build_environment(name)
            print(f"{name}: built")
    if toolchain() is None:
        print("no Go toolchain here (`go` on PATH): the tests will say which comparisons are not made")
        return
    for name in programs():
        if asked and name not in asked:
            continue
        if built_program(name) is not None:
            print(f"{name}: built already")
            continue
        print(f"{name}: building", flush=True)
        began = time.monotonic()
        build(name)
        print(f"{name}: built in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
