"""The advertising join of KIP-315, live: `make example-join`.

Impressions of advertisements and the clicks on them are joined on the impression's id by consumer groups that hold
their join state per partition number. Three groups, each with another assignor, go through the same events on the same
topics: members leave, join and crash. What a member then has to read again is what really came to it. `ads` makes the
data and knows what the join must find, `joiner` is the join, `member` a process that runs it, `story` what happens,
`books` the accounts and `view` what is shown.
"""
