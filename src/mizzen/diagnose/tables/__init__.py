"""`proxy-config`, a module a subcommand: one section of a dump in, istioctl's rows out.

    bootstrap clusters endpoints extensions listeners routes secrets     select_… what a filter keeps, build_table
    addresses match                                                      pieces of cells that several of them write
    ordering                                                             the order of rows that compare as equal

Columns, words and order are istioctl's, byte for byte; the recorded tables hold them.
"""
