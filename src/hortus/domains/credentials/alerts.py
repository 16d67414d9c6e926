"""When kubeconfigs are in danger; runbooks are generated from here."""

from __future__ import annotations

from hortus.engine.observing import Alert, Example

_MINUTE = 60.0
_EXPIRATION = "infrastructure_manager_im_kubeconfig_expiration"
_STATE = "infrastructure_manager_im_gardener_clusters_state"

EXPIRING = Alert(
    name="HortusKubeconfigExpires",
    expression=f"{_EXPIRATION} - time() < 2 * 3600",
    wait=5 * _MINUTE,
    severity="critical",
    summary="The kubeconfig of {{ $labels.shootName }} ends in {{ $value | humanizeDuration }}",
    meaning="A kubeconfig should have been replaced hours ago and was not. When it ends, whoever uses the Secret is "
    "locked out of the cluster.",
    causes=(
        "The garden does not hand out kubeconfigs: it is away, refuses our credential, or the shoot is broken.",
        "The new kubeconfig does not work, so that the old one is kept (law of the house: proven before replaced).",
        "Hortus is not running.",
    ),
    steps=(
        "Whose turn is it? `hortus get clusters`, then `hortus tree <name>`: the condition says what failed and who "
        "must act.",
        "Ask for a new one now: `hortus rotate <name>`.",
        "Many at once: see HortusCallsFail and HortusNotAuthorized first.",
    ),
    examples=(
        Example(((f'{_EXPIRATION}{{runtimeId="r",shootName="s"}}', "9000x60"),), 45 * _MINUTE, True),
        Example(((f'{_EXPIRATION}{{runtimeId="r",shootName="s"}}', "86400x60"),), 45 * _MINUTE, False),
    ),
)

FAILING = Alert(
    name="HortusGardenerClustersFail",
    expression=f'count by (reason) ({_STATE}{{state="Error"}}) > 0',
    wait=15 * _MINUTE,
    severity="warning",
    summary="{{ $value }} GardenerCluster(s) in error: {{ $labels.reason }}",
    meaning="Their kubeconfigs are not kept: missing, or not renewed. Others are not affected.",
    causes=(
        "FailedToGetKubeconfig: there is no such shoot, it is not up, or its kubeconfig does not work.",
        "FailedToCheckSecret or ConditionReasonFailedToCreateSecret: the Secret that it names is somebody else's.",
    ),
    steps=(
        "Which? `hortus get clusters -o custom-columns=NAME:.metadata.name,STATE:.status.state,WHY:"
        ".status.conditions[0].message`.",
        "The message names in brackets who must act: cluster owner, operator, garden operator, or nobody.",
    ),
    examples=(
        Example(((f'{_STATE}{{runtimeId="r",state="Error",reason="x"}}', "1x60"),), 20 * _MINUTE, True),
        Example(((f'{_STATE}{{runtimeId="r",state="Ready",reason="x"}}', "1x60"),), 20 * _MINUTE, False),
    ),
)

MANY_FAILING = Alert(
    name="HortusManyGardenerClustersFail",
    expression=f'count({_STATE}{{state="Error"}}) / count({_STATE}) > 0.05',
    wait=10 * _MINUTE,
    severity="critical",
    summary="{{ $value | humanizePercentage }} of all GardenerClusters are in error",
    meaning="So many fail at once only when something fails that they share.",
    causes=("The garden, or our credential for it.", "The network to the clusters.", "A change of configuration."),
    steps=(
        "See HortusCallsFail and HortusNotAuthorized: one of them names the server.",
        "See which reason they have: `count by (reason) (" + _STATE + '{state="Error"})`.',
        "If it began with a change of ours, undo it.",
    ),
    examples=(
        Example(
            (
                (f'{_STATE}{{runtimeId="a",state="Error"}}', "1x60"),
                (f'{_STATE}{{runtimeId="b",state="Ready"}}', "1x60"),
            ),
            15 * _MINUTE,
            True,
        ),
        Example(((f'{_STATE}{{runtimeId="b",state="Ready"}}', "1x60"),), 15 * _MINUTE, False),
    ),
)

ALERTS = (EXPIRING, FAILING, MANY_FAILING)
