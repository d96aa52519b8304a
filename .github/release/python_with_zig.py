#!/usr/bin/env python3
"""Python as maturin calls it to run zig, for the link of a Windows wheel: with the right list of exports.

The list that maturin 1.16 writes exports `PyInit_kafka_assignors._core`, which is no symbol: it takes the module's
whole name for the last part. So zig gets the list beside this file.
"""

import os
import sys

EXPORTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "windows_exports.def")

# -m ziglang and zig's own arguments.
arguments = [EXPORTS if it.endswith("kafka_assignors._core.def") else it for it in sys.argv[1:]]
os.execv(sys.executable, [sys.executable, *arguments])
