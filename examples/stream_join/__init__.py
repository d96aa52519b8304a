"""The advertising join of KIP-315, live: `make example-join`.

Impressions of advertisements and the clicks on them are joined on the impression's id by consumer groups that hold
their join state per partition number. Three groups, each with another assignor, go through the same events on the same
topics: members leave, join and crash. The example counts the partitions that a member gains, and the records that it
has to read again for them. `ads` makes the data and the expected results, `joiner` is the join, `member` a process that
runs it, `story` the events, `books` the accounts and `view` the output.
"""
