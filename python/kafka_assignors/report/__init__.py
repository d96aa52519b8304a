"""What the planner and the pipeline show: tables, maps, plots and pages, made of plain values."""
