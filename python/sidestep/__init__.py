"""Sidestep: a laboratory of virtual-machine monitors.

- `experiments`: figures and tables of papers as experiments; `experiments["itanium.ipc"].compare()`.
- `sweep`: any experiment over a grid, on a Dask cluster, into a Parquet data set that a later sweep goes on with.
- `results`: every finished point as one table, asked in SQL.
- `Program`, `Machine`, `Host`: Linux/ia64 programs, machines, and hosts with virtual machines.
- `OwnExperiment`, `Policy`, `Service`, `CostTable`: experiments, scheduling policies, services of sidecores and cost
  tables of one's own.
"""

from ._native import VERSION as __version__
from .errors import Error, UnknownExperiment
from .machines import Host, Machine, Stopped
from .own import Input, OwnExperiment, Policy, Served, Service, Side, Task
from .programs import Debugged, Program, Run, Stop
from .results import Results, results
from .settings import CostTable
from .studies import Comparison, Experiment, experiments
from .sweeps import Sweep, sweep

__all__ = [
    "Comparison",
    "CostTable",
    "Debugged",
    "Error",
    "Experiment",
    "Host",
    "Input",
    "Machine",
    "OwnExperiment",
    "Policy",
    "Program",
    "Results",
    "Run",
    "Served",
    "Service",
    "Side",
    "Stop",
    "Stopped",
    "Sweep",
    "Task",
    "UnknownExperiment",
    "__version__",
    "experiments",
    "results",
    "sweep",
]
