"""The flags of the Cluster Stack Operator and of its OpenStack provider are accepted by `hortus run`."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.cli.flags import FLAGS
from hortus.domains.stacks import settings
from hortus.domains.stacks.hooks import settings as hooks
from hortus.engine.flags import FlagError, FlagSet

# SovereignCloudStack/cluster-stack-operator, cmd/main.go; cluster-stack-provider-openstack, cmd/main.go. Not among
# them: --log-level, which lifecycle-manager has as a number.
CSO = (
    "--metrics-bind-address=:8080",
    "--health-probe-bind-address=:9440",
    "--leader-elect=true",
    "--watch-filter=a",
    "--namespace=team",
    "--clusterstack-concurrency=1",
    "--clusterstackrelease-concurrency=1",
    "--clusteraddon-concurrency=1",
    "--release-dir=/tmp/downloads/",
    "--local=false",
    "--source=oci",
    "--qps=50",
    "--burst=100",
    "--hook-port=9442",
    "--hook-cert-dir=/tmp/k8s-hook-server/serving-certs/",
)
CSPO = ("--image-import-timeout=30", "--zap-devel=true", "--zap-log-level=info")


def parsed(*arguments: str) -> dict[str, Any]:
    return FlagSet((*settings.FLAGS, *hooks.FLAGS)).parse(arguments)


@pytest.mark.parametrize("argument", [*CSO, *CSPO])
def test_a_flag_of_the_go_operators_is_known(argument: str) -> None:
    name = argument.removeprefix("--").partition("=")[0]
    assert name in FlagSet(FLAGS).parse([argument])


def test_the_namespace_and_the_port_of_hooks_have_their_effect() -> None:
    values = parsed("--namespace=team", "--hook-port=9999")
    assert settings.from_flags(values, {}).namespace == "team"
    assert hooks.from_flags(values).address.endswith(":9999")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--leader-elect-namespace=a"], "give --leader-election-namespace"),
        (["--source=git"], "--source is 'git'; it must be github or oci"),
        (["--clusterstack-concurrency=0"], "--clusterstack-concurrency is 0"),
        (["--stacks-resync=0s"], "--stacks-resync must be 1s or more"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(arguments: list[str], problem: str) -> None:
    with pytest.raises(FlagError, match=problem):
        settings.from_flags(parsed(*arguments), {})


def test_another_git_provider_is_refused() -> None:
    with pytest.raises(FlagError, match="GIT_PROVIDER is 'gitlab'; only github"):
        settings.from_flags(parsed(), {"GIT_PROVIDER": "gitlab"})


def test_credentials_of_the_environment_are_in_no_text() -> None:
    given = {
        "GIT_ORG_NAME": "example",
        "GIT_REPOSITORY_NAME": "stacks",
        "GIT_ACCESS_TOKEN": "canary-1",
        "OCI_PASSWORD": "canary-2",
    }
    source = settings.from_flags(parsed(), given).source
    found = source.variables
    assert (found.git_org_name, found.git_repository_name, source.missing()) == ("example", "stacks", "")
    assert "canary" not in f"{source!r} {found!r}"
