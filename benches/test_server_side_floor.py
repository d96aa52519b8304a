"""The broker's `uniform` assignor against the codec floor of the same bytes. No member leads with this assignor."""

import groups
import pytest
from floors import codec_floor
from ratios import Interleaved, Ratio, check_bounds

from kafka_assignors import UniformAssignor, _core

CASES = [f"500 x 2,000, 2,000 members: {event}" for event in ("fresh", "one leaves", "one joins")]
QUICK = CASES[1]

check_bounds("server-side-floor", CASES)

# Groups of this size raise a warning, since they need a configured broker. These benchmarks use no broker.
pytestmark = pytest.mark.filterwarnings("ignore::kafka_assignors.RecordSizeWarning")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.quick) if n == QUICK else n for n in CASES])
def test_uniform(name: str, interleaved: Interleaved, ratio: Ratio) -> None:
    case, members = groups.cases()[name], groups.joined(name)
    options = UniformAssignor()._options()

    def ours() -> object:
        return _core.perform_assignment(*options, members, case.topics, None)

    def floor() -> object:
        return codec_floor(*options, members, case.topics)

    _, plan = _core.perform_assignment(*options, members, case.topics, None)
    kept, moved = plan.kept_and_moved()
    seconds, floor_seconds = interleaved(ours, floor, groups.rounds(case.topics))
    ratio.at_most("server-side-floor", name, seconds, floor_seconds, f"kept {kept:,}, moved {moved:,}")
