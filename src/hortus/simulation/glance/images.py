"""The images of the simulated cloud, and the rules of Glance on them (api-ref/image/v2, Images and Image import).

An image that is imported has the next status of its script each time somebody looks at it. So a test decides by looks,
not by time, and `hortus up` sees an import proceed.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from hortus.kube.objects import format_time

_DISKS: Final = frozenset(["ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop"])
_CONTAINERS: Final = frozenset(["ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed"])
_VISIBILITIES: Final = frozenset(("public", "private", "shared", "community"))
_KEYS: Final = frozenset(
    (
        *("id", "name", "visibility", "os_hidden", "tags", "container_format", "disk_format"),
        *("min_disk", "min_ram", "protected", "owner"),
    )
)
_READ_ONLY: Final = frozenset(
    ["status", "size", "checksum", "os_hash_algo", "os_hash_value", "created_at", "updated_at", "file", "schema"]
)
IMPORTED: Final = ("queued", "importing", "active")
"""The statuses of an import that succeeds."""


class GlanceRefusal(Exception):
    """A request that Glance refuses, with the status of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class StoredImage(msgspec.Struct):
    """One image."""

    id: str
    fields: dict[str, Any]
    created: float
    status: str = "queued"
    script: list[str] = []
    """The statuses to come, one a look; `failed` ends an import without data."""
    uri: str = ""
    task: str = ""
    """The status of the import's task, empty before the first import."""
    message: str = ""
    imports: int = 0

    def look(self) -> None:
        """Take the next status of the script."""
        if not self.script:
            return
        status = self.script.pop(0)
        self.status = "queued" if status == "failed" else status
        self.task = {"active": "success", "failed": "failure"}.get(status, "processing")
        self.message = {"failed": "the address does not answer", "active": ""}.get(status, "Copied 15 MiB")

    def document(self) -> dict[str, Any]:
        """The image as the API shows it."""
        data = hashlib.sha512(self.uri.encode()).hexdigest() if self.status == "active" else None
        shown: dict[str, Any] = {
            "id": self.id,
            "status": self.status,
            "created_at": format_time(self.created),
            "visibility": "shared",
        }
        shown |= {"tags": [], "protected": False, "os_hidden": False, "min_disk": 0, "min_ram": 0}
        shown |= {"size": 4096 if data else None, "os_hash_algo": "sha512" if data else None, "os_hash_value": data}
        return shown | self.fields

    def import_task(self) -> dict[str, Any]:
        """The last import as the list of tasks shows it."""
        request = {"method": {"name": "web-download", "uri": self.uri}}
        return {
            "id": f"task-{self.imports}",
            "type": "api_image_import",
            "status": self.task,
            "message": self.message,
            "created_at": format_time(self.created),
            "input": {"image_id": self.id, "import_req": request},
        }


class Images(Mapping[str, StoredImage]):
    """The images by ID."""

    def __init__(self) -> None:
        self._images: dict[str, StoredImage] = {}
        self.script: Sequence[str] = IMPORTED
        """The statuses of the next import."""

    def __getitem__(self, image: str) -> StoredImage:
        return self._images[image]

    def __iter__(self) -> Any:
        return iter(self._images)

    def __len__(self) -> int:
        return len(self._images)

    def create(self, fields: Any, now: float) -> StoredImage:
        """Raises GlanceRefusal."""
        if not isinstance(fields, dict):
            raise GlanceRefusal(400, "the body is no object")
        for name, value in fields.items():
            _check_field(name, value)
        image = fields.get("id") or str(uuid.uuid4())
        if image in self._images:
            raise GlanceRefusal(409, f"Image ID {image} already exists!")
        self._images[image] = StoredImage(image, {key: value for key, value in fields.items() if key != "id"}, now)
        return self._images[image]

    def find(self, query: Mapping[str, str], tags: Sequence[str]) -> list[StoredImage]:
        """The images that pass all filters, the newest first; each is looked at."""
        hidden = query.get("os_hidden", "false") == "true"
        found = [image for image in self._images.values() if _passes(image, query, tags, hidden=hidden)]
        for image in found:
            image.look()
        return sorted(found, key=lambda image: (-image.created, image.id))

    def start_import(self, image: str, body: Any) -> None:
        """Raises GlanceRefusal."""
        stored = self.known(image)
        method = body.get("method") if isinstance(body, dict) else None
        name, uri = (method.get("name"), method.get("uri", "")) if isinstance(method, dict) else (None, "")
        if name != "web-download" or not str(uri).startswith(("http://", "https://")):
            raise GlanceRefusal(400, f"Unknown import method or address: {name!r}")
        if not stored.fields.get("disk_format") or not stored.fields.get("container_format"):
            raise GlanceRefusal(400, "Properties disk_format, container_format must be set prior to saving data.")
        if stored.status != "queued" or stored.task in ("pending", "processing"):
            raise GlanceRefusal(409, f"The image {image} has data on staging or is being imported")
        stored.uri, stored.task, stored.imports = str(uri), "pending", stored.imports + 1
        stored.script = list(self.script)

    def delete(self, image: str) -> None:
        """Raises GlanceRefusal."""
        if self.known(image).fields.get("protected"):
            raise GlanceRefusal(403, f"Image {image} is protected and cannot be deleted.")
        del self._images[image]

    def known(self, image: str) -> StoredImage:
        """Raises GlanceRefusal."""
        if image not in self._images:
            raise GlanceRefusal(404, f"No image found with ID {image}")
        return self._images[image]


def _passes(image: StoredImage, query: Mapping[str, str], tags: Sequence[str], *, hidden: bool) -> bool:
    fields = image.document()
    return (
        query.get("id") in (None, image.id)
        and query.get("name") in (None, fields.get("name"))
        and set(tags) <= set(fields["tags"])
        and fields["os_hidden"] == hidden
    )


def _check_field(name: str, value: Any) -> None:
    allowed = {"disk_format": _DISKS, "container_format": _CONTAINERS, "visibility": _VISIBILITIES}.get(name)
    if name in _READ_ONLY or name.startswith("os_glance"):
        raise GlanceRefusal(403, f"Attribute '{name}' is read-only.")
    if allowed is not None and value not in allowed:
        raise GlanceRefusal(400, f"Invalid value for attribute '{name}'.")
    if name not in _KEYS and not isinstance(value, str):
        raise GlanceRefusal(400, f"Property '{name}' must be a string.")
