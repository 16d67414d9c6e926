"""`hortus stack show`: what a release holds, and what its author guarantees."""

from __future__ import annotations

import pytest
from tests.domains.stacks.publishing.conftest import StackFolder
from tests.domains.stacks.publishing.test_verify import CLASS, _files, _replaced

from hortus.domains.stacks.publishing.contents import contents_of, described
from hortus.domains.stacks.publishing.errors import BadStack
from hortus.domains.stacks.publishing.verifying import verify
from hortus.domains.stacks.samples import sample_releases

NAME = "docker-ferrol-1-27-v1"
CHART = "docker-ferrol-1-27-cluster-class/Chart.yaml"
WORDS = """\
apiVersion: v2
name: docker-ferrol-1-27-cluster-class
version: v1
description: Clusters on Docker
annotations:
  fleet.hortus.dev/supported-until: "{until}"
  fleet.hortus.dev/guarantees: |
    Upgrades from v0 are tested.

    Only these addons are supported.
"""


def promised(folder: StackFolder, until: str) -> dict[str, bytes]:
    files = _files(folder)
    return {**files, CLASS: _replaced(files[CLASS], CHART, WORDS.format(until=until))}


def test_a_release_shows_its_parts_and_what_its_author_guarantees(folder: StackFolder) -> None:
    found = contents_of(NAME, promised(folder, "2027-02-28"))
    lines = list(described(found))
    assert lines[:2] == [f"{NAME}: Clusters on Docker", f"class            {NAME}"]
    assert "Kubernetes       v1.27.7" in lines
    assert "supported until  2027-02-28" in lines
    assert lines[-2:] == [
        "guarantee        Upgrades from v0 are tested.",
        "guarantee        Only these addons are supported.",
    ]


def test_a_release_without_guarantees_shows_its_addons() -> None:
    built = sample_releases()[0]
    lines = list(described(contents_of("docker-sample-1-34-v1", built.files)))
    assert "supported until  not said" in lines
    assert [line.split()[1] for line in lines if line.startswith("addon ")] == ["cni", "metrics-server"]


def test_an_end_of_support_that_is_no_date_is_refused(folder: StackFolder) -> None:
    (problem,) = verify(NAME, promised(folder, "next spring")).problems
    assert problem.endswith("is 'next spring'; write a date as 2027-02-28")
    assert verify(NAME, promised(folder, "2027-02-28")).problems == ()


def test_a_release_that_lacks_a_file_names_it(folder: StackFolder) -> None:
    files = _files(folder)
    del files[CLASS]
    with pytest.raises(BadStack, match=f"{CLASS}: is missing from the release"):
        contents_of(NAME, files)
    with pytest.raises(BadStack, match="ferrol"):
        contents_of("ferrol", files)
