"""`hortus simulate`: loads, churn and faults from the command line, with live progress and a report.

`commands` says what people type; `making` turns options into a scenario; `progress` and `printing` show. The work is
done by `hortus.simulation.load`. `rollout`, `trying` and `trialpage` are the same for a rollout on virtual time, which
`hortus.domains.rollouts.trial` runs.
"""
