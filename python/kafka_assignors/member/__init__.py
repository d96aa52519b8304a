"""One consumer's membership of its group: everything but the client that reads the records.

`ApplicationSide` is what a client's consumer holds, and `DataPath` what it implements. See docs/data-path.md.
"""
