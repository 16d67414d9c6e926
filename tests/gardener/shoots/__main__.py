"""`python -m tests.gardener.shoots`: how often random Shoots meet each rule, in the words of Gardener."""

from __future__ import annotations

import argparse
from collections import Counter

from tests.gardener.shoots.answers import Refusal, shape
from tests.gardener.shoots.generator import shoots
from tests.oracles.programs import GoProgram, built_program, why_not


def counted(gardener: GoProgram, seed: int, count: int) -> Counter[Refusal]:
    """The number of Shoots by the rule that refuses them; one may be refused by many."""
    found: Counter[Refusal] = Counter()
    for drawn in shoots(seed, count):
        answer = gardener.ask(op="create", object=drawn.shoot, brief=True, only="stored")
        found.update({shape(error) for error in answer.get("storedErrors") or ()})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.gardener.shoots", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--least", type=int, default=200, help="mark the rules that are met less often")
    options = parser.parse_args()
    binary = built_program("gardener")
    if binary is None:
        raise SystemExit(why_not("gardener"))
    gardener = GoProgram(binary)
    found = counted(gardener, options.seed, options.count)
    gardener.close()
    for rule, times in sorted(found.items(), key=lambda item: item[1]):
        mark = "*" if times < options.least else " "
        print(f"{times:6} {mark} {rule.type:24} {rule.field}: {rule.message}")
    seldom = sum(times < options.least for times in found.values())
    print(f"{len(found)} rules by their words, {seldom} of them met less than {options.least} times")


if __name__ == "__main__":
    main()
