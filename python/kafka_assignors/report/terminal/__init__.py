"""Tables and maps for terminals, of plain values; needs rich."""

from kafka_assignors.report.terminal.maps import count_map, in_ascii, ownership_map
from kafka_assignors.report.terminal.tables import WIDE, duration, number, table

__all__ = ["WIDE", "count_map", "duration", "in_ascii", "number", "ownership_map", "table"]
