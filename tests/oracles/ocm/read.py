"""Reads component versions with Gardener's implementation of the Open Component Model (gardener-ocm, gardener-oci).

One JSON request a line: `repository` (host, port and path of a registry without TLS), `name` and `version`. The answer
is the descriptor as that implementation understands it, after its JSON schema has judged it, and the local blobs of the
version: their media type and the files in them.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import sys
import tarfile
from enum import Enum
from typing import Any

import dacite
import oci.client
import ocm
import ocm.oci
import ocm.retrieve
import requests
import requests.adapters
import yaml


class PlainHttp(requests.adapters.HTTPAdapter):
    """Speaks to the registry of a test, which has no TLS; the library knows https alone."""

    def send(self, request: requests.PreparedRequest, *given: Any, **options: Any) -> requests.Response:
        assert request.url is not None
        request.url = request.url.replace("https://127.0.0.1", "http://127.0.0.1", 1)
        return super().send(request, *given, **options)


SESSION = requests.Session()
SESSION.mount("https://", PlainHttp())
CLIENT = oci.client.Client(session=SESSION, max_retries=1)


def read(repository: str, name: str, version: str) -> dict[str, Any]:
    identity = ocm.ComponentIdentity(name=name, version=version)
    repo = ocm.OciOcmRepository(baseUrl=repository)
    reference = repo.component_version_oci_ref(identity)
    document = descriptor_document(reference)
    ocm.ComponentDescriptor.validate(document, ocm.ValidationMode.FAIL)
    found = ocm.retrieve.component_descriptor_from_oci(identity, [repo], CLIENT)
    assert found is not None
    return {"descriptor": shown(found), "blobs": blobs(found.component, reference)}


def descriptor_document(reference: str) -> Any:
    """The descriptor's YAML, by the config of the manifest."""
    manifest = CLIENT.manifest(image_reference=reference)
    config = dacite.from_dict(
        data_class=ocm.oci.ComponentDescriptorOciCfg,
        data=json.loads(CLIENT.blob(image_reference=reference, digest=manifest.config.digest).text),
    )
    layer = config.componentDescriptorLayer
    assert layer.mediaType in ocm.oci.component_descriptor_mimetypes, layer.mediaType
    blob = CLIENT.blob(image_reference=reference, digest=layer.digest, stream=False).content
    with tarfile.open(fileobj=io.BytesIO(blob)) as archive:
        file = archive.extractfile(ocm.oci.component_descriptor_fname)
        assert file is not None
        return yaml.safe_load(file.read())


def blobs(component: Any, reference: str) -> dict[str, Any]:
    found = {}
    for resource in component.resources:
        access = resource.access
        if isinstance(access, ocm.LocalBlobAccess):
            data = CLIENT.blob(image_reference=reference, digest=access.localReference, stream=False).content
            found[resource.name] = {"mediaType": access.mediaType, "files": files(data, access.mediaType)}
    return found


def files(data: bytes, media_type: str) -> dict[str, str]:
    if "tar" not in media_type:
        return {"": base64.b64encode(data).decode()}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return {one.name: base64.b64encode(archive.extractfile(one).read()).decode() for one in members}  # type: ignore[union-attr]


def shown(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: shown(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: shown(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


for line in sys.stdin:
    try:
        answer = read(**json.loads(line))
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
