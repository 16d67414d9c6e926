"""Base64 as Go's strict decoder takes it."""

from __future__ import annotations

import base64
import binascii

from hortus.render.gotemplate.values import wire_bytes, wire_text


def standard_base64(text: str) -> str | None:
    """The decoded text, or None for what is no padded base64."""
    try:
        return wire_text(base64.b64decode(wire_bytes(text).replace(b"\n", b"").replace(b"\r", b""), validate=True))
    except (ValueError, binascii.Error):
        return None
