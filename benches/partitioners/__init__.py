"""The published results of the sticky partitioners (KIP-480, KIP-794), reproduced: `make bench-partitioners`.

- `accumulator` is a producer's accumulator as a discrete-event simulation, driven by the real partitioners;
  `simulated` runs the published cases in it.
- `live_…` runs them on real brokers, one module per client.
- `baselines` has the partitioners of the comparison, `report` makes the table, the files and the exit code.

A module of scenarios has a tuple `SCENARIOS`; see `report.Scenario`.
"""
