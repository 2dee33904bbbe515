"""Rules of values that stand in many kinds: each takes a value and answers what is wrong with it, or nothing.

    names      DNS labels, domain names and wildcards, port names, labels, visibility, gateway names
    addresses  IP addresses and ranges, Unix sockets, ports
    numbers    durations and percentages
    texts      string matches and regular expressions
    headers    names and values of HTTP headers
    selectors  workload selectors and references to targets

A `…_fault` is the message for one value or None; a `check_…` yields Faults with paths.
"""
