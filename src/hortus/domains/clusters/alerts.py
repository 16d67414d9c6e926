"""When Runtimes do not become what they should; runbooks are generated from here."""

from __future__ import annotations

from hortus.engine.observing import Alert, Example

_MINUTE = 60.0
_STATE = "infrastructure_manager_im_runtime_state"

FAILED = Alert(
    name="HortusRuntimeFailed",
    expression=f'max by (runtimeId, shootName, provider) ({_STATE}{{state="Failed"}}) == 1',
    wait=5 * _MINUTE,
    severity="warning",
    summary="Runtime {{ $labels.runtimeId }} ({{ $labels.shootName }}) has failed",
    meaning="The cluster was not created, changed or removed, and nothing is tried again by itself: a person has to "
    "change the Runtime or what it needs.",
    causes=(
        "The infrastructure refuses: a quota, a credential, no capacity.",
        "The spec asks for what cannot be: networks that overlap, a zone less, an unknown machine type.",
    ),
    steps=(
        "What failed: `kubectl -n kcp-system get runtime <name> -o jsonpath='{.status.conditions}'`; the message names "
        "the field, the value and what is allowed, or repeats the garden's error.",
        "Correct the spec; a change is taken up at once.",
        "The cause was outside and is gone? Have it tried again: `kubectl -n kcp-system annotate runtime <name> "
        "operator.kyma-project.io/force-patch-reconciliation=true`.",
    ),
    examples=(
        Example(((f'{_STATE}{{runtimeId="r",state="Failed",message="m"}}', "1x60"),), 10 * _MINUTE, True),
        Example(((f'{_STATE}{{runtimeId="r",state="Ready",message="m"}}', "1x60"),), 10 * _MINUTE, False),
    ),
)

SLOW = Alert(
    name="HortusRuntimePending",
    expression=f'max by (runtimeId, shootName, provider) ({_STATE}{{state="Pending"}}) == 1',
    # The broker gives up after 60 min (infrastructure-manager, section 7); provisioning takes 5 to 15.
    wait=40 * _MINUTE,
    severity="warning",
    summary="Runtime {{ $labels.runtimeId }} ({{ $labels.shootName }}) has been pending for 40 minutes",
    meaning="Creating or changing a cluster takes 5 to 15 minutes. After 60 the broker that asked for it gives up and "
    "deletes it.",
    causes=(
        "The garden retries an operation that fails: see the Shoot's lastErrors.",
        "The seed or the provider is slow or short of capacity.",
        "Its kubeconfig cannot be had or does not work.",
    ),
    steps=(
        "Where does it stand? `hortus tree <name>`, then the Shoot: `hortus get shoots <shoot> -o yaml`.",
        "lastErrors name a code: ask the account's owner (quota, credentials) or the garden's operators.",
        "The kubeconfig is missing: see the GardenerCluster of the same name.",
    ),
    examples=(
        Example(((f'{_STATE}{{runtimeId="r",state="Pending",message="a"}}', "1x90"),), 45 * _MINUTE, True),
        Example(
            (
                (f'{_STATE}{{runtimeId="r",state="Pending",message="a"}}', "1x10 _x60"),
                (f'{_STATE}{{runtimeId="r",state="Ready",message="b"}}', "_x10 1x60"),
            ),
            45 * _MINUTE,
            False,
        ),
    ),
)

LEAVING = Alert(
    name="HortusRuntimeTerminating",
    expression=f'max by (runtimeId, shootName, provider) ({_STATE}{{state="Terminating"}}) == 1',
    wait=60 * _MINUTE,
    severity="warning",
    summary="Runtime {{ $labels.runtimeId }} ({{ $labels.shootName }}) has been leaving for an hour",
    meaning="The garden does not get rid of the cluster: it still costs money.",
    causes=(
        "Something in the cluster holds on: a finalizer, a webhook, a load balancer that is not released.",
        "The credential of the infrastructure is no longer valid.",
    ),
    steps=(
        "See the Shoot's lastErrors: `hortus get shoots <shoot> -o yaml`.",
        "Remove what holds on in the cluster: `hortus kubeconfig <name>`, then `kubectl get` with its finalizers.",
        "The provider has nothing left of it? Deletion can be forced, see docs/clusters: this may leave things behind.",
    ),
    examples=(
        Example(((f'{_STATE}{{runtimeId="r",state="Terminating",message="a"}}', "1x90"),), 70 * _MINUTE, True),
        Example(((f'{_STATE}{{runtimeId="r",state="Terminating",message="a"}}', "1x20 _x70"),), 70 * _MINUTE, False),
    ),
)

STOPPED = Alert(
    name="HortusUnexpectedStop",
    expression="increase(unexpected_stops_total[30m]) > 0",
    wait=0.0,
    severity="info",
    summary="Work on a Runtime ended without a way forward",
    meaning="The contract knows states from which the controller does not go on by itself; one was reached.",
    causes=("A deletion that met an error it cannot judge.", "An object changed by hand in the garden."),
    steps=(
        "Which? `kubectl -n hortus-system logs deployment/hortus | grep runtime-controller | grep -i stop`.",
        "See its conditions; change the Runtime, or annotate it to have it tried again.",
    ),
    examples=(
        Example((("unexpected_stops_total", "0x10 1x20"),), 15 * _MINUTE, True),
        Example((("unexpected_stops_total", "2x60"),), 50 * _MINUTE, False),
    ),
)

ALERTS = (FAILED, SLOW, LEAVING, STOPPED)
