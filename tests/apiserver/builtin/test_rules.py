"""The defaults, refusals and immutable fields of a real API server, kind by kind."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest
from tests.apiserver.clusters.test_signing import csr

from .conftest import Rules

_LABELS = {"app": "web"}
_POD = {"containers": [{"name": "web", "image": "nginx"}]}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": _POD}


def _object(kind: str, api_version: str = "v1", **rest: Any) -> dict[str, Any]:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "default"}, **rest}
    return copy.deepcopy(obj)


def _workload(kind: str, **spec: Any) -> dict[str, Any]:
    return _object(kind, "apps/v1", spec={"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE, **spec})


def _pod(**spec: Any) -> dict[str, Any]:
    return _object("Pod", spec={**_POD, **spec})


def test_a_deployment_gets_the_defaults_of_a_real_cluster(rules: Rules) -> None:
    spec = rules.create(_workload("Deployment"))["spec"]
    assert spec["replicas"] == 1
    assert spec["revisionHistoryLimit"] == 10
    assert spec["progressDeadlineSeconds"] == 600
    rolling = {"maxUnavailable": "25%", "maxSurge": "25%"}
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}
    assert spec["template"]["spec"] == {
        "containers": [
            {
                "name": "web",
                "image": "nginx",
                "imagePullPolicy": "Always",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }


def test_preparing_twice_changes_nothing(rules: Rules) -> None:
    for obj in (_workload("Deployment"), _workload("StatefulSet"), _workload("DaemonSet"), _pod()):
        once = rules.create(obj)
        again = copy.deepcopy(once)
        assert rules.update(again, once) == []
        assert again == once


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(rules: Rules, image: str, policy: str) -> None:
    pod = rules.create(_pod(containers=[{"name": "c", "image": image}]))
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_a_selector_has_to_match_and_may_never_change(rules: Rules) -> None:
    wrong = _workload("Deployment", selector={"matchLabels": {"app": "other"}})
    assert rules.problems(wrong) == [
        'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'
    ]
    empty = _workload("DaemonSet", selector={})
    assert rules.problems(empty) == ["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"]
    old = rules.create(_workload("ReplicaSet"))
    new = copy.deepcopy(old)
    new["spec"]["selector"]["matchLabels"]["more"] = "x"
    new["spec"]["template"]["metadata"]["labels"] = {**_LABELS, "more": "x"}
    assert rules.update(new, old) == [
        'spec.selector: Invalid value: {"matchLabels":{"app":"web","more":"x"}}: field is immutable'
    ]


def test_the_claims_of_a_stateful_set_are_volumes_of_its_pods(rules: Rules) -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    made = _workload("StatefulSet", serviceName="a", volumeClaimTemplates=[claim])
    pod = made["spec"]["template"]["spec"]
    pod["containers"][0]["volumeMounts"] = [{"name": name, "mountPath": f"/{name}"} for name in ("data", "other")]
    where = "spec.template.spec.containers[0].volumeMounts"
    assert rules.problems(copy.deepcopy(made)) == [f'{where}[1].name: Not found: "other"']
    pod["activeDeadlineSeconds"] = 5
    word = "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not Supported"
    assert word in rules.problems(made)


def test_a_stateful_set_changes_only_what_it_may(rules: Rules) -> None:
    old = rules.create(_workload("StatefulSet", serviceName="a"))
    new = copy.deepcopy(old)
    new["spec"]["replicas"] = 3
    assert rules.update(new, old) == []
    new["spec"]["serviceName"] = "b"
    (problem,) = rules.update(new, old)
    assert problem.startswith("spec: Forbidden: updates to statefulset spec for fields other than 'replicas'")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{"name": "c"}]}, "spec.containers[0].image: Required value"),
        (
            {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]},
            'spec.containers[1].name: Duplicate value: "c"',
        ),
        (
            {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 70000}]}]},
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            {"containers": [{"name": "c", "image": "i", "imagePullPolicy": "Sometimes"}]},
            'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", '
            '"IfNotPresent", "Never"',
        ),
        (
            {
                "containers": [
                    {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": 2}}}
                ]
            },
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            {"containers": [{"name": "c", "image": "i", "livenessProbe": {}}]},
            "spec.containers[0].livenessProbe: Required value: must specify a handler type",
        ),
    ],
)
def test_a_broken_pod_is_refused_by_field(rules: Rules, spec: dict[str, Any], problem: str) -> None:
    assert rules.problems(_object("Pod", spec=spec)) == [problem]


def test_a_pod_changes_its_image_and_nothing_else(rules: Rules) -> None:
    old = rules.create(_pod())
    new = copy.deepcopy(old)
    new["spec"]["containers"][0]["image"] = "nginx:2"
    assert rules.update(new, old) == []
    new["spec"]["nodeName"] = "elsewhere"
    (problem,) = rules.update(new, old)
    assert problem.startswith(
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"
    )
    assert rules.update(new, old, "binding") == []


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_a_new_pod_waits_with_its_quality_of_service(rules: Rules, resources: dict[str, Any], quality: str) -> None:
    pod = rules.create(_pod(containers=[{"name": "c", "image": "i", "resources": resources}]))
    assert pod["status"] == {"phase": "Pending", "qosClass": quality}


def test_quantities_take_their_canonical_form(rules: Rules) -> None:
    limits = {"cpu": 0.5, "memory": "1024Mi"}
    pod = rules.create(_pod(containers=[{"name": "c", "image": "i", "resources": {"limits": limits}}]))
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "500m", "memory": "1Gi"}


def test_a_job_selects_its_own_pods_by_its_uid(rules: Rules) -> None:
    job = rules.create(_object("Job", "batch/v1", spec={"template": {"spec": {**_POD, "restartPolicy": "Never"}}}))
    uid = job["metadata"]["uid"]
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert job["spec"]["template"]["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "x",
        "controller-uid": uid,
        "job-name": "x",
    }
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"]["backoffLimit"]) == (1, 1, 6)


def test_a_job_may_not_restart_its_pods_for_ever(rules: Rules) -> None:
    job = _object("Job", "batch/v1", spec={"template": {"spec": _POD}})
    assert rules.problems(job) == [
        'spec.template.spec.restartPolicy: Unsupported value: "Always": supported values: "Never", "OnFailure"'
    ]


@pytest.mark.parametrize("schedule", ["* * * * *", "*/5 0-6 1,15 jan mon-fri", "@hourly", "@every 5m"])
def test_a_sane_schedule_is_taken(rules: Rules, schedule: str) -> None:
    template = {"spec": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}}
    made = rules.create(_object("CronJob", "batch/v1", spec={"schedule": schedule, "jobTemplate": template}))
    assert made["spec"]["schedule"] == schedule


@pytest.mark.parametrize("schedule", ["* * * *", "61 * * * *", "* * 0 * *", "a * * * *", "*/0 * * * *", "5-1 * * * *"])
def test_a_broken_schedule_is_refused(rules: Rules, schedule: str) -> None:
    template = {"spec": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}}
    (problem,) = rules.problems(_object("CronJob", "batch/v1", spec={"schedule": schedule, "jobTemplate": template}))
    assert problem.startswith(f'spec.schedule: Invalid value: "{schedule}": ')


def test_plain_strings_of_a_secret_become_data(rules: Rules) -> None:
    secret = rules.create(_object("Secret", stringData={"a": "new"}, data={"a": "b2xk", "b": "b2xk"}))
    assert "stringData" not in secret
    assert {key: base64.b64decode(value) for key, value in secret["data"].items()} == {"a": b"new", "b": b"old"}
    assert secret["type"] == "Opaque"


@pytest.mark.parametrize(
    ("kind", "data", "problems"),
    [
        ("kubernetes.io/tls", {}, ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
        ("kubernetes.io/tls", {"tls.crt": "", "tls.key": ""}, []),
        ("kubernetes.io/ssh-auth", {}, ["data[ssh-privatekey]: Required value"]),
        ("kubernetes.io/basic-auth", {"username": "YQ=="}, []),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": "e30="}, []),
        ("kubernetes.io/dockerconfigjson", {}, ["data[.dockerconfigjson]: Required value"]),
        (
            "kubernetes.io/service-account-token",
            {},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
        ("example.com/anything", {}, []),
    ],
)
def test_a_typed_secret_has_the_keys_of_its_type(
    rules: Rules, kind: str, data: dict[str, str], problems: list[str]
) -> None:
    assert rules.problems(_object("Secret", type=kind, data=data)) == problems


def test_immutable_content_cannot_change(rules: Rules) -> None:
    sentence = "Forbidden: field is immutable when `immutable` is set"
    for kind, value in (("Secret", "YQ=="), ("ConfigMap", "a")):
        old = rules.create(_object(kind, data={"a": value}, immutable=True))
        new = copy.deepcopy(old)
        new["metadata"]["labels"] = {"a": "b"}
        assert rules.update(new, old) == []
        new["data"] = {"b": value}
        del new["immutable"]
        assert rules.update(new, old) == [f"immutable: {sentence}", f"data: {sentence}"]


def test_the_type_of_a_secret_never_changes(rules: Rules) -> None:
    old = rules.create(_object("Secret"))
    new = {**copy.deepcopy(old), "type": "example.com/other"}
    assert rules.update(new, old) == ['type: Invalid value: "example.com/other": field is immutable']


def test_too_much_data_is_refused(rules: Rules) -> None:
    size = 1024 * 1024 + 1
    assert rules.problems(_object("ConfigMap", data={"a": "x" * size})) == [
        ": Too long: may not be more than 1048576 bytes"
    ]
    secret = _object("Secret", data={"a": base64.b64encode(b"x" * size).decode()})
    assert rules.problems(secret) == ["data: Too long: may not be more than 1048576 bytes"]


def test_a_namespace_carries_its_name_and_its_finalizer(rules: Rules) -> None:
    namespace = rules.create(_object("Namespace"))
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert namespace["status"] == {"phase": "Active"}
    changed = copy.deepcopy(namespace)
    changed["spec"] = {}
    assert rules.update(changed, namespace) == []
    assert changed["spec"] == {"finalizers": ["kubernetes"]}
    finalized = {**copy.deepcopy(namespace), "spec": {"finalizers": []}}
    assert rules.update(finalized, namespace, "finalize") == []
    assert not finalized["spec"].get("finalizers")


def _service(**spec: Any) -> dict[str, Any]:
    return _object("Service", spec={"ports": [{"port": 80}], **spec})


def test_a_service_gets_the_same_address_each_time_it_is_made(rules: Rules) -> None:
    first, second = (rules.create(_service(selector=_LABELS))["spec"] for _ in range(2))
    assert first == second
    assert first["clusterIP"].startswith("10.")
    assert first["clusterIPs"] == [first["clusterIP"]]
    assert first["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert (first["type"], first["sessionAffinity"], first["internalTrafficPolicy"]) == ("ClusterIP", "None", "Cluster")
    assert (first["ipFamilies"], first["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


def test_the_address_of_a_service_survives_an_update_that_leaves_it_out_and_none_that_changes_it(rules: Rules) -> None:
    old = rules.create(_service())
    new = _service(selector=_LABELS)
    assert rules.update(new, old) == []
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    other = _service(clusterIP="10.96.1.1")
    assert rules.update(other, old) == ['spec.clusterIPs[0]: Invalid value: ["10.96.1.1"]: may not change once set']


def test_node_ports_are_given_once_and_kept(rules: Rules) -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    old = rules.create(_service(type="NodePort", ports=ports))
    given = [port["nodePort"] for port in old["spec"]["ports"]]
    assert len(set(given)) == 2
    assert all(30000 <= port <= 32767 for port in given)
    new = _service(type="NodePort", ports=list(reversed(ports)))
    assert rules.update(new, old) == []
    assert [port["nodePort"] for port in new["spec"]["ports"]] == given[::-1]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"ports": []}, "spec.ports: Required value"),
        ({"ports": [{"port": 1}, {"port": 2}]}, "spec.ports[0].name: Required value"),
        ({"ports": [{"port": 0}]}, "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"),
        ({"type": "ExternalName"}, "spec.externalName: Required value"),
        (
            {"ports": [{"port": 1, "nodePort": 30001}]},
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            {"sessionAffinity": "Me"},
            'spec.sessionAffinity: Unsupported value: "Me": supported values: "ClientIP", "None"',
        ),
    ],
)  # fmt: skip
def test_a_broken_service_is_refused_by_field(rules: Rules, spec: dict[str, Any], problem: str) -> None:
    assert problem in rules.problems(_service(**spec))


def _binding(**rest: Any) -> dict[str, Any]:
    return _object("RoleBinding", "rbac.authorization.k8s.io/v1", roleRef={"kind": "Role", "name": "r"}, **rest)


def test_a_binding_fills_in_groups_and_keeps_its_role(rules: Rules) -> None:
    subjects = [{"kind": "User", "name": "a"}, {"kind": "ServiceAccount", "name": "b", "namespace": "c"}]
    old = rules.create(_binding(subjects=subjects))
    assert old["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    assert [subject.get("apiGroup") for subject in old["subjects"]] == ["rbac.authorization.k8s.io", None]
    new = copy.deepcopy(old)
    new["roleRef"]["name"] = "other"
    (problem,) = rules.update(new, old)
    assert problem.startswith("roleRef: Invalid value: {")
    assert problem.endswith(": cannot change roleRef")


@pytest.mark.parametrize(
    ("kind", "rule", "problem"),
    [
        (
            "Role",
            {"verbs": ["get"], "nonResourceURLs": ["/healthz"]},
            'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: namespaced rules cannot apply to non-resource URLs',
        ),
        (
            "ClusterRole",
            {"verbs": ["get"], "resources": ["pods"]},
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        ),
        (
            "ClusterRole",
            {"verbs": [], "resources": ["pods"], "apiGroups": [""]},
            "rules[0].verbs: Required value: verbs must contain at least one value",
        ),
    ],
)
def test_a_senseless_rule_is_refused(rules: Rules, kind: str, rule: dict[str, Any], problem: str) -> None:
    assert rules.problems(_object(kind, "rbac.authorization.k8s.io/v1", rules=[rule])) == [problem]


def test_a_signing_request_carries_its_senders_identity(rules: Rules) -> None:
    pem = base64.b64encode(csr()).decode()
    spec = {"request": pem, "signerName": "a.b/c", "usages": ["client auth"], "username": "admin", "groups": ["x"]}
    request = rules.create(_object("CertificateSigningRequest", "certificates.k8s.io/v1", spec=spec))
    assert request["spec"]["username"] == "tester"
    assert request["spec"]["groups"] == ["system:authenticated"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ({"path": "/"}, "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"),
        (
            {"path": "x", "pathType": "Prefix"},
            'spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path',
        ),
    ],
)
def test_a_broken_ingress_is_refused_by_field(rules: Rules, path: dict[str, Any], problem: str) -> None:
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    spec = {"rules": [{"http": {"paths": [{**path, "backend": backend}]}}]}
    assert problem in rules.problems(_object("Ingress", "networking.k8s.io/v1", spec=spec))


def test_a_network_policy_says_which_directions_it_governs(rules: Rules) -> None:
    for spec, types in (({}, ["Ingress"]), ({"egress": [{}]}, ["Ingress", "Egress"])):
        policy = _object("NetworkPolicy", "networking.k8s.io/v1", spec={"podSelector": {}, **spec})
        assert rules.create(policy)["spec"]["policyTypes"] == types


def test_a_claim_keeps_its_spec(rules: Rules) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    old = rules.create(_object("PersistentVolumeClaim", spec=spec))
    assert old["status"] == {"phase": "Pending"}
    new = copy.deepcopy(old)
    new["spec"]["accessModes"] = ["ReadWriteMany"]
    (problem,) = rules.update(new, old)
    assert problem.startswith("spec: Forbidden: spec is immutable after creation")


def test_a_custom_resource_definition_implies_its_names(rules: Rules) -> None:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [version],
    }
    definition = _object("CustomResourceDefinition", "apiextensions.k8s.io/v1", spec=spec)
    definition["metadata"]["name"] = "widgets.example.com"
    created = rules.create(copy.deepcopy(definition))
    assert created["spec"]["names"]["singular"] == "widget"
    assert created["spec"]["names"]["listKind"] == "WidgetList"
    assert created["spec"]["conversion"] == {"strategy": "None"}
    definition["metadata"]["name"] = "gadgets.example.com"
    assert rules.problems(definition) == [
        'metadata.name: Invalid value: "gadgets.example.com": must be spec.names.plural+"."+spec.group'
    ]


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        (
            _object("Lease", "coordination.k8s.io/v1", spec={"leaseDurationSeconds": 0}),
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            _object("PodDisruptionBudget", "policy/v1", spec={"minAvailable": "half"}),
            "spec.minAvailable: Invalid value: \"half\": a valid percent string must be a numeric string followed by "
            "an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
        ),
        (
            _object("HorizontalPodAutoscaler", "autoscaling/v2",
                    spec={"maxReplicas": 1, "minReplicas": 2,
                          "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}),
            "spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`",
        ),
        (
            _object("Event", involvedObject={"kind": "Pod", "namespace": "elsewhere"}),
            'involvedObject.namespace: Invalid value: "elsewhere": does not match event.namespace',
        ),
        (
            _object("StorageClass", "storage.k8s.io/v1"),
            "provisioner: Required value",
        ),
        (
            _object("ConfigMap", data={"a/b": "x"}),
            "data[a/b]: Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', '_' "
            "or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        ),
    ],
)  # fmt: skip
def test_invalid_objects_get_the_words_of_kube_apiserver(rules: Rules, obj: dict[str, Any], problem: str) -> None:
    assert rules.problems(copy.deepcopy(obj)) == [problem]
