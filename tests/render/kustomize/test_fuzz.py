"""Building ends with objects or a KustomizeError, for any content of the files."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hortus.kube import yaml
from hortus.render.archive import Folder, Tree
from hortus.render.kustomize import KustomizeError, build

CORPUS = Folder(Path(__file__).parent / "corpus").tree()
CASES = sorted(
    {path.rpartition("/")[0] for path in CORPUS if path.endswith(("kustomization.yaml", "kustomization.yml"))}
)
ODD: list[Any] = [None, "", "x", 0, -1, 1.5, True, [], {}, [None], [[]], {"a": None}, {"name": 1}, ["a", {"name": []}]]
ODD += ["../..", "[name=x]", "a" * 300, {"kind": []}, {"metadata": []}, 10**30]


def _changed(value: Any, chance: random.Random) -> Any:
    """`value` with something odd at one random place."""
    if chance.random() < 0.15 or not isinstance(value, dict | list) or not value:
        return chance.choice(ODD)
    if isinstance(value, list):
        place = chance.randrange(len(value))
        return [_changed(part, chance) if number == place else part for number, part in enumerate(value)]
    key = chance.choice(list(value))
    if chance.random() < 0.1:
        return {name: part for name, part in value.items() if name != key} | {str(chance.choice(ODD))[:20]: value[key]}
    return {name: _changed(part, chance) if name == key else part for name, part in value.items()}


def _structural(data: bytes, chance: random.Random) -> bytes:
    documents = list(yaml.load_all(data))
    if not documents:
        return data
    place = chance.randrange(len(documents))
    documents[place] = _changed(documents[place], chance)
    return yaml.dump_all(documents).encode()


def _bytes(data: bytes, chance: random.Random) -> bytes:
    found = bytearray(data or b"x")
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(found))
        found[place : place + chance.randrange(3)] = bytes(
            chance.choices(b"[]{}:,-'\"\n #&*!|>%@`\x00\xff9az", k=chance.randrange(3))
        )
        found = found or bytearray(b"x")
    return bytes(found)


def _attempts(count: int, damage: Callable[[bytes, random.Random], bytes], seed: int) -> Counter[str]:
    """Returns the number of attempts that were built, and of those that were refused."""
    ends: Counter[str] = Counter()
    chance = random.Random(seed)
    for _ in range(count):
        case = chance.choice(CASES)
        files = {path: CORPUS[path].data for path in CORPUS if path.startswith((f"{case.partition('/')[0]}/", "base/"))}
        victim = chance.choice(sorted(path for path in files if path.endswith((".yaml", ".yml", ".json"))))
        with contextlib.suppress(yaml.YamlError):
            files[victim] = damage(files[victim], chance)
        try:
            build(Tree(files), case)
            ends["built"] += 1
        except KustomizeError:
            ends["refused"] += 1
    return ends


def test_values_of_the_wrong_kind_are_refused_not_fatal() -> None:
    ends = _attempts(250, _structural, 1)
    assert ends["built"] + ends["refused"] == 250
    assert min(ends["built"], ends["refused"]) > 20


def test_damaged_text_is_refused_not_fatal() -> None:
    ends = _attempts(150, _bytes, 2)
    assert ends["built"] + ends["refused"] == 150
    assert min(ends["built"], ends["refused"]) > 20
