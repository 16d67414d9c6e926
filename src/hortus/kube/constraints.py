"""Constraints on semantic versions, as Masterminds/semver v3 takes them: `>=1.2 <2`, `^1.4`, `~1.4.2 || 2.x`."""

from __future__ import annotations

import re
from collections.abc import Callable

from hortus.kube.versions import Version, VersionError, compare_prereleases

_PLAIN = (
    r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?"
    r"(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?"
)
# Longest first, unlike RE2's leftmost match of an empty word, which the anchors make the same.
_OPERATORS = r"=|!=|>|<|>=|=>|<=|=<|~|~>|\^|"
_SEARCH = re.compile(rf"((?:!=|>=|=>|<=|=<|~>|=|>|<|~|\^)?)\s*({_PLAIN})", re.ASCII)
_RANGE = re.compile(rf"\s*({_PLAIN})\s+-\s+({_PLAIN})\s*", re.ASCII)
_LONGEST_CONSTRAINT = 512
_MOST_GROUPS = 32
_WILD = ("x", "X", "*")


class ImproperConstraint(VersionError):
    """A part of a constraint that is no comparison; `text` is that part."""

    def __init__(self, text: str) -> None:
        super().__init__(f"improper constraint: {text!r}")
        self.text = text


class _Bound:
    """One comparison of a constraint; `wild` says how much of the version was left open."""

    __slots__ = ("minor_open", "open", "operator", "patch_open", "version")

    def __init__(self, operator: str, text: str) -> None:
        found = re.fullmatch(_PLAIN, text, re.ASCII)
        if not found:
            raise ImproperConstraint(operator + text)
        major, minor, patch, pre = found[1], (found[2] or "")[1:], (found[3] or "")[1:], found[4] or ""
        self.operator = operator
        self.open = self.minor_open = self.patch_open = False
        if major in _WILD:
            shown, self.open = f"0.0.0{pre}", True
        elif not minor or minor in _WILD:
            shown, self.open, self.minor_open = f"{major}.0.0{pre}", True, True
        elif not patch or patch in _WILD:
            shown, self.open, self.patch_open = f"{major}.{minor}.0{pre}", True, True
        else:
            shown = text
        try:
            self.version = Version(shown)
        except VersionError:
            raise VersionError("constraint parser error") from None

    def allows(self, version: Version, *, prereleases: bool) -> bool:
        if version.pre and not prereleases:
            return False
        return _CHECKS[self.operator](version, self)


def _not_equal(version: Version, bound: _Bound) -> bool:
    wanted = bound.version
    if bound.open:
        if wanted.major != version.major:
            return True
        if bound.minor_open:
            return False
        if wanted.minor != version.minor:
            return True
        if bound.patch_open:
            return bool(version.pre or wanted.pre) and _differ(version.pre, wanted.pre)
        if wanted.patch != version.patch:
            return True
    return version != wanted


def _differ(first: str, second: str) -> bool:
    return compare_prereleases(first, second) != 0


def _greater(version: Version, bound: _Bound) -> bool:
    wanted = bound.version
    if not bound.open:
        return version > wanted
    if version.major != wanted.major:
        return version.major > wanted.major
    if bound.minor_open:
        return False
    if bound.patch_open:
        return version.minor > wanted.minor
    return version > wanted


def _at_most(version: Version, bound: _Bound) -> bool:
    wanted = bound.version
    if not bound.open:
        return version <= wanted
    if version.major > wanted.major:
        return False
    return not (version.major == wanted.major and version.minor > wanted.minor and not bound.minor_open)


def _tilde(version: Version, bound: _Bound) -> bool:
    wanted = bound.version
    if version < wanted:
        return False
    if (wanted.major, wanted.minor, wanted.patch) == (0, 0, 0) and not bound.minor_open and not bound.patch_open:
        return True
    return version.major == wanted.major and (version.minor == wanted.minor or bound.minor_open)


def _equal(version: Version, bound: _Bound) -> bool:
    return _tilde(version, bound) if bound.open else version == bound.version


def _caret(version: Version, bound: _Bound) -> bool:
    wanted = bound.version
    if version < wanted:
        return False
    if wanted.major > 0 or bound.minor_open:
        return version.major == wanted.major
    if version.major > 0:
        return False
    if wanted.minor > 0 or bound.patch_open:
        return version.minor == wanted.minor
    return version.minor == 0 and version.patch == wanted.patch


def _at_least(version: Version, bound: _Bound) -> bool:
    return version >= bound.version


def _less(version: Version, bound: _Bound) -> bool:
    return version < bound.version


_CHECKS: dict[str, Callable[[Version, _Bound], bool]] = {
    "": _equal,
    "=": _equal,
    "!=": _not_equal,
    ">": _greater,
    "<": _less,
    ">=": _at_least,
    "=>": _at_least,
    "<=": _at_most,
    "=<": _at_most,
    "~": _tilde,
    "~>": _tilde,
    "^": _caret,
}


class Constraint:
    """The condition that a version must satisfy: groups of comparisons, one of which must hold."""

    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST_CONSTRAINT:
            raise VersionError(f"constraint string is too long (max {_LONGEST_CONSTRAINT} bytes)")
        rewritten = _RANGE.sub(lambda found: f">= {found[1]}, <= {found[11]} ", text)
        groups = rewritten.split("||")
        if len(groups) > _MOST_GROUPS:
            raise VersionError(f"too many constraint groups (max {_MOST_GROUPS})")
        self._groups = [_group(group) for group in groups]

    def allows(self, version: Version) -> bool:
        return any(
            all(bound.allows(version, prereleases=any(other.version.pre for other in group)) for bound in group)
            for group in self._groups
        )


def _group(text: str) -> list[_Bound]:
    at = 0
    found: list[_Bound] = []
    bare = text.strip(" \t\n\r\f")
    if not bare:
        # The Go library's expression wants at least one comparison.
        raise ImproperConstraint(text)
    for match in _SEARCH.finditer(text):
        between = text[at : match.start()]
        proper = not between.strip() if not found else re.fullmatch(r"\s+|\s*,\s*", between)
        if not proper:
            raise ImproperConstraint(text)
        found.append(_Bound(match[1], match[2]))
        at = match.end()
    if not found or text[at:].strip():
        raise ImproperConstraint(text)
    return found


__all__ = ["Constraint", "ImproperConstraint"]
