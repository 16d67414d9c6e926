"""`make oracles`: build the programs that tests compare with. Takes minutes the first time, nothing afterwards."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

from tests.oracles.programs import build, build_environment, built_program, environments, programs, toolchain
from tests.render.oracles import build_helm, find_helm


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
        if not asked or name in asked:
            _make(name, partial(build, name), is_there=built_program(name) is not None)
    if not asked or "helm" in asked:
        _make("helm", build_helm, is_there=find_helm() is not None)


def _make(name: str, make: Callable[[], object], *, is_there: bool) -> None:
    if is_there:
        print(f"{name}: built already")
        return
    print(f"{name}: building", flush=True)
    began = time.monotonic()
    if make() is None:
        print(f"{name}: not built, and the comparisons with it are not made", flush=True)
        return
    print(f"{name}: built in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
