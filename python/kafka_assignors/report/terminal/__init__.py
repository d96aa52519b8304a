"""Tables and maps for terminals, of plain values; needs rich."""

from kafka_assignors.report.terminal.maps import count_map, ownership_map
from kafka_assignors.report.terminal.tables import number, safe, table

__all__ = ["count_map", "number", "ownership_map", "safe", "table"]
