"""Four assignors of a user's own, each shown live: `make example-own`.

`active_standby`, `priorities`, `zones` and `caps` are the programs of docs/own-assignors.md. `scenes` says who comes
and goes, `live` plays it on the embedded Kafka, and `view` prints who has what and why.
"""
