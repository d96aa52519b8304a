"""Answers about topics and groups as data; `kafka_assignors.cli` prints them."""
