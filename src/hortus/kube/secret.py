"""Text that must not be seen: tokens, private keys, passwords.

It prints as dots wherever an object is formatted (repr, str, f-string, log, traceback), so that only a deliberate
`reveal()` shows it. It cannot keep a core dump from holding it.
"""

from __future__ import annotations

import hmac
from typing import NoReturn


class Secret:
    """Holds one confidential text; compares in constant time, does not print, does not pickle."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself. The caller answers for where it goes."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled: pass the text to the other process on purpose")
