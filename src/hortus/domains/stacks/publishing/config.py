"""csctl.yaml: the file by which a folder is the source of a cluster stack, with csctl's keys.

Reference: SovereignCloudStack/csctl, docs/preparing_your_clusterstack_directory.md. All problems of a file are reported
at once. Keys that csctl ignores are ignored here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from hortus.domains.stacks.publishing.errors import BadStack
from hortus.kube.shapes import problem_of
from hortus.kube.yaml import TextLimits, YamlError, load

CONFIG_FILE = "csctl.yaml"
_LIMITS = TextLimits(bytes=1 << 20, depth=30, nodes=20_000)
_KUBERNETES = re.compile(r"v(\d+)\.(\d+)\.\d+")
_PROVIDER = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_PROVIDER = 253


class ProviderConfig(msgspec.Struct, frozen=True, rename="camel"):
    """The provider of a stack; `config` is for its plugin, which is called unless it is empty."""

    type: str = ""
    api_version: str = ""
    config: dict[str, Any] = {}


class StackConfig(msgspec.Struct, frozen=True, rename="camel"):
    """The part `config` of a csctl.yaml."""

    kubernetes_version: str = ""
    cluster_stack_name: str = ""
    provider: ProviderConfig = ProviderConfig()

    @property
    def kubernetes(self) -> tuple[int, int]:
        """Major and minor of the Kubernetes version."""
        found = _KUBERNETES.fullmatch(self.kubernetes_version)
        assert found is not None, "checked where it is read"
        return int(found[1]), int(found[2])


class _Document(msgspec.Struct, rename="camel"):
    config: StackConfig = StackConfig()


def read_stack_config(data: bytes, file: str) -> StackConfig:
    """Read and check a csctl.yaml; `file` is its name for messages. Raises BadStack."""
    try:
        document = load(data, limits=_LIMITS)
        config = msgspec.convert(_without_nulls(document), _Document).config
    except YamlError as error:
        raise BadStack(f"{file}: {error}") from None
    except msgspec.ValidationError as error:
        raise BadStack(problem_of(error, place=f"{file}: ").replace(": .", ": ", 1)) from None
    if problems := [f"{file}: {one}" for one in _problems(config)]:
        raise BadStack(*problems)
    return config


def _without_nulls(value: Any) -> Any:
    """The document without keys that are written and left empty, which count as missing."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value


def _problems(config: StackConfig) -> Iterator[str]:
    if not _KUBERNETES.fullmatch(config.kubernetes_version):
        yield f"config.kubernetesVersion: {_shown(config.kubernetes_version)}; write it with v and patch, as v1.27.7"
    if not config.cluster_stack_name:
        yield "config.clusterStackName: is missing; name the stack, as ferrol"
    elif not re.fullmatch(r"[a-z0-9]+", config.cluster_stack_name):
        advice = "use small letters and digits, since '-' separates the parts of a release's name"
        yield f"config.clusterStackName: {_shown(config.cluster_stack_name)}; {advice}"
    provider = config.provider.type
    if not _PROVIDER.fullmatch(provider) or len(provider) > _LONGEST_PROVIDER:
        yield f"config.provider.type: {_shown(provider)}; use small letters and digits, as openstack"
    elif "-" in provider:
        yield f"config.provider.type: {_shown(provider)}; '-' separates the parts of a release's name, so leave it out"


def _shown(value: str) -> str:
    return f"is {value[:80]!r}" if value else "is missing"
