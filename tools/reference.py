"""Keep what docs/ says of commands, flags and settings in step with the code.

A page marks the places: `<!-- generated: keys -->` to `<!-- end -->`. `python tools/reference.py` writes them again,
`--check` only reports which are out of date. Words after `generated:`: `commands`, `domains`, `flags of DOMAIN`,
`authors`, `effects`, `keys`, `reloadable flags`, `powers`, `rules PLACE`, `rules of DOMAIN`, `rules of DOMAIN PLACE`,
`settings NAME`.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import commandpages
import msgspec

from hortus.cli.flags import FLAGS as PROGRAM_FLAGS
from hortus.cli.flags import SHARED_FLAGS
from hortus.cli.install import contents
from hortus.cli.up.store import ServerSettings
from hortus.domains import Domain, all_domains
from hortus.domains.access.powers import POWERS
from hortus.domains.clusters.configuration import KEYS
from hortus.domains.rollouts.authors import EFFECTS_OF_DEMAND
from hortus.engine.flags import Flag
from hortus.engine.rbac import Permission
from hortus.kube import durations
from hortus.schema import descriptions
from hortus.simulation.load.scenario import Fleet, Load, Scenario, Weights
from hortus.simulation.settings import Fault, GardenSettings, Outage, Pace

ROOT = Path(__file__).resolve().parent.parent
_PART = re.compile(r"(<!-- generated: (?P<what>[\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_STRUCTS = (GardenSettings, Fault, Pace, Outage, ServerSettings, Scenario, Load, Fleet, Weights)
_SETTINGS = {cls.__name__: cls for cls in _STRUCTS}


def pages() -> Iterator[Path]:
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield from sorted((ROOT / "src").rglob("README.md"))


def regenerated(text: str) -> str:
    """The page with every generated part as the code has it now. Raises KeyError for words it does not know."""
    return _PART.sub(lambda found: f"{found[1]}{_part(found['what'].split())}{found[3]}", text)


def _part(words: list[str]) -> str:
    match words:
        case ["commands"]:
            return commandpages.reference()
        case ["domains"]:
            return _table(("Folder", "Kinds", "Work"), _domains())
        case ["reloadable", "flags"]:
            rows = ((f"`--{flag.name}`", flag.help) for flag in PROGRAM_FLAGS if flag.reloadable)
            return _table(("Flag taken over while running", "Meaning"), rows)
        case ["rules", "of", name]:
            return _rules(_domain(name).rules().management)
        case ["rules", "of", name, place]:
            return _rules(getattr(_domain(name).rules(), place))
        case ["rules", place]:
            return _rules(getattr(contents, place.upper()))
        case ["shared", "flags"]:
            return _table(("Flag", "Kind", "Default", "Meaning"), _flags(SHARED_FLAGS))
        case ["flags", "of", name]:
            return _table(("Flag", "Kind", "Default", "Meaning"), _flags(_domain(name).flags()))
        case ["powers"]:
            return _table(("Power", "What it opens"), ((f"`{name}`", text) for name, text in POWERS.items()))
        case ["authors"]:
            return _table(("Kind", "Where its namespace is trusted", "In any other namespace"), _authors())
        case ["effects"]:
            return _table(("Kind", "Request", "Why it gives its author nothing"), _effects())
        case ["keys"]:
            return _table(("Key", "Kind", "Default", "Meaning"), _keys())
        case ["settings", name]:
            return _table(("Setting", "Default", "Meaning"), _settings(_SETTINGS[name]))
        case _:
            raise KeyError(f"<!-- generated: {' '.join(words)} -->")


def _authors() -> Iterator[tuple[str, ...]]:
    for domain in all_domains():
        for resource, power in domain.powers().items():
            yield resource.kind, power.trusted, power.untrusted


def _effects() -> Iterator[tuple[str, ...]]:
    declared = [(resource.kind, power.effects) for one in all_domains() for resource, power in one.powers().items()]
    for kind, effects in (*declared, ("Kinds of a ChangeKind", EFFECTS_OF_DEMAND)):
        for one in effects:
            yield kind, f"{', '.join(one.verbs)} `{one.resource}`", one.why


def _domains() -> Iterator[tuple[str, ...]]:
    for domain in all_domains():
        kinds = ", ".join(resource.kind for resource in domain.kinds())
        yield f"`{domain.name}`", kinds or "none", _work(domain)


def _work(domain: Domain) -> str:
    """The first line of the package's docstring behind its colon. Raises ValueError where there is none."""
    first = (inspect.getdoc(inspect.getmodule(type(domain))) or "").partition("\n")[0]
    if not (work := first.partition(": ")[2]):
        raise ValueError(
            f"the docstring of hortus.domains.{domain.name} begins with {first!r}; "
            f"write `{domain.name.capitalize()}: ` and what it does, in one line"
        )
    return work.removesuffix(".")


def _domain(name: str) -> Domain:
    for domain in all_domains():
        if domain.name == name:
            return domain
    raise KeyError(f"there is no domain {name}")


def _flags(flags: Iterable[Flag]) -> Iterator[tuple[str, ...]]:
    for flag in flags:
        default = durations.from_seconds(flag.default) if flag.kind == "duration" else str(flag.default)
        default = default.lower() if flag.kind == "bool" else default
        yield f"`--{flag.name}`", flag.kind, f"`{default}`", flag.help


def _keys() -> Iterator[tuple[str, ...]]:
    for key in KEYS:
        default = (
            "required" if key.required else f"`{key.default}`" if key.default == "false" else key.default or "none"
        )
        yield f"`{key.path}`", key.type, default, key.meaning


def _rules(rules: Iterable[Permission]) -> str:
    rows = (
        (
            f"`{rule.group}`" if rule.group else "none" if rule.urls else "core",
            ", ".join(f"`{name}`" for name in rule.resources or rule.urls),
            ", ".join(rule.verbs),
            rule.why,
        )
        for rule in rules
    )
    return _table(("Group", "Resources", "Verbs", "Why"), rows)


def _settings(cls: type[msgspec.Struct]) -> Iterator[tuple[str, ...]]:
    meanings = descriptions.of_fields(cls)
    for field in msgspec.structs.fields(cls):
        yield f"`{field.name}`", _default("required" if field.required else field.default), meanings.get(field.name, "")


def _default(value: object) -> str:
    if value == () or value is msgspec.NODEFAULT:
        return "none"
    if isinstance(value, msgspec.Struct):
        return "see below"
    if value == "required":
        return "required"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`" if value != "" else "empty"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = [page for page in pages() if regenerated(page.read_text()) != page.read_text()]
    for page in stale:
        if check:
            print(f"{page.relative_to(ROOT)} is out of date; run: make reference")
        else:
            page.write_text(regenerated(page.read_text()))
            print(f"wrote {page.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
