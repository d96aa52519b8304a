"""Four assignors of a user's own, each shown live: `make example-own`.

`active_standby`, `priorities`, `zones` and `caps` are the programs of docs/own-assignors.md. `scenes` lists the
members that join and leave, `live` plays the scenes on the embedded Kafka, and `view` prints the partitions of each
member with the reason.
"""
