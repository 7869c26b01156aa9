"""One description of a table: its columns, policies and persons.

Job files, words of the command line, the explorer and its HTTP interface all read this
description. ``table.schema.json`` and ``job.schema.json`` are its JSON Schemas, which
editors use to complete and check files.
"""
