"""The trackers of ChangeKinds."""

from __future__ import annotations

from tests.domains.rollouts.world import APPLIANCE_KIND, APPLIANCES

from hortus.domains.rollouts.kindset import KindSet
from hortus.engine import Cache
from hortus.engine.rollouts.types import CHANGE_KINDS
from hortus.kube.objects import Object, ObjectKey

PRESS: Object = {
    "apiVersion": APPLIANCES.api_version,
    "kind": "Appliance",
    "metadata": {"name": "c0", "namespace": "fleet", "resourceVersion": "1"},
    "spec": {"product": "press", "version": "1", "size": "A4"},
}


def _kind(uid: str, subject: str) -> Object:
    metadata = {"name": "appliance", "uid": uid, "generation": 1, "resourceVersion": uid}
    return {**APPLIANCE_KIND, "metadata": metadata, "spec": {**APPLIANCE_KIND["spec"], "subject": subject}}


def test_a_change_kind_that_was_made_again_during_a_gap_of_the_watch_is_compiled_again() -> None:
    appliances, kinds = Cache("appliances"), Cache(CHANGE_KINDS.plural)
    appliances.replace([PRESS], 1)
    trackers = KindSet(lambda spec, resource: appliances, lambda kind, subject: None)
    kinds.subscribe(trackers.on_change)
    kinds.replace([_kind("1", "self.spec.product")], 1)
    assert [key for key, _ in trackers.get("appliance").objects("press")] == [ObjectKey("fleet", "c0")]
    kinds.replace([_kind("2", "self.spec.size")], 2)
    assert list(trackers.get("appliance").subjects) == ["A4"]
