"""One consumer's membership of its group: everything but the client that reads the records.

A client's consumer holds an `ApplicationSide`, and implements a `DataPath`. See docs/data-path.md.
"""
