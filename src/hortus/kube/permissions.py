"""RBAC rules compared with RBAC rules: the permissions of some that no rule among others admits.

A rule is a product of verbs, groups, resources and names, so a rule of two kilobytes can hold a million permissions.
They are not taken apart one by one: each value is looked up once among the held rules, and values that the same ones
admit are decided together. Steps beyond a multiple of the values are counted, and refused beyond a bound. Pure.
Semantics: k8s.io/component-helpers, auth/rbac/validation, `ruleCovers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

_MOST_STEPS = 100_000
"""Steps of one comparison, about 0.1 s in all, besides `_STEPS_A_VALUE` for each value of the compared rules."""
_STEPS_A_VALUE = 4
_ALL = "*"


class TooManyPermissions(ValueError):
    """The rules differ in too many ways to be compared."""


class RuleLike(Protocol):
    """A rule of RBAC: rbac.authorization.k8s.io/v1, PolicyRule."""

    @property
    def verbs(self) -> Sequence[str]: ...

    @property
    def api_groups(self) -> Sequence[str]: ...

    @property
    def resources(self) -> Sequence[str]: ...

    @property
    def resource_names(self) -> Sequence[str]: ...

    @property
    def non_resource_urls(self) -> Sequence[str]: ...


class Atom(NamedTuple):
    """A verb on a resource, perhaps of one name, or on a path."""

    verb: str
    group: str = ""
    resource: str = ""
    name: str | None = None
    path: str | None = None

    def __str__(self) -> str:
        if self.path is not None:
            return f"{self.verb} {self.path}"
        title = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {title} {self.name or ''}".rstrip()


def lacking(rules: Iterable[RuleLike], held: Iterable[RuleLike]) -> Iterator[Atom]:
    """The permissions of `rules` that no rule of `held` admits, rule by rule and in the order of its lists.

    Raises TooManyPermissions when that takes too many steps.
    """
    known = _Held(held)
    for rule in rules:
        known.allow(rule)
        yield from known.lacking_paths(rule)
        yield from known.lacking_resources(rule)


_Key = str | None
"""A value that a held rule may list; None stands for every name."""
_Wanted = Sequence[tuple[str | None, tuple[_Key, ...]]]
"""Values of one field of a rule, each with the keys of which a held rule must list one."""
_Admitted = list[tuple[Any, int]]
"""Values of one field of a rule, each with the held rules that admit it: an integer with a bit for each rule."""


class _Field:
    """One field of the held rules."""

    def __init__(self, listed: Iterable[Iterable[_Key]]) -> None:
        self._lists = [frozenset(keys) for keys in listed]
        self._listing: dict[_Key, list[int]] = {}
        for number, keys in enumerate(self._lists):
            for key in keys:
                self._listing.setdefault(key, []).append(number)

    def count(self, wanted: _Wanted) -> int:
        """The number of rules that list one of the keys, or more."""
        return sum(len(self._listing.get(key, ())) for key in _keys(wanted))

    def candidates(self, wanted: _Wanted) -> list[int]:
        """The numbers of the rules that list one of the keys."""
        return sorted({number for key in _keys(wanted) for number in self._listing.get(key, ())})

    def admitted(self, wanted: _Wanted, candidates: Sequence[int]) -> _Admitted:
        keys, bits = _keys(wanted), dict[_Key, int]()
        for place, number in enumerate(candidates):
            for key in keys & self._lists[number]:
                bits[key] = bits.get(key, 0) | 1 << place
        return [(value, _either(bits.get(key, 0) for key in sought)) for value, sought in wanted]


def _keys(wanted: _Wanted) -> frozenset[_Key]:
    return frozenset(key for _, keys in wanted for key in keys)


def _either(sets: Iterable[int]) -> int:
    found = 0
    for one in sets:
        found |= one
    return found


class _Held:
    """The held rules, by the values of their fields."""

    def __init__(self, rules: Iterable[RuleLike]) -> None:
        held = list(rules)
        self._verbs = _Field(rule.verbs for rule in held)
        self._groups = _Field(rule.api_groups for rule in held)
        self._resources = _Field(rule.resources for rule in held)
        self._names = _Field(rule.resource_names or (None,) for rule in held)
        self._paths = _Field(map(_patterns, (rule.non_resource_urls for rule in held)))
        self._lengths = {len(_prefix(path)) for rule in held for path in rule.non_resource_urls if path.endswith(_ALL)}
        self._left = _MOST_STEPS

    def allow(self, rule: RuleLike) -> None:
        """Gives the steps that are linear in the rule."""
        fields = (rule.verbs, rule.api_groups, rule.resources, rule.resource_names, rule.non_resource_urls)
        self._left += _STEPS_A_VALUE * sum(map(len, fields))

    def lacking_paths(self, rule: RuleLike) -> Iterator[Atom]:
        if not rule.non_resource_urls:
            return
        self._spend(len(rule.non_resource_urls) * len(self._lengths))
        sought = [(path, self._path_keys(path)) for path in rule.non_resource_urls]
        verbs, paths = self._admitted((self._verbs, _starred(rule.verbs)), (self._paths, sought))
        lacking: dict[int, list[str]] = {}
        for verb, with_verb in verbs:
            found = lacking.get(with_verb)
            if found is None:
                self._spend(len(paths))
                found = lacking[with_verb] = [path for path, with_path in paths if not with_verb & with_path]
            for path in found:
                yield Atom(verb, path=path)

    def lacking_resources(self, rule: RuleLike) -> Iterator[Atom]:
        groups, resources, verbs, names = self._admitted(
            (self._groups, _starred(rule.api_groups)),
            (self._resources, [(resource, _resource_keys(resource)) for resource in rule.resources]),
            (self._verbs, _starred(rule.verbs)),
            (self._names, [(name, (name, None)) for name in rule.resource_names] or [(None, (None,))]),
        )
        lacking: dict[int, list[tuple[str, list[tuple[str, str | None]]]]] = {}
        for group, with_group in groups:
            found = lacking.get(with_group)
            if found is None:
                found = lacking[with_group] = self._in_group(with_group, resources, verbs, names)
            for resource, without in found:
                for verb, name in without:
                    yield Atom(verb, group, resource, name)

    def _in_group(
        self, with_group: int, resources: _Admitted, verbs: _Admitted, names: _Admitted
    ) -> list[tuple[str, list[tuple[str, str | None]]]]:
        """The resources that are not admitted with all verbs and names, each with those it is not admitted with."""
        self._spend(len(resources))
        lacking: dict[int, list[tuple[str, str | None]]] = {}
        every_name = _every(with_name for _, with_name in names)
        for with_both in {with_group & with_resource for _, with_resource in resources}:
            self._spend(len(verbs))
            if all(with_both & with_verb & every_name for _, with_verb in verbs):
                lacking[with_both] = []
                continue
            self._spend(len(verbs) * len(names))
            lacking[with_both] = [
                (verb, name)
                for verb, with_verb in verbs
                for name, with_name in names
                if not with_both & with_verb & with_name
            ]
        found = ((resource, lacking[with_group & with_resource]) for resource, with_resource in resources)
        return [(resource, without) for resource, without in found if without]

    def _admitted(self, *fields: tuple[_Field, _Wanted]) -> list[_Admitted]:
        """The values of each field, looked up among the held rules that list a value of the rarest field."""
        rarest, keys = min(fields, key=lambda field: field[0].count(field[1]))
        candidates = rarest.candidates(keys)
        self._spend(len(candidates))
        return [field.admitted(wanted, candidates) for field, wanted in fields]

    def _path_keys(self, path: str) -> tuple[_Key, ...]:
        return ("=" + path, *("^" + path[:length] for length in self._lengths if length <= len(path)))

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooManyPermissions("the permissions are too many to be compared with those held")


def _starred(values: Iterable[str]) -> _Wanted:
    return [(value, (value, _ALL)) for value in values]


def _resource_keys(resource: str) -> tuple[_Key, ...]:
    _, slash, subresource = resource.partition("/")
    return (resource, _ALL, f"*/{subresource}") if slash else (resource, _ALL)


def _patterns(paths: Iterable[str]) -> Iterator[str]:
    """The keys of the paths of a held rule: each as it is, and what stands before the star at its end."""
    for path in paths:
        yield "=" + path
        if path.endswith(_ALL):
            yield "^" + _prefix(path)


def _prefix(path: str) -> str:
    return path.rstrip(_ALL)


def _every(sets: Iterable[int]) -> int:
    found = -1
    for one in sets:
        found &= one
    return found
