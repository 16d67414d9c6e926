"""The operator's choices for OpenStack. Every command that lists flags loads this module, so it loads little.

`image-import-timeout` is that of SovereignCloudStack/cluster-stack-provider-openstack, `cmd/main.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.engine.flags import Flag, FlagError

_MINUTE: Final = 60.0

OPENSTACK_FLAGS: Final = (
    Flag(
        "openstack-node-images",
        "bool",
        True,
        "Provide the node images of OpenStack clouds. False leaves them to another provider.",
    ),
    Flag("image-import-timeout", "int", 0, "Minutes after which the import of a node image has failed; 0 never."),
    Flag(
        "delete-node-images",
        "bool",
        False,
        "Delete an image that was imported for a release once no release uses it. Set it to false again, and wait "
        "for one resync, before another provider takes over.",
    ),
    Flag(
        "openstack-local-networks",
        "bool",
        False,
        "Allow addresses of OpenStack on this machine. They come from Secrets of tenants.",
    ),
    Flag(
        "openstack-poll-interval",
        "duration",
        30.0,
        "Time between two looks at a node image that is not active, and after an outage of the cloud.",
    ),
    Flag("openstackclusterstackrelease-concurrency", "int", 4, "Releases reconciled at the same time."),
    Flag("openstacknodeimagerelease-concurrency", "int", 4, "Node images reconciled at the same time."),
)


class OpenStackSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All choices; `import_timeout` in seconds."""

    is_served: bool = True
    import_timeout: float = 0.0
    deletes_images: bool = False
    allows_local: bool = False
    poll: float = 30.0
    """Seconds between two looks at an image that is not active, and after an outage."""
    release_workers: int = 4
    image_workers: int = 4


def openstack_settings(values: Mapping[str, Any]) -> OpenStackSettings:
    """The choices that flags make. Raises FlagError."""
    if values["image-import-timeout"] < 0:
        raise FlagError(
            f"flag --image-import-timeout is {values['image-import-timeout']}; it must be 0 or more minutes"
        )
    if values["openstack-poll-interval"] < 1:
        raise FlagError("flag --openstack-poll-interval must be 1s or more")
    for name in ("openstackclusterstackrelease-concurrency", "openstacknodeimagerelease-concurrency"):
        if values[name] < 1:
            raise FlagError(f"flag --{name} is {values[name]}; it must be 1 or more")
    return OpenStackSettings(
        is_served=values["openstack-node-images"],
        import_timeout=values["image-import-timeout"] * _MINUTE,
        deletes_images=values["delete-node-images"],
        allows_local=values["openstack-local-networks"],
        poll=values["openstack-poll-interval"],
        release_workers=values["openstackclusterstackrelease-concurrency"],
        image_workers=values["openstacknodeimagerelease-concurrency"],
    )
