"""A scenario file: phases of load, fleets with churn and faults, and the gates a run must pass.

Phases run one after the other; what stands in `parallel` runs side by side. Everything that happens follows from this
file and one seed: see `plan`. Durations are seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from hortus.kube import yaml
from hortus.simulation.load.faultkinds import Fault
from hortus.simulation.load.gates import Gate, GateError
from hortus.simulation.load.settings import Bounds, ScenarioError, Seconds, read

Count = Annotated[int, Bounds(1, 100_000)]
Rate = Annotated[float, Bounds(0, 10_000)]
Workers = Annotated[int, Bounds(1, 256)]


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Creates objects from a template, each of them a new one."""

    count: Count
    """The number of objects."""
    template: str = "gardenercluster"
    """A built-in template (`gardenercluster`, `runtime`, `configmap`) or a file, its path relative to
    the scenario's."""
    namespace: str = ""
    """The value of `${namespace}` in the template. Empty: the template's own default."""
    rate: Rate = 0.0
    """Objects a second; 0 is as fast as `concurrency` allows."""
    ramp: Seconds = 0.0
    """Time in which the rate grows from nothing to `rate`."""
    concurrency: Workers = 32
    """Creations in flight at once."""
    until: str = ""
    """When an object counts as ready: `condition=TYPE[=STATUS]`, `jsonpath=PATH=VALUE` or `exists`. Empty: as the
    template says."""
    timeout: Seconds = 300.0
    """The time to wait for all of them after the last creation."""


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """The frequency of each operation, relative to the others."""

    create: Rate = 1.0
    """A new cluster."""
    rotate: Rate = 4.0
    """A forced rotation of a cluster's kubeconfig."""
    fail: Rate = 2.0
    """A cluster's Secret is deleted or overwritten with rubbish, which the controllers have to notice and mend."""
    delete: Rate = 1.0
    """A cluster goes."""


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """Clusters that come, change, fail and go."""

    clusters: Count
    """The number of clusters at the start."""
    duration: Seconds = 60.0
    """The time that operations go on after the last of the first clusters was asked for."""
    churn: Rate = 1.0
    """Operations a second on average."""
    weights: Weights = Weights()
    """The frequencies of the operations."""
    template: str = "gardenercluster"
    """As in `load`. Clusters of another kind than GardenerCluster can only be created and deleted."""
    namespace: str = ""
    """As in `load`."""
    rate: Rate = 0.0
    """Clusters a second to begin with; 0 is as fast as `concurrency` allows."""
    concurrency: Workers = 32
    """Operations in flight at once."""
    until: str = ""
    """As in `load`."""
    timeout: Seconds = 300.0
    """The time to wait at the end until all clusters are ready."""


class ScheduledFaults(msgspec.Struct, frozen=True, kw_only=True):
    """Faults that strike during a time."""

    duration: Seconds
    """The duration; all faults are over at its end."""
    events: tuple[Fault, ...]
    """The faults; each of them strikes once or again and again."""


class Track(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that goes on: exactly one of these."""

    load: Load | None = None
    """Objects are created."""
    fleet: Fleet | None = None
    """Clusters come, change, fail and go."""
    faults: ScheduledFaults | None = None
    """Things go wrong."""
    rest: Annotated[Seconds | None, "seconds"] = None
    """Nothing happens for that long."""

    @property
    def kind(self) -> Literal["load", "fleet", "faults", "rest"]:
        """The kind of the track."""
        return "load" if self.load else "fleet" if self.fleet else "faults" if self.faults else "rest"


class ScenarioPhase(Track, frozen=True, kw_only=True):
    """One of these, or several at the same time."""

    parallel: tuple[Track, ...] = ()
    """The tracks that run side by side; the phase is over when the last of them is."""
    name: str = ""
    """The name of the phase in the report. Empty: its number."""
    gates: tuple[str, ...] = ()
    """The gates of this phase alone. The run ends with the first phase that breaks one of its gates."""

    @property
    def tracks(self) -> tuple[Track, ...]:
        """The tracks of this phase."""
        return self.parallel or (self,)

    @property
    def parsed_gates(self) -> tuple[Gate, ...]:
        """The gates of the phase, parsed; `parse` has made sure that they can be."""
        return tuple(Gate.parse(text) for text in self.gates)


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    phases: tuple[ScenarioPhase, ...]
    """The phases, in order."""
    name: str = "scenario"
    """The title of the report."""
    description: str = ""
    """For people."""
    seed: Annotated[int, Bounds(0, 2**53)] = 1
    """Decides everything that is left to chance."""
    project: str = "demo"
    """The Gardener project, where a template says `${project}`."""
    gates: tuple[str, ...] = ()
    """The gates of the whole run, such as `p99(time_to_ready) <= 30s`."""
    metrics: dict[str, str] = msgspec.field(default_factory=dict)
    """URLs of `/metrics` pages by the name of their process; those of `hortus up` are found by themselves."""

    @property
    def parsed_gates(self) -> tuple[Gate, ...]:
        """The gates, parsed; `parse` has made sure that they can be."""
        return tuple(Gate.parse(text) for text in self.gates)


def load_file(path: Path) -> Scenario:
    """The scenario in a YAML file. Raises ScenarioError."""
    try:
        document = yaml.load(path.read_bytes())
    except OSError as error:
        raise ScenarioError(f"scenario {path}: cannot be read: {error.strerror}") from None
    except yaml.YamlError as error:
        raise ScenarioError(f"scenario {path}: {error}") from None
    try:
        return parse({"name": path.stem, **document} if isinstance(document, dict) else document)
    except ScenarioError as error:
        raise ScenarioError(f"scenario {path}: {error}") from None


def parse(document: object) -> Scenario:
    """The scenario in a decoded document. Raises ScenarioError."""
    scenario = read(Scenario, document)
    if not scenario.phases:
        raise ScenarioError("phases: [] must have at least one phase")
    for number, phase in enumerate(scenario.phases):
        _check_phase(phase, f"phases[{number}]")
    _check_gates(scenario.gates, "gates")
    return scenario


def _check_gates(gates: tuple[str, ...], path: str) -> None:
    for number, text in enumerate(gates):
        try:
            Gate.parse(text)
        except GateError as error:
            raise ScenarioError(f"{path}[{number}]: {error}") from None


def _check_phase(phase: ScenarioPhase, path: str) -> None:
    _check_gates(phase.gates, f"{path}.gates")
    _check_one(phase, path, ("load", "fleet", "faults", "rest", "parallel"))
    for number, track in enumerate(phase.parallel):
        _check_one(track, f"{path}.parallel[{number}]", ("load", "fleet", "faults", "rest"))
    for number, track in enumerate(phase.tracks):
        where = f"{path}.parallel[{number}]" if phase.parallel else path
        if track.load and track.load.ramp and not track.load.rate:
            raise ScenarioError(f"{where}.load.ramp: {track.load.ramp:g} needs a rate to grow to; set load.rate")
        if track.faults:
            _check_faults(track.faults, f"{where}.faults")


def _check_one(track: Track, path: str, kinds: tuple[str, ...]) -> None:
    given = [kind for kind in kinds if getattr(track, kind) not in (None, ())]
    if len(given) != 1:
        shown = " and ".join(given) or "nothing"
        raise ScenarioError(f"{path}: {shown} given; exactly one is expected of: {', '.join(kinds)}")


def _check_faults(faults: ScheduledFaults, path: str) -> None:
    if not faults.events:
        raise ScenarioError(f"{path}.events: [] must have at least one fault")
    for number, event in enumerate(faults.events):
        if event.at >= faults.duration:
            raise ScenarioError(
                f"{path}.events[{number}].at: {event.at:g} must be less than the duration of {faults.duration:g} s"
            )
