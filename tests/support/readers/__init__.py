"""Consumers of each client with the same few methods: the data paths of the member's test-suite."""
