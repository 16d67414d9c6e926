"""Refusals of building, and its results where no kustomize is installed to compare with."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from hortus.render.archive import ArchiveError, Folder, Tree
from hortus.render.kustomize import BuildLimits, BuildOptions, KustomizeError, RemoteBase, Unsupported, build

MAP = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: b}\n"


def tree(**files: str | bytes) -> Tree:
    """Paths with `__` for `/`; `k` is the kustomization at the top."""
    names = {"k": "kustomization.yaml"}
    found = {
        names.get(name, name.replace("__", "/").replace("_k", "kustomization.yaml")): text
        for name, text in files.items()
    }
    if "m.yaml" not in found:
        found["m.yaml"] = MAP
    return Tree({name: text if isinstance(text, bytes) else text.encode() for name, text in found.items()})


def names(objects: list[Any]) -> list[str]:
    return [f"{one['kind']}/{one['metadata']['name']}" for one in objects]


def test_generated_names_end_in_the_hash_that_kustomize_computes() -> None:
    found = build(
        tree(
            k="configMapGenerator: [{name: c, literals: [k=v]}, {name: d, literals: ['k=<&>\u00e9']}]\n"
            "secretGenerator: [{name: s, literals: [k=v]}]\n"
        )
    )
    assert names(found) == ["ConfigMap/c-bdg947hgcc", "ConfigMap/d-7c24t2h44k", "Secret/s-ftgtgc4t9f"]
    assert found[2]["data"] == {"k": "dg=="}


def test_a_secret_that_is_empty_after_a_merge_has_no_data() -> None:
    merged = "secretGenerator: [{name: s}, {name: s, behavior: merge}]\n"
    replaced = "secretGenerator: [{name: s, literals: [k=v]}, {name: s, behavior: replace}]\n"
    assert build(tree(k=merged)) == [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s-8226t8dd99"}, "type": "Opaque"}
    ]
    assert build(tree(k=replaced)) == [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s-46f8b28mk5"}, "type": "Opaque", "data": {}}
    ]


def test_a_label_for_the_metadata_leaves_the_selector_of_a_base_alone() -> None:
    deployment = (
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, "
        "template: {metadata: {labels: {a: b}}}}}"
    )
    files = {"b/kustomization.yaml": "resources: [d.yaml]\ncommonLabels: {k: base}\n", "b/d.yaml": deployment}
    (found,) = build(tree(k="resources: [b]\nlabels: [{pairs: {k: over}}]\n", **files))
    assert found["metadata"]["labels"] == {"k": "over"}
    assert found["spec"]["selector"]["matchLabels"] == {"a": "b", "k": "base"}
    assert found["spec"]["template"]["metadata"]["labels"] == {"a": "b", "k": "base"}


VAR = "{name: V, objref: {apiVersion: v1, kind: ConfigMap, name: m}}"
RUN = (
    "{apiVersion: builtin, kind: LabelTransformer, metadata: {name: l, "
    'annotations: {config.kubernetes.io/function: "container: {image: evil}"}}}'
)
SPACE = "{apiVersion: builtin, kind: NamespaceTransformer, metadata: {name: n, namespace: x}, unsetOnly: true}"
IMAGE = "{apiVersion: builtin, kind: ImageTagTransformer, metadata: {name: i}}"


@pytest.mark.parametrize(
    "field",
    [
        "helmCharts",
        "helmChartInflationGenerator",
        "helmGlobals",
        "validators",
        "crds",
        "openapi",
        "buildMetadata",
    ],
)
def test_features_that_are_left_out_are_refused_by_name(field: str) -> None:
    with pytest.raises(Unsupported, match=rf"kustomization\.yaml: {field}: "):
        build(tree(k=f"resources: [m.yaml]\n{field}: [x.yaml]\n"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("[]", "no mapping"),
        ("kind: Kustomization\n", "names no resources"),
        ("resources: m.yaml\n", r"Expected `array`.*\$\.resources"),
        ("resource: [m.yaml]\n", "unknown field `resource`"),
        ("resources: [1]\n", r"\$\.resources"),
        ("namePrefix: 5\n", r"\$\.namePrefix"),
        ("kind: Deployment\nresources: [m.yaml]\n", "kind: 'Deployment'"),
        ("apiVersion: v1\nresources: [m.yaml]\n", "apiVersion: 'v1'"),
        ("resources: [absent.yaml]\n", "neither a file nor a folder"),
        ("resources: [m.yaml, m.yaml]\n", "twice"),
        ("resources: [m.yaml]\nresources: [m.yaml]\n", "stands twice"),
        ("resources: [bad.yaml]\n", "bad.yaml: line 2"),
        ("resources: [nokind.yaml]\n", "without kind"),
        ("resources: [noname.yaml]\n", "without metadata.name"),
        ("resources: [nulls.yaml]\n", "empty item in the list spec.a"),
        ("resources: [text.yaml]\n", "something else than objects"),
        ("resources: [m.yaml]\npatches: [{}]\n", "either path or patch"),
        ("resources: [m.yaml]\npatches: [{path: m.yaml, patch: x}]\n", "either path or patch"),
        ("resources: [m.yaml]\npatches: [{path: other.yaml}]\n", "no resource matches the patch"),
        ("resources: [m.yaml]\npatches: [{patch: '[]'}]\n", "needs a target"),
        ("resources: [m.yaml]\npatches: [{patch: text, target: {kind: ConfigMap}}]\n", "something else than objects"),
        (
            'resources: [m.yaml]\npatches: [{target: {name: \'(\'}, patch: \'[{"op": "remove", "path": "/data"}]\'}]\n',
            "no regular expression",
        ),
        (
            'resources: [m.yaml]\npatches: [{target: {name: m}, patch: \'[{"op": "remove", "path": "/x"}]\'}]\n',
            "operation 0",
        ),
        (
            "resources: [m.yaml]\npatches: [{target: {labelSelector: '=='}, patch: '[]'}]\n",
            "selector cannot be read",
        ),
        ("resources: [m.yaml]\npatches: [{path: m.yaml, options: {other: true}}]\n", "options: 'other'"),
        ("resources: [m.yaml]\npatchesJson6902: [{path: m.yaml, target: {kind: x}}]\n", "target with a name"),
        ("resources: [m.yaml]\nreplicas: [{name: m, count: 1}]\n", "replicas: there is no"),
        ("resources: [m.yaml]\nreplacements: [{}]\n", "needs a source and targets"),
        (
            "resources: [m.yaml]\nreplacements: [{source: {kind: X}, targets: [{select: {kind: ConfigMap}}]}]\n",
            "means 0 resources",
        ),
        (
            "resources: [m.yaml]\nreplacements: [{source: {kind: ConfigMap, fieldPath: data.x},"
            " targets: [{select: {kind: ConfigMap}}]}]\n",
            "nothing at 'data.x'",
        ),
        (
            "resources: [m.yaml]\nreplacements: [{source: {kind: ConfigMap}, targets: [{select: {kind: ConfigMap},"
            " fieldPaths: [data.x]}]}]\n",
            "no field 'data.x'",
        ),
        ("resources: [m.yaml]\nreplacements: [{source: {kind: ConfigMap, options: {encoding: hex}}}]\n", "encoding"),
        ("resources: [m.yaml]\nconfigMapGenerator: [{name: m, literals: [a=b]}]\n", "say behavior"),
        ("configMapGenerator: [{name: m, behavior: merge}]\n", "nothing can be merged"),
        ("configMapGenerator: [{name: m, literals: [a]}]\n", "key=value"),
        ("configMapGenerator: [{name: m, literals: [a=1, a=2]}]\n", "given twice"),
        ("configMapGenerator: [{literals: [a=1]}]\n", "has no name"),
        ("resources: [m.yaml]\nsortOptions: {order: random}\n", "sortOptions.order"),
        ("resources: [m.yaml]\nlabels: [{pairs: {a: b}, fields: [{path: metadata/labels}]}]\n", "given twice"),
        ("resources: [m.yaml, d]\nnamespace: x\n", "would be there twice"),
        ("components: [d]\n", "a Component is expected"),
        ("resources: [m.yaml]\nconfigurations: [nowhere.yaml]\n", "no file 'nowhere.yaml'"),
        ("resources: [m.yaml]\nconfigurations: [text.yaml]\n", "text.yaml: holds no mapping"),
        ("resources: [m.yaml]\nconfigurations: [noname.yaml, wrong.yaml]\n", r"wrong.yaml: .*namePrefix"),
        ("resources: [m.yaml]\nconfigurations: [create.yaml]\n", "commonLabels: the field 'metadata/labels' is given"),
        ("resources: [m.yaml]\nvars: [{name: V, objref: {kind: Secret, name: m, apiVersion: v1}}]\n", "no Secret 'm'"),
        (f"resources: [m.yaml]\nvars: [{VAR}, {VAR}]\n", "'V' is there already"),
        (f"resources: [m.yaml, d]\nvars: [{VAR}]\n", "may mean any of 2 objects"),
        (f"resources: [m.yaml]\nvars: [{VAR[:-1]}, fieldref: {{fieldpath: data.x}}}}]\n", "has no field 'data.x'"),
        ("resources: [m.yaml]\ntransformers: [m.yaml]\n", "ConfigMap 'm': plugins and functions are not run"),
        (
            "resources: [m.yaml]\ntransformers: ['{apiVersion: builtin, kind: Rot13, metadata: {name: r}}']\n",
            "'r': is not",
        ),
        ("generators: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: r}}']\n", "ConfigMapGenerator"),
        (f"resources: [m.yaml]\ntransformers: ['{RUN}']\n", "functions are not run"),
        (f"resources: [m.yaml]\ntransformers: ['{SPACE}']\n", "unsetOnly and setRoleBindingSubjects"),
        (f"resources: [m.yaml]\ntransformers: ['{IMAGE}']\n", "ImageTagTransformer 'i': .*imageTag"),
        ("resources: [c]\n", "no Component is expected"),
    ],
)
def test_what_cannot_be_built_is_said_with_place_and_reason(text: str, words: str) -> None:
    source = tree(
        k=text,
        **{
            "bad.yaml": "a: [\n",
            "nokind.yaml": "apiVersion: v1\nmetadata: {name: a}\n",
            "noname.yaml": "apiVersion: v1\nkind: ConfigMap\n",
            "nulls.yaml": "apiVersion: v1\nkind: Thing\nmetadata: {name: a}\nspec: {a: [null]}\n",
            "text.yaml": "just text\n",
            "wrong.yaml": "namePrefix: metadata/name\n",
            "create.yaml": "commonLabels: [{path: metadata/labels}]\n",
            "other.yaml": MAP.replace(b"name: m", b"name: other").decode(),
            "d__k": "",
            "d/kustomization.yaml": "resources: [m.yaml]\nnamespace: y\n",
            "d/m.yaml": MAP,
            "c/kustomization.yaml": "kind: Component\nresources: [m.yaml]\n",
        },
    )
    with pytest.raises(KustomizeError, match=words) as caught:
        build(source)
    assert str(caught.value).isprintable()
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (type(caught.value), str(caught.value))


ADDRESSES = [
    "https://github.com/org/repo//path?ref=v1",
    "http://example.com/file.yaml",
    "github.com/org/repo",
    "git@github.com:org/repo.git",
    "ssh://git@example.com/repo",
    "ssh://-oProxyCommand=x/repo",
    "git::https://example.com/repo",
    "file:///etc",
    "gitlab.example.com/org/repo//base?ref=main",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_is_fetched(address: str) -> None:
    for field in ("resources", "bases", "components", "transformers", "generators"):
        with pytest.raises(RemoteBase) as caught:
            build(tree(k=f"{field}: ['{address}']\n"))
        assert caught.value.address == address


def test_a_remote_base_that_is_handed_in_is_used_and_stays_within_itself() -> None:
    address = "https://example.com/repo?ref=v1"
    source = tree(k=f"resources: ['{address}']\nnamePrefix: x-\n")
    remote = tree(k="resources: [m.yaml]\n")
    assert names(build(source, options=BuildOptions(remotes={address: remote}))) == ["ConfigMap/x-m"]
    with pytest.raises(KustomizeError, match="outside of the root"):
        build(source, options=BuildOptions(remotes={address: tree(k="resources: [../other]\n")}))
    circle = tree(k=f"resources: ['{address}']\n")
    with pytest.raises(KustomizeError, match="in a circle"):
        build(source, options=BuildOptions(remotes={address: circle}))


@pytest.mark.parametrize(
    "text",
    [
        "resources: [../../etc/passwd]\n",
        "resources: [/etc]\n",
        "resources: [../../..]\n",
        "components: [../../x]\n",
    ],
)
def test_nothing_outside_the_root_is_reached(text: str) -> None:
    with pytest.raises(KustomizeError, match="outside of the root"):
        build(Tree({"in/kustomization.yaml": text.encode()}), "in")


@pytest.mark.parametrize(
    "text",
    [
        "configMapGenerator: [{name: c, files: [../secret]}]\n",
        "configMapGenerator: [{name: c, envs: [../secret]}]\n",
        "secretGenerator: [{name: c, files: [k=/etc/passwd]}]\n",
        "resources: [../m.yaml]\n",
        "resources: [m.yaml]\npatches: [{path: ../m.yaml}]\n",
        "resources: [m.yaml]\npatchesStrategicMerge: [../m.yaml]\n",
        "resources: [m.yaml]\nreplacements: [{path: ../m.yaml}]\n",
    ],
)
def test_files_are_read_in_or_below_their_own_folder_alone(text: str) -> None:
    files = {"in/kustomization.yaml": text.encode(), "in/m.yaml": MAP, "m.yaml": MAP, "secret": b"canary"}
    with pytest.raises(KustomizeError, match="does not lie in or below this folder"):
        build(Tree(files), "in")


def test_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_bytes(MAP)
    root = tmp_path / "root"
    root.mkdir()
    (root / "kustomization.yaml").write_text("resources: [link.yaml]\n")
    (root / "link.yaml").symlink_to("../secret.yaml")
    with pytest.raises(KustomizeError, match="symbolic link"):
        build(Folder(root))
    (root / "link.yaml").unlink()
    (root / "folder").symlink_to("..")
    (root / "kustomization.yaml").write_text("resources: [folder]\n")
    with pytest.raises(KustomizeError, match="symbolic link"):
        build(Folder(root))
    with pytest.raises(ArchiveError):
        Folder(root).tree()


@pytest.mark.parametrize("path", [".", "..", "../in", "./", "deep/.."])
def test_a_base_around_its_user_is_a_circle(path: str) -> None:
    files = {
        "x/in/kustomization.yaml": f"resources: ['{path}']\n".encode(),
        "x/kustomization.yaml": b"resources: [in]\n",
    }
    with pytest.raises(KustomizeError, match="in a circle"):
        build(Tree(files, frozenset({"x/in/deep"})), "x/in")


def test_bases_that_double_at_every_level_end_soon() -> None:
    files: dict[str, bytes] = {"l0/kustomization.yaml": b"resources: [m.yaml]\n", "l0/m.yaml": MAP}
    for level in range(1, 25):
        below = [f"../l{level - 1}{side}" for side in ("ab" if level > 1 else [""])]
        for side in "ab":
            text = f"resources: [{', '.join(below)}]\nnamePrefix: {side}\n"
            files[f"l{level}{side}/kustomization.yaml"] = text.encode()
    assert len(build(Tree(files), "l3a")) == 4
    # Without the limits it would build 16 million bases, which takes hours.
    with pytest.raises(KustomizeError, match="500 kustomizations"):
        build(Tree(files), "l24a")


def test_limits_hold() -> None:
    many = b"\n---\n".join(b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m%d}" % number for number in range(20))
    source = tree(k="resources: [many.yaml]\n", **{"many.yaml": many})
    assert len(build(source)) == 20
    for limits in (BuildLimits(resources=19), BuildLimits(bytes=500), BuildLimits(kustomizations=0)):
        with pytest.raises(KustomizeError):
            build(source, options=BuildOptions(limits=limits))


def test_untrusted_patterns_do_not_backtrack() -> None:
    target = "{name: '(a+)+x'}"
    source = tree(
        k=f"resources: [a.yaml]\npatches: [{{target: {target}, patch: '[]'}}]\n"
        "images: [{name: '(a+)+', newTag: x}]\n",
        **{"a.yaml": MAP.replace(b"name: m", b"name: " + b"a" * 200)},
    )
    # With backtracking, 200 letters would take longer than any limit on the time of a test.
    assert names(build(source)) == ["ConfigMap/" + "a" * 200]


def test_deep_nesting_is_refused_not_fatal() -> None:
    deep = "{a: " * 95 + "1" + "}" * 95
    for text in (f"resources: [m.yaml]\npatches: [{{patch: '{deep}'}}]\n", f"metadata: {deep}\nresources: [m.yaml]\n"):
        try:
            build(tree(k=text))
        except KustomizeError as error:
            assert str(error)


def test_objects_may_stay_in_the_order_they_came() -> None:
    both = MAP + b"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: n1}\n"
    source = tree(k="resources: [m.yaml]\n", **{"m.yaml": both})
    assert names(build(source)) == ["Namespace/n1", "ConfigMap/m"]
    assert names(build(source, options=BuildOptions(order="none"))) == ["ConfigMap/m", "Namespace/n1"]
    with pytest.raises(ValueError, match="legacy or none"):
        build(source, options=BuildOptions(order="other"))


def test_lists_of_custom_resources_are_merged_with_a_schema_that_says_how() -> None:
    thing = b"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\nspec: {parts: [{id: a, x: 1}, {id: b}]}\n"
    patch = thing.replace(b"[{id: a, x: 1}, {id: b}]", b"[{id: c}, {id: a, y: 2}]").decode()
    source = tree(k="resources: [t.yaml]\npatches: [{path: p.yaml}]\n", **{"t.yaml": thing, "p.yaml": patch})
    parts = {
        "type": "array",
        "items": {"type": "object"},
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "id",
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"parts": parts}}}}

    def schemas(version: str, kind: str) -> dict[str, Any] | None:
        return schema if (version, kind) == ("example.com/v1", "Thing") else None

    assert build(source)[0]["spec"]["parts"] == [{"id": "c"}, {"id": "a", "y": 2}]
    merged = build(source, options=BuildOptions(schemas=schemas))[0]["spec"]["parts"]
    assert merged == [{"id": "c"}, {"id": "a", "x": 1, "y": 2}, {"id": "b"}]


def test_an_item_without_its_key_is_refused_rather_than_lost() -> None:
    pod = b"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: x}, {name: b}]}\n"
    source = tree(
        k="resources: [p.yaml]\npatches: [{path: q.yaml}]\n",
        **{"p.yaml": pod, "q.yaml": pod.replace(b"[{image: x}, {name: b}]", b"[{name: b}]").decode()},
    )
    with pytest.raises(KustomizeError, match="has no name"):
        build(source)


def test_the_source_is_left_as_it_was_and_results_share_nothing() -> None:
    source = tree(
        k="resources: [m.yaml, n.yaml]\npatches: [{target: {kind: ConfigMap},"
        " patch: '{kind: ConfigMap, metadata: {name: x}, shared: {deep: [1]}}'}]\n",
        **{"n.yaml": MAP.replace(b"name: m", b"name: n1")},
    )
    one, two = build(source)
    one["shared"]["deep"].append(2)
    assert two["shared"]["deep"] == [1]
    assert build(source)[0]["shared"]["deep"] == [1]
