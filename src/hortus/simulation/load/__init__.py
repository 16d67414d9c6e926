"""Loads, fleets with churn and faults, laid upon a running system and measured: `hortus simulate`.

A `Scenario` (a YAML file, or made of a few options) and a seed become a `LoadPlan`: every operation and every fault
with its time, the same for the same seed. A `LoadRun` carries it out against a `System`, through its API alone, and
ends with a `RunReport`. Pure and without I/O are `scenario`, `plan`, `templates`, `gates`, `histogram`, `report`,
`page`; `running` puts the rest together. Nothing is polled but processes and metrics, once a second.
"""

from hortus.simulation.guard import NotMarked, remove_mark, require_mark, set_mark
from hortus.simulation.load.cleanup import LeftBehind, remove_load
from hortus.simulation.load.gates import Gate, GateError, Verdict
from hortus.simulation.load.page import html
from hortus.simulation.load.plan import LoadPlan, Operation, Strike, lines, plan_of
from hortus.simulation.load.report import RunReport
from hortus.simulation.load.running import LoadRun, RunProgress, System, new_load_id
from hortus.simulation.load.scenario import Scenario, load_file, parse
from hortus.simulation.load.settings import ScenarioError
from hortus.simulation.load.templates import LoadTemplate, load_template

__all__ = [
    "Gate",
    "GateError",
    "LeftBehind",
    "LoadPlan",
    "LoadRun",
    "LoadTemplate",
    "NotMarked",
    "Operation",
    "RunProgress",
    "RunReport",
    "Scenario",
    "ScenarioError",
    "Strike",
    "System",
    "Verdict",
    "html",
    "lines",
    "load_file",
    "load_template",
    "new_load_id",
    "parse",
    "plan_of",
    "remove_load",
    "remove_mark",
    "require_mark",
    "set_mark",
]
