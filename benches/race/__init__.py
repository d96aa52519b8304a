"""`make race`: our assignors beside every peer's, on the same bytes, in one run."""
