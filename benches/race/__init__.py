"""`make race`: our sticky assignors beside those of the peers, on the same bytes, in one run."""
