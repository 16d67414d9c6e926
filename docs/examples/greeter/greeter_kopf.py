"""The first example of the engine with kopf: `kopf run --all-namespaces greeter_kopf.py`."""

from datetime import datetime, timezone

import kopf
import kubernetes

GREETINGS = ("example.org", "v1", "greetings")
LABEL = "example.org/greeting"


@kopf.on.startup()
def connect(**_):
    kubernetes.config.load_config()


@kopf.index(*GREETINGS)
def greetings(namespace, name, body, **_):
    return {(namespace, name): body}


@kopf.on.resume(*GREETINGS)
@kopf.on.create(*GREETINGS)
@kopf.on.update(*GREETINGS, field="spec")
def provide(body, spec, status, patch, **_):
    if not spec.get("text"):
        message = "spec.text is empty: give it a text"
        patch.status["conditions"] = conditions(status, Stalled=("True", "NoText", message), Ready=("False", "NoText", message))
        raise kopf.PermanentError(message)
    apply(body)
    patch.status["conditions"] = conditions(status, Ready=("True", "Greeted", ""))


@kopf.on.event("configmaps", labels={LABEL: kopf.PRESENT})
def restore(type, namespace, name, body, greetings, **_):
    for owner in greetings.get((namespace, name), []):
        text = owner["spec"].get("text")
        if text and (type == "DELETED" or body.get("data") != {"text": text}):
            apply(owner)


def apply(owner):
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": owner["spec"]["text"]}}
    kopf.harmonize_naming(config_map, forced=True, name=owner["metadata"]["name"])
    kopf.adopt(config_map, owner=owner)
    kopf.label(config_map, {LABEL: owner["metadata"]["name"]})
    kubernetes.client.CoreV1Api().patch_namespaced_config_map(
        owner["metadata"]["name"],
        owner["metadata"]["namespace"],
        config_map,
        field_manager="greeter",
        force=True,
        _content_type="application/apply-patch+yaml",
    )


def conditions(status, **wanted):
    before = {each["type"]: each for each in status.get("conditions", [])}
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = []
    for kind, (value, reason, message) in wanted.items():
        old = before.get(kind, {})
        changed = now if old.get("status") != value else old["lastTransitionTime"]
        found.append({"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": changed})
    return found
