"""The same objects in the same order as `kubectl kustomize` gives, for a corpus and for whatever Hypothesis makes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hortus.kube.yaml import load_all
from hortus.render.archive import Folder
from hortus.render.kustomize import KustomizeError, build

pytestmark = pytest.mark.oracle
CORPUS = Path(__file__).parent / "corpus"
CASES = sorted(
    f"{folder.name}/overlay" if (folder / "overlay").is_dir() else folder.name
    for folder in CORPUS.iterdir()
    if folder.name != "base"
)


@pytest.fixture(scope="session")
def kubectl() -> str:
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("no kubectl on PATH: kustomizations are not compared with `kubectl kustomize`")
    version = subprocess.run([found, "version", "--client"], capture_output=True, text=True, check=False).stdout
    if not re.search(r"Kustomize Version: v5\.", version):
        pytest.skip("this kubectl has no kustomize v5: kustomizations are not compared with it")
    return found


def write(files: dict[str, str], folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def theirs(kubectl: str, folder: Path) -> tuple[list[Any] | None, str]:
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, check=False)
    return (list(load_all(done.stdout)) if done.returncode == 0 else None), done.stderr


@pytest.mark.parametrize("case", CASES)
def test_the_corpus_is_built_as_kubectl_builds_it(case: str, kubectl: str) -> None:
    expected, problem = theirs(kubectl, CORPUS / case)
    assert expected is not None, problem
    found = build(Folder(CORPUS), case)
    assert [ident(one) for one in found] == [ident(one) for one in expected]
    for mine, other in zip(found, expected, strict=True):
        assert mine == other


def ident(obj: Any) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


NAMES = st.sampled_from(["a", "b", "web", "data"])
WORDS = st.text("abxyz019", max_size=4).map("w{}".format)
IMAGES = st.builds(
    "{}{}".format, st.sampled_from(["nginx", "team/app", "r.io:5000/app"]), st.sampled_from(["", ":1", "@sha256:a"])
)
SCALARS = st.one_of(st.integers(-5, 99), st.booleans(), WORDS, st.sampled_from(["true", "1", "null", "1.5", ""]))


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}}


ENVS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"name": WORDS, "value": WORDS}),
        NAMES.map(lambda name: {"name": "ref", "valueFrom": {"configMapKeyRef": {"name": name, "key": "k"}}}),
    ),
    max_size=3,
    unique_by=lambda env: env["name"],
)
PORTS = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.sampled_from([1, 2])},
        optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": WORDS},
    ),
    max_size=3,
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES, "image": IMAGES}, optional={"env": ENVS, "ports": PORTS, "args": st.lists(WORDS)}
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda container: container["name"],
)
PATCH_CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES},
        optional={
            "image": st.one_of(st.none(), IMAGES),
            "env": st.one_of(st.none(), ENVS),
            "ports": PORTS,
            "args": st.one_of(st.none(), st.lists(WORDS)),
            "$patch": st.sampled_from(["delete", "replace", "merge"]),
        },
    ),
    max_size=3,
    unique_by=lambda container: container["name"],
)


def deployment(name: str, containers: list[dict[str, Any]], volume: str) -> dict[str, Any]:
    pod = {"containers": containers, "volumes": [{"name": "v", "configMap": {"name": volume}}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def custom(name: str, spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


TREES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.dictionaries(WORDS, inner, max_size=3), st.lists(inner, max_size=3))
)
OBJECTS = st.lists(
    st.one_of(
        NAMES.map(config_map),
        st.builds(deployment, NAMES, CONTAINERS, NAMES),
        st.builds(custom, NAMES, st.dictionaries(WORDS, TREES, max_size=3)),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda obj: (obj["kind"], obj["metadata"]["name"]),
)
PATCHES = st.lists(
    st.one_of(
        st.builds(
            lambda containers, more: {
                "target": {"kind": "Deployment"},
                "patch": json.dumps(
                    {
                        "apiVersion": "apps/v1",
                        "kind": "Deployment",
                        "metadata": {"name": "any", **more},
                        "spec": {"template": {"spec": {"containers": containers}}},
                    }
                ),
            },
            PATCH_CONTAINERS,
            st.fixed_dictionaries({}, optional={"annotations": st.dictionaries(WORDS, st.one_of(st.none(), WORDS))}),
        ),
        st.builds(
            lambda name, spec: {"target": {"kind": "Thing", "name": name}, "patch": json.dumps(custom("any", spec))},
            st.sampled_from(["a|b", "w.*", "data"]),
            st.dictionaries(WORDS, st.one_of(st.none(), TREES), max_size=3),
        ),
        st.builds(
            lambda value: {
                "target": {"kind": "ConfigMap"},
                "patch": json.dumps([{"op": "add", "path": "/data/new", "value": value}]),
            },
            WORDS,
        ),
    ),
    max_size=2,
)
GENERATORS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["gen", "data"]),
            "literals": st.lists(WORDS.map(lambda w: f"{w}={w}<&>"), unique=True, max_size=3),
        },
        optional={
            "behavior": st.sampled_from(["create", "merge", "replace"]),
            "options": st.fixed_dictionaries(
                {},
                optional={
                    "disableNameSuffixHash": st.booleans(),
                    "labels": st.dictionaries(WORDS.map("l{}".format), WORDS.map("v{}".format), max_size=1),
                },
            ),
        },
    ),
    max_size=2,
)
TEXTS = st.dictionaries(WORDS.map("k{}".format), WORDS.map("v{}".format), max_size=2)


def named_by_fields(labels: dict[str, Any]) -> dict[str, Any]:
    """The entry with other keys for other fields: docs/artifacts.md has the difference where entries share one."""
    letter = "k" if labels.get("includeSelectors") else "t" if labels.get("includeTemplates") else "m"
    return {**labels, "pairs": {f"{letter}{key[1:]}": value for key, value in labels["pairs"].items()}}


LAYERS = st.fixed_dictionaries(
    {},
    optional={
        "namePrefix": st.sampled_from(["p-", "q-"]),
        "nameSuffix": st.just("-s"),
        "namespace": st.sampled_from(["one", "two"]),
        "commonLabels": TEXTS,
        "commonAnnotations": TEXTS,
        "labels": st.lists(
            st.fixed_dictionaries(
                {"pairs": TEXTS}, optional={"includeSelectors": st.booleans(), "includeTemplates": st.booleans()}
            ).map(named_by_fields),
            max_size=2,
        ),
        "images": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["nginx", "team/app"])},
                optional={"newTag": st.just("9"), "newName": st.just("other"), "digest": st.just("sha256:b")},
            ),
            max_size=2,
        ),
        "configMapGenerator": GENERATORS,
        "secretGenerator": GENERATORS,
        "patches": PATCHES,
        "replicas": st.lists(st.fixed_dictionaries({"name": NAMES, "count": st.integers(0, 3)}), max_size=1),
        "sortOptions": st.just({"order": "fifo"}),
    },
)


@settings(
    max_examples=int(os.environ.get("HORTUS_KUSTOMIZE_EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(OBJECTS, LAYERS, LAYERS)
def test_whatever_is_made_up_is_built_as_kubectl_builds_it(
    kubectl: str,
    tmp_path_factory: pytest.TempPathFactory,
    objects: list[Any],
    base: dict[str, Any],
    over: dict[str, Any],
) -> None:
    folder = tmp_path_factory.mktemp("made-up")
    write(
        {
            "base/objects.yaml": "\n---\n".join(map(json.dumps, objects)),
            "base/kustomization.yaml": json.dumps({"resources": ["objects.yaml"], **base}),
            "overlay/kustomization.yaml": json.dumps({"resources": ["../base"], **over}),
        },
        folder,
    )
    expected, problem = theirs(kubectl, folder / "overlay")
    try:
        found = build(Folder(folder), "overlay")
    except KustomizeError as error:
        assert expected is None, error
    else:
        assert expected is not None, problem
        assert found == expected


TEXTS = st.lists(st.text("$()AB x", max_size=12), min_size=20, max_size=60)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=TEXTS, count=st.one_of(st.integers(0, 99), st.booleans(), st.sampled_from(["", "y", "1", "$(A)"])))
def test_variables_in_any_text_are_those_of_kubectl(
    kubectl: str, tmp_path_factory: pytest.TempPathFactory, texts: list[str], count: Any
) -> None:
    folder = tmp_path_factory.mktemp("variables")
    thing = custom("one", {"value": count, "texts": texts})
    fields = {"varReference": [{"kind": "Thing", "path": "spec/texts"}]}
    variable = {"objref": {"apiVersion": "example.com/v1", "kind": "Thing", "name": "one"}}
    kustomization = {
        "resources": ["thing.yaml"],
        "configurations": ["fields.yaml"],
        "vars": [{"name": "A", "fieldref": {"fieldpath": "spec.value"}, **variable}, {"name": "B", **variable}],
    }
    write(
        {
            "thing.yaml": json.dumps(thing),
            "fields.yaml": json.dumps(fields),
            "kustomization.yaml": json.dumps(kustomization),
        },
        folder,
    )
    expected, problem = theirs(kubectl, folder)
    assert expected is not None, problem
    assert build(Folder(folder)) == expected
