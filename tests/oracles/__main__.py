"""`make oracles` and `make oracles-soak`: build the programs that tests compare with.

Takes minutes the first time, and nothing while the sources of the programs stay as they are.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from tests.oracles.programs import (
    build,
    build_environment,
    built_environment,
    built_program,
    environments,
    is_vetted,
    programs,
    toolchain,
    vet,
    vetted_programs,
)
from tests.render.oracles import build_helm, find_helm


class Part(NamedTuple):
    name: str
    make: Callable[[], object]
    is_there: bool


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.oracles", description=__doc__)
    parser.add_argument("--soak", action="store_true", help="build those that only `make soak` uses")
    parser.add_argument("names", nargs="*", help="build these alone, of either part")
    options = parser.parse_args()
    began = time.monotonic()
    if options.names:
        parts = [part for soak in (False, True) for part in _parts(soak=soak) if part.name in options.names]
    else:
        parts = list(_parts(soak=options.soak))
    for part in parts:
        _make(part)
    if parts:
        print(f"{len(parts)} oracles in {time.monotonic() - began:.0f} s")
    elif toolchain() is not None:
        print("no program is in this part: nothing to build")


def _parts(*, soak: bool) -> Iterator[Part]:
    if not soak:
        for name in environments():
            yield Part(name, partial(build_environment, name), built_environment(name) is not None)
    if toolchain() is None:
        print("no Go toolchain here (`go` on PATH): the tests report the comparisons that are not made")
        return
    for name in programs(soak=soak):
        yield Part(name, partial(build, name), built_program(name) is not None)
    if not soak:
        for name in vetted_programs():
            yield Part(name, partial(vet, name), is_vetted(name))
        yield Part("helm", build_helm, find_helm() is not None)


def _make(part: Part) -> None:
    if part.is_there:
        print(f"{part.name}: built already")
        return
    print(f"{part.name}: building", flush=True)
    began = time.monotonic()
    if part.make() is None:
        print(f"{part.name}: not built, and the comparisons with it are not made", flush=True)
        return
    print(f"{part.name}: built in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
