"""Options that say where to connect may stand anywhere on the line, as with kubectl."""

from __future__ import annotations

from collections.abc import Sequence

_ANYWHERE = ("--kubeconfig", "--context", "--garden-kubeconfig", "--garden-project", "--state-dir")


def hoisted(arguments: Sequence[str], commands_of_their_own: Sequence[str] = ()) -> list[str]:
    """`arguments` with the connection options moved to the front; what follows `--` stays where it is.

    Commands in `commands_of_their_own` read such options themselves and get their line as it is.
    """
    if _command(arguments) in commands_of_their_own:
        return list(arguments)
    front: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            return [*front, *rest, word, *words]
        name, equals, _ = word.partition("=")
        if name not in _ANYWHERE:
            rest.append(word)
        elif equals:
            front.append(word)
        elif (value := next(words, None)) is not None:
            front += [word, value]
        else:
            # Its value is missing, or asked for by a shell: no other word may be taken for it.
            return [*front, word]
    return front + rest


def _command(arguments: Sequence[str]) -> str:
    """The first word that is neither an option nor the value of one of ours."""
    words = iter(arguments)
    for word in words:
        if not word.startswith("-"):
            return word
        if word in _ANYWHERE:
            next(words, None)
    return ""
