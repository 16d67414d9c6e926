"""The resources that a patch or replacement selects."""

from __future__ import annotations

from collections.abc import Callable

from hortus.kube.selectors import LabelSelector, SelectorError
from hortus.render.kustomize.documents import ReplacementSource, Selector
from hortus.render.kustomize.errors import KustomizeError
from hortus.render.kustomize.resources import Identity, Resource, strings
from hortus.schema.patterns import PatternError, matcher

_LONGEST_PATTERN = 1_000
"""Characters of a regular expression."""


def pattern(text: str, place: str) -> Callable[[str], bool]:
    """A test for whole texts by the regular expression `text` (RE2, so in linear time); an empty one matches all."""
    if not text:
        return lambda value: True
    if len(text) > _LONGEST_PATTERN:
        raise KustomizeError(place, f"a pattern of {len(text)} characters is longer than {_LONGEST_PATTERN}")
    try:
        return matcher(f"^(?:{text})$")
    except PatternError:
        raise KustomizeError(place, f"{text[:100]!r} is no regular expression") from None


class Target:
    """The target of a patch: each part a regular expression for the whole value, names as they were or are."""

    def __init__(self, selector: Selector, place: str) -> None:
        self._group, self._version, self._kind, self._name, self._space = (
            pattern(part, place)
            for part in (selector.group, selector.version, selector.kind, selector.name, selector.namespace)
        )
        self._marks = marks(selector, place)

    def matches(self, resource: Resource) -> bool:
        old, now = resource.original, resource.current
        return (
            (self._space(old.space) or self._space(now.space))
            and (self._name(old.name) or self._name(now.name))
            and self._group(now.group)
            and self._version(now.version)
            and self._kind(now.kind)
            and self._marks(resource)
        )


def marks(selector: Selector, place: str) -> Callable[[Resource], bool]:
    """A test for resources whose labels and annotations the selector wants. Raises KustomizeError."""
    try:
        labels, annotations = (
            LabelSelector.parse(text) for text in (selector.label_selector, selector.annotation_selector)
        )
    except SelectorError as error:
        raise KustomizeError(place, f"a selector cannot be read: {error}") from None

    def matches(resource: Resource) -> bool:
        return labels.matches(strings(resource.obj, "labels")) and annotations.matches(
            strings(resource.obj, "annotations")
        )

    return matches


def selects(selector: Selector | ReplacementSource, resource: Resource) -> bool:
    """True when the resource has or had an identity that equals the selector where that says something.

    A namespace is compared without regard to what is cluster-scoped.
    """
    own = resource.current._replace(space=_space(resource.namespace))
    return any(_is_selected(selector, one) for one in (own, *resource.previous_identities()))


def _is_selected(selector: Selector | ReplacementSource, identity: Identity) -> bool:
    return (
        selector.name in ("", identity.name)
        and (not selector.namespace or _space(selector.namespace) == identity.space)
        and identity.is_kind(selector.group, selector.version, selector.kind)
    )


def _space(namespace: str) -> str:
    return namespace or "default"
