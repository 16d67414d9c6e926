"""When the canary says that clusters cannot be had; runbooks are generated from here."""

from __future__ import annotations

from hortus.engine.observing import Alert, Example

_MINUTE = 60.0

FAILING = Alert(
    name="HortusCanaryFailing",
    # One failure may be the cloud's mood; two in a row are not.
    expression="max(hortus_canary_consecutive_failures) >= 2",
    wait=0.0,
    severity="critical",
    summary="{{ $value }} runs of the canary have failed in a row",
    meaning="A small cluster could not be grown, used and deleted as a user would do it: most likely users cannot "
    "either.",
    causes=(
        "Quota, credentials or capacity of the canary's own account.",
        "The garden, or the seed of that region, does not finish its operations.",
        "Kubeconfigs are not issued or do not work.",
        "Something of an earlier run does not go away: then no further cluster is grown.",
    ),
    steps=(
        "Which phase, and why: `hortus canary`.",
        "Grow or Delete: `hortus why <run>` while it is under way, and the Shoot's lastErrors.",
        "Use or Tidy: the GardenerCluster of that name, and `hortus kubeconfig <run>`.",
        "Sweep or Verify: it names what is left; remove what holds it.",
        "Try again at once: `hortus canary --now`.",
    ),
    examples=(
        Example((("hortus_canary_consecutive_failures", "0x5 1x5 2x20"),), 15 * _MINUTE, True),
        Example((("hortus_canary_consecutive_failures", "0x5 1x30"),), 15 * _MINUTE, False),
    ),
)

NOT_RUN = Alert(
    name="HortusCanaryNotRun",
    expression="time() - max(hortus_canary_last_run_timestamp_seconds) > 3 * max(hortus_canary_period_seconds)",
    wait=5 * _MINUTE,
    severity="warning",
    summary="No run of the canary has ended for three periods",
    meaning="The canary says nothing any more, so it cannot warn either.",
    causes=(
        "A run is held up in one phase, within its deadline: these add up to more than three periods.",
        "No replica of Hortus works: see HortusNobodyWorks and the logs.",
        "The account may not write the ConfigMap hortus-canary.",
    ),
    steps=(
        "Which phase: `hortus canary`.",
        "Does somebody work: `kubectl -n hortus-system get leases`, "
        "`kubectl -n hortus-system logs deployment/hortus | grep canary-controller`.",
        "The deadlines are the flags --canary-grow-timeout, --canary-use-timeout and --canary-delete-timeout.",
    ),
    examples=(
        Example(
            (("hortus_canary_last_run_timestamp_seconds", "0x300"), ("hortus_canary_period_seconds", "3600x300")),
            200 * _MINUTE,
            True,
        ),
        Example(
            (("hortus_canary_last_run_timestamp_seconds", "0x300"), ("hortus_canary_period_seconds", "3600x300")),
            150 * _MINUTE,
            False,
        ),
    ),
)

LEFTOVERS = Alert(
    name="HortusCanaryLeftovers",
    expression="max(hortus_canary_leftovers) > 0",
    wait=60 * _MINUTE,
    severity="warning",
    summary="{{ $value }} objects of the canary could not be removed",
    meaning="A deletion left something behind, which costs money; deletions of users may do the same.",
    causes=(
        "The infrastructure does not let go: see the Shoot's lastErrors.",
        "The Runtime was deleted by force, or the garden's answer was wrong.",
    ),
    steps=(
        "What: `hortus canary` names the objects.",
        "A Runtime: `hortus why <run>`; when the infrastructure blocks it, `hortus retire <run> --force`.",
        "A Shoot without a Runtime: nobody deletes it by itself; look at it in the garden and delete it there.",
    ),
    examples=(
        Example((("hortus_canary_leftovers", "0x5 2x120"),), 90 * _MINUTE, True),
        Example((("hortus_canary_leftovers", "2x30 0x90"),), 90 * _MINUTE, False),
    ),
)

ALERTS = (FAILING, NOT_RUN, LEFTOVERS)
