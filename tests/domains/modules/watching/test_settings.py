"""Flags of the watcher."""

from __future__ import annotations

import pytest

from hortus.cli.flags import FLAGS
from hortus.domains.modules.watching.settings import from_flags
from hortus.engine.flags import FlagError, FlagSet

TAG = "--skr-watcher-image-tag=1.0.0"


def test_the_defaults_are_those_of_the_go_system_and_without_a_tag_there_are_no_agents() -> None:
    """5.1: code defaults."""
    settings = from_flags(FlagSet(FLAGS).parse([]), {})
    assert not settings.enabled
    assert settings.bind_address == ":8082"
    assert (settings.gateway_namespace, settings.gateway_name) == ("kcp-system", "klm-watcher")
    certificates = settings.certificates
    assert (certificates.api, certificates.namespace) == ("cert-manager.io/v1", "istio-system")
    days = [certificates.duration, certificates.renew_before, certificates.renew_buffer, certificates.switch_after]
    assert [one / 86400 for one in days] == [60, 30, 1, 4]
    with_tag = from_flags(FlagSet(FLAGS).parse([TAG]), {"GODEBUG": "fips140=on"})
    assert with_tag.agent.reference == "europe-docker.pkg.dev/kyma-project/prod/runtime-watcher:1.0.0"
    assert (with_tag.agent.memory, with_tag.agent.cpu, with_tag.agent.replicas) == ("200Mi", "0.1", 1)
    assert with_tag.agent.godebug == "fips140=on"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([TAG, "--skr-watcher-image-registry="], "--skr-watcher-image-tag needs --skr-watcher-image-registry"),
        (["--watcher-listener-address=host"], "flag --watcher-listener-address: must be host:port"),
        (["--watcher-listener-address=host:0"], "flag --watcher-listener-address: must be host:port"),
        (["--watcher-listener-address=host:1"], "--watcher-listener-address needs --cert-management=self"),
        ([TAG, "--cert-management=self"], "--cert-management=self needs --watcher-listener-address"),
        (["--listener-port-overwrite=x"], "invalid value 'x' for flag --listener-port-overwrite: must be a port"),
        (["--watcher-agent-replicas=0"], "invalid value 0 for flag --watcher-agent-replicas: must be more than 0"),
        (["--kyma-skr-listener-bind-address=here"], "flag --kyma-skr-listener-bind-address: address 'here'"),
    ],
)
def test_a_value_that_cannot_be_used_names_its_flag(arguments: list[str], problem: str) -> None:
    with pytest.raises(FlagError, match=problem):
        from_flags(FlagSet(FLAGS).parse(arguments), {})
