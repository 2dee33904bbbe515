"""Validation: what an object says, held against the rules that admission holds it against.

In: one decoded object. Out: Problems. Nothing is looked up in other objects, so the verdict on an object never changes
with its neighbours. One validator serves `mizzen validate`, the file source, analysis and the webhook.

    objects          `validate_object`: the rules of a kind, those of its CRD and those of metadata, as Problems
    faults           what a rule yields before it is a Problem: path, message, level, code
    metadata         annotations that admission refuses
    crd              what a CRD's schema refuses beyond types: bounds, patterns and its CEL rules
    values           names, addresses, texts, headers, numbers, selectors: the rules that kinds share
    virtual_service, destination_rule, security, envoy_filter, mesh
                     packages for the kinds with many rules
    gateway, server_tls, sidecar, service_entry, workload, telemetry, extensions, proxy_config
                     one module each for the others

A rule is a generator of Faults over a Struct and the path it stands at. Messages are those of the reference, word for
word where a person may search for them. An object with errors is still compiled: what it comes to is the model's and
the compiler's affair, by rules of their own.
"""
