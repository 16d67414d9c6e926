"""Turns sockets into requests and back: paths, queries, bodies, negotiation, answers.

Nothing here knows kinds. In: aiohttp's low-level requests. Passed on: a `RequestInfo`, a dict of query parameters and a
decoded body. Out: a `Reply` of bytes or a stream.
"""

from hortus.apiserver.http.bodies import (
    decode_object,
    decode_patch,
    decode_value,
    duplicate_fields,
    go_kind,
    head_problems,
    kindless,
    media_type_of,
    read_body,
    with_whole_numbers,
)
from hortus.apiserver.http.paths import RequestInfo, request_info
from hortus.apiserver.http.queries import flag, parse_query, seconds
from hortus.apiserver.http.replies import Reply, status_reply

__all__ = [
    "Reply",
    "RequestInfo",
    "decode_object",
    "decode_patch",
    "decode_value",
    "duplicate_fields",
    "flag",
    "go_kind",
    "head_problems",
    "kindless",
    "media_type_of",
    "parse_query",
    "read_body",
    "request_info",
    "seconds",
    "status_reply",
    "with_whole_numbers",
]
