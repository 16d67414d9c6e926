"""The operator's choices for extensions of Gardener. Every command that lists flags loads this module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.domains.garden.extension.admissionflags import ADMISSION_FLAGS
from hortus.domains.garden.extension.webhookflags import SEED_WEBHOOK_FLAGS, seed_webhook_settings
from hortus.domains.garden.topics import extension_topics
from hortus.engine.flags import Flag, FlagError

EXTENSIONS_FLAG: Final = "garden-extensions"

FLAGS: Final = (
    Flag(
        EXTENSIONS_FLAG,
        "string",
        "",
        "Types of Gardener's extensions to reconcile, separated by commas, such as acl; empty for none.",
    ),
    Flag(
        "garden-seed-kubeconfig",
        "string",
        "",
        "Kubeconfig file of the seed whose Extensions are reconciled; the management cluster without it.",
    ),
    Flag("garden-extension-workers-cnt", "int", 5, "Extensions of one type reconciled at the same time."),
    *ADMISSION_FLAGS,
    *SEED_WEBHOOK_FLAGS,
)


class ExtensionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices."""

    types: tuple[str, ...] = ()
    """Types of extensions to reconcile."""
    kubeconfig: str = ""
    """Kubeconfig file of the seed; empty for the management cluster."""
    workers: int = 5


def extension_settings(values: Mapping[str, Any]) -> ExtensionSettings:
    """The choices that flags make. Raises FlagError."""
    types = tuple(word.strip() for word in values[EXTENSIONS_FLAG].split(",") if word.strip())
    known = extension_topics() if types else {}
    folders = {topic.name: type_ for type_, topic in known.items()}
    types = tuple(one if one in known else folders.get(one, one) for one in types)
    for one in types:
        if one not in known:
            there = ", ".join(sorted(known))
            raise FlagError(
                f"invalid value {one!r} for flag --{EXTENSIONS_FLAG}: no such extension; there are: {there}"
            )
    if values["garden-extension-workers-cnt"] < 1:
        raise FlagError("flag --garden-extension-workers-cnt must be 1 or more")
    return ExtensionSettings(
        types=tuple(dict.fromkeys(types)),
        kubeconfig=values["garden-seed-kubeconfig"],
        workers=values["garden-extension-workers-cnt"],
    )


def check_webhooks(values: Mapping[str, Any]) -> None:
    """Raises FlagError for extensions that need the webhooks of the seed, where these have no address.

    Their Extensions would be reported as reconciled while nothing has the extension's part.
    """
    known = extension_topics()
    facts = (known[type_].facts() for type_ in extension_settings(values).types)
    needing = [one.type for one in facts if one is not None and one.webhooks]
    if needing and not seed_webhook_settings(values).is_served:
        raise FlagError(
            f"flag --garden-webhook-bind-address must be HOST:PORT for the extensions {', '.join(needing)}: "
            "they work by webhooks of the seed"
        )
