"""Workloads outside Kubernetes: their WorkloadEntries, as long as they are connected to this control plane.

`contents` says what an entry holds; `entries` is where entries stand; `registrar` lets proxies in and keeps what stands
there true.
"""
