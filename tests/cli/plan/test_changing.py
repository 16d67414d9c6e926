"""The words for the change of a plan."""

from __future__ import annotations

from pathlib import Path

from hortus.cli.plan.changing import change_of


def test_a_file_of_many_objects_is_named_by_its_kinds(tmp_path: Path) -> None:
    file = tmp_path / "many.yaml"
    clusters = [f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c-{number}}}}}" for number in range(1, 9)]
    file.write_text("\n---\n".join([*clusters, "{apiVersion: v1, kind: Secret, metadata: {name: s}}"]))
    change = change_of([file], [], [], [], namespace="default")
    assert change.words == (
        f"ConfigMap c-1, c-2, c-3, c-4, c-5, c-6 and 2 more of {file}",
        f"Secret s of {file}",
    )
    assert len(change.steps) == 9
