"""The string formats that a CRD's schema can demand, as predicates.

Only these are checked; every other `format`, `int32` and `int64` of numbers included, is a hint for clients
(API docs of JSONSchemaProps.format; supported list of apiextensions.k8s.io/v1). Names compare without dashes.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from unicodedata import category

Check = Callable[[str], bool]


def check_for(name: str) -> Check | None:
    """The predicate of a format, or None when Kubernetes ignores a format of that name."""
    return _FORMATS.get(name.replace("-", ""))


def _full(pattern: str, flags: re.RegexFlag = re.ASCII) -> Check:
    # Compiled at first use and cached by `re`: all of them would take a twentieth of the start of `hortus up`.
    return lambda text: re.fullmatch(pattern, text, flags | re.ASCII) is not None


_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(.\d+)?(z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)


def is_date(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        # Go knows a year zero, Python does not; a leap year is used instead.
        return text.startswith("0000-") and is_date("0004" + text[4:])
    return True


def is_date_time(text: str) -> bool:
    """RFC 3339, with `t` and `z` in either case; a leap second is refused, and what follows a second `t` ignored."""
    day, clock, *_ = [*text.lower().split("t", 2), ""]
    return is_date(day) and _CLOCK.fullmatch(clock) is not None


_GO_DURATION = re.compile(r"[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_WORD_DURATION = re.compile(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII)
_UNIT_NAMES = {"ns", "us", "µs", "ms", "s", "m", "h", "d", "w", "hr", "wk"}
_UNIT_STEMS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")


def is_duration(text: str) -> bool:
    """Go's notation, or words as in `3 hours` anywhere in the text."""
    if _GO_DURATION.fullmatch(text):
        return True
    units = (unit.lower() for _, unit in _WORD_DURATION.findall(text))
    return any(unit in _UNIT_NAMES or unit.startswith(_UNIT_STEMS) for unit in units)


def _is_ipv4(text: str) -> bool:
    return "." in text and _is_address(text)


def _is_ipv6(text: str) -> bool:
    return ":" in text and _is_address(text)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(_without_leading_zeros(text))
    except ValueError:
        return False
    return "%" not in text


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not length.isdecimal() or not length.isascii():
        return False
    return _is_address(address) and int(length) <= (128 if ":" in address else 32)


def _without_leading_zeros(text: str) -> str:
    """`010.1.1.1` was read by old Go releases as `10.1.1.1`, and Kubernetes still does."""
    if ":" in text or not re.fullmatch(r"\d+(\.\d+){3}", text, re.ASCII):
        return text
    return ".".join(part.lstrip("0") or "0" for part in text.split("."))


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_AUTHORITY = re.compile(r"(?:(?P<user>[^/]*)@)?(?P<host>\[[^\]]*\]|[^/@]*?)(?P<port>:\d*)?", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_URL_HOST = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>\"]|[^\x00-\x7f]|%25|%[89A-Fa-f][0-9A-Fa-f])*", re.ASCII)


def _is_uri(text: str) -> bool:
    """Reports whether Go's url.ParseRequestURI accepts the text: an absolute path, `*`, or a scheme and anything after
    it."""
    if not text or any(ord(char) < 0x20 or char == "\x7f" for char in text):
        return False
    scheme = _SCHEME.match(text)
    rest = (text[scheme.end() :] if scheme else text).partition("?")[0]
    if not rest.startswith("/"):
        return scheme is not None or text == "*"
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        return _is_authority(authority) and _escapes_hold(slash + path)
    return _escapes_hold(rest)


def _is_authority(text: str) -> bool:
    found = _AUTHORITY.fullmatch(text)
    if found is None:
        return False
    user, host = found["user"] or "", found["host"]
    if not _USER.fullmatch(user) or not _escapes_hold(user):
        return False
    if host.startswith("["):
        return host.endswith("]") and _is_ipv6(host[1:-1].partition("%25")[0])
    return ":" not in host and _URL_HOST.fullmatch(host) is not None


def _escapes_hold(text: str) -> bool:
    return re.search(r"%(?![0-9A-Fa-f]{2})", text) is None


# Possessive throughout, so that no text makes the search go back.
_ATOM = r"[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~\x80-\U0010ffff]++"
_QUOTED = r'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[^\x00-\x08\x0a-\x1f\x7f])*+"'
_WORD = rf"(?:{_ATOM}(?:\.{_ATOM})*+|{_QUOTED})"
_SPACE = r"[ \t]*+(?:\([^()\\]*+\)[ \t]*+)*+"
_ADDRESS = rf"{_WORD}@{_SPACE}(?:{_ATOM}(?:\.{_ATOM})*+|\[(?P<ip>[^\[\]\\]*+)\])"
_MAILBOX = rf"{_SPACE}(?:(?P<bare>{_ADDRESS})|(?:{_WORD}|[. \t])*+<{_ADDRESS.replace('<ip>', '<ip2>')}>){_SPACE}"


def _is_email(text: str) -> bool:
    """An addr-spec of RFC 5322, alone or in angle brackets behind a display name, as Go accepts it."""
    found = re.fullmatch(_MAILBOX, text)
    if found is None:
        return False
    literal = found["ip"] if found["ip"] is not None else found["ip2"]
    return literal is None or _is_address(literal)


def _is_hostname(text: str) -> bool:
    """RFC 1034 labels with letters and symbols of any script; at most 63 bytes each and 255 in all."""
    labels = text.split(".")
    if len(text.encode()) > 255 or any(not label or len(label.encode()) > 63 for label in labels):
        return False
    if len(labels) == 1:
        # Kubernetes accepts a dash in a name of one label in second place only.
        return _is_host_text(text[:1] + text[1:].removeprefix("-"))
    *names, top = labels
    inner = all(_is_host_text(name.replace("-", "a")) and name[0] != "-" != name[-1] for name in names)
    return inner and len(top) >= 2 and all(_is_letter(char) for char in top)


def _is_host_text(text: str) -> bool:
    return all(_is_letter(char) or char in "0123456789" or category(char)[0] == "S" for char in text)


def _is_letter(char: str) -> bool:
    return category(char)[0] == "L"


def _is_mac(text: str) -> bool:
    for separator, width in ((":", 2), ("-", 2), (".", 4)):
        parts = text.split(separator)
        if len(parts) * width // 2 in (6, 8, 20) and all(re.fullmatch(rf"[0-9a-fA-F]{{{width}}}", p) for p in parts):
            return True
    return False


def _digits(text: str) -> str:
    return re.sub(r"[\s-]+", "", text)


def _is_isbn10(text: str) -> bool:
    number = _digits(text)
    if not re.fullmatch(r"\d{9}[\dX]", number, re.ASCII):
        return False
    total = sum((place + 1) * (10 if digit == "X" else int(digit)) for place, digit in enumerate(number))
    return total % 11 == 0


def _is_isbn13(text: str) -> bool:
    number = _digits(text)
    if not re.fullmatch(r"\d{13}", number, re.ASCII):
        return False
    total = sum((3 if place % 2 else 1) * int(digit) for place, digit in enumerate(number))
    return total % 10 == 0


_CARD = _full(
    r"4\d{12}(\d{3})?|5[1-5]\d{14}|6(011|5\d\d)\d{12}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|(2131|1800|35\d{3})\d{11}"
)


def _is_credit_card(text: str) -> bool:
    number = re.sub(r"[^0-9]+", "", text)
    if not _CARD(number):
        return False
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(number))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


_CHANNEL = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"


def _uuid(version: str, variant: str = "") -> Check:
    third = rf"{version}[0-9a-f]{{3}}" if version else "[0-9a-f]{4}"
    fourth = rf"[{variant}][0-9a-f]{{3}}" if variant else "[0-9a-f]{4}"
    return _full(rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}-?{fourth}-?[0-9a-f]{{12}}", re.IGNORECASE)


_FORMATS: Mapping[str, Check] = {
    "bsonobjectid": _full(r"[0-9a-fA-F]{24}"),
    "byte": _full(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": is_date,
    "datetime": is_date_time,
    "duration": is_duration,
    "email": _is_email,
    "hexcolor": _full(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "mac": _is_mac,
    "password": lambda text: True,
    "rgbcolor": _full(rf"rgb\({_CHANNEL},{_CHANNEL},{_CHANNEL}\)"),
    "ssn": lambda text: len(text) == 11 and re.fullmatch(r"\d{3}[- ]?\d{2}[- ]?\d{4}", text, re.ASCII) is not None,
    "uri": _is_uri,
    "uuid": _uuid(""),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "89ab"),
    "uuid5": _uuid("5", "89ab"),
}
