"""The reference's analyzers, one module for each family; `analyzers` has their table.

A rule is a query on one object, on a namespace or on the mesh, and returns Findings. It reads what it needs through
`objects`, `hosts` and `membership`, so that the engine knows when to run it again. No rule knows another.
"""
