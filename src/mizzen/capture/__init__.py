"""Traffic capture: which packets of a pod its sidecar gets to see.

    CaptureConfig ──rules.build──> RuleSet ──render──> iptables-restore text ──apply──> the kernel
                                      └────────────────── state.compare <── iptables-save ──┘

`config` says what is wanted, `arguments` reads it from the command line of an injected `istio-init` container, `rules`
turns it into a typed, ordered list of rules for one address family, `render` spells them as `iptables-save` does, and
`apply` is the only module (with `probe`) that touches the machine: it compares what is loaded with what is wanted and
replaces the difference in one transaction per table, in this network namespace or in a named one.

Chain names, ports, order and marks are Istio's, so that every tool that knows an Istio pod knows this one.
"""
