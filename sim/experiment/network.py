# SPDX-License-Identifier: Apache-2.0
"""Networks besides those of scenarios: described as in a configuration, built and solved in a worker."""

from dataclasses import asdict

from pydantic import BaseModel, ConfigDict

from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.cputime import CpuTime
from flitlab.models.instance import Instance
from flitlab.models.mappings import JsonObject, Keys
from flitlab.models.registry import SpecError, make, spec_class
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic
from flitlab.sim.config.case import Case
from flitlab.sim.config.components import SOURCE_KEYS
from flitlab.sim.experiment.task import Outcome, failure

Network = dict[str, Keys]
"""The mappings under ``topology`` and ``traffic``, and under ``routing`` if needed."""


class StoredInterval(BaseModel):
    """The keys of the result of a network in the files of a run."""

    model_config = ConfigDict(extra="forbid", strict=True)

    lower: float | None
    upper: float | None
    method: str
    seconds: float
    note: str


class StoredReach(StoredInterval):
    """An interval, and whether a throughput is reached."""

    reached: bool


def network_of(case: Case) -> Network:
    """The network of a scenario, with all defaults, without arrivals of packets."""
    traffic = {key: value for key, value in case.resolved["traffic"].items() if key not in SOURCE_KEYS}
    return {"topology": case.resolved["topology"], "traffic": traffic}


def is_drawn(network: Network) -> bool:
    """Whether a network depends on a seed."""
    return network != redrawn(network, 1)


def redrawn(network: Network, draw: int) -> Network:
    """A network with ``draw`` added to every seed: of topology, slow links, failures and traffic."""
    redrawn_network = {category: dict(parameters) for category, parameters in network.items()}
    for category, parameters in redrawn_network.items():
        field = spec_class(category, parameters["kind"]).model_fields.get("seed")
        if field is not None:
            parameters["seed"] = parameters.get("seed", field.get_default()) + draw
    for key in ("capacity_of", "failures"):
        if drawn := redrawn_network["topology"].get(key):
            redrawn_network["topology"][key] = {**drawn, "seed": drawn.get("seed", 1) + draw}
    return redrawn_network


def build(network: Network) -> tuple[Topology, Traffic]:
    """Topology and traffic of a network. Raises :class:`~flitlab.models.registry.SpecError` if it cannot be built."""
    topology = make("topology", **network["topology"]).build()
    return topology, make("traffic", **network["traffic"]).build(topology)


def theta_of(network: Network, spec: CeilingSpec) -> Outcome:
    """A ceiling of a network; the result is a dict with its interval."""
    from flitlab.fluid.ceilings import ceilings
    from flitlab.fluid.weights import routes_for

    try:
        topology, traffic = build(network)
        routes = None
        if routing := network.get("routing"):
            routes = routes_for(make("routing", **routing), topology, traffic)
        bound = ceilings(Instance(topology, traffic, routes), [spec])[0]
        if bound.method == "omitted":
            return Outcome(problem=bound.note)
        return Outcome({name: getattr(bound, name) for name in ("lower", "upper", "method", "seconds", "note")})
    except SpecError as error:
        return Outcome(problem=str(error))
    except BaseException as error:
        return failure(error)


def reaches_theta(network: Network, theta: float, tolerance: float) -> Outcome:
    """Whether a network reaches a throughput; the result is a dict. An invalid network does not.

    Parameters
    ----------
    network: the mappings of its components.
    theta: load.
    tolerance: relative, on theta.
    """
    from flitlab.fluid.concurrent import reaches

    spent = CpuTime()
    try:
        topology, traffic = build(network)
        result: JsonObject = asdict(reaches(topology, traffic, theta, tolerance))
        return Outcome({**result, "seconds": spent.seconds, "note": ""})
    except SpecError as error:
        ends = {"reached": False, "lower": None, "upper": None, "method": "not built"}
        return Outcome({**ends, "seconds": spent.seconds, "note": str(error)})
    except BaseException as error:
        return failure(error)
