"""Prints as JSON the peak memory of one perform_assignment in addition to its input, and the bytes of input and output.

`python peak.py CASE`. It needs Linux, because it resets the peak through /proc.
"""

import ctypes
import json
import re
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import groups

from kafka_assignors import RecordSizeWarning, _core


def status(field: str) -> int:
    """A figure of /proc/self/status, in bytes."""
    match = re.search(rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert match, f"{field} is not in /proc/self/status"
    return int(match[1]) * 1024


def main() -> None:
    warnings.simplefilter("ignore", RecordSizeWarning)
    case = groups.cases()[sys.argv[1]]
    members = case.members()
    options = ("sticky", "fair-yet-sticky", "before-stickiness")
    # Give free memory back to the system. Otherwise new allocations would use it, and the peak would not show them.
    ctypes.CDLL(None).malloc_trim(0)
    # Writing 5 resets the peak to the present resident size.
    Path("/proc/self/clear_refs").write_text("5")
    resident = status("VmRSS")
    assignments, _ = _core.perform_assignment(*options, members, case.topics, None)
    peak = status("VmHWM") - resident
    sizes = {"input": sum(len(data) for _, data in members), "output": sum(map(len, assignments.values()))}
    print(json.dumps({"peak": peak, **sizes}))


main()
