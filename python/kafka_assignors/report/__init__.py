"""The output of the planner and the pipeline: tables, maps, plots and pages, made of plain values."""
