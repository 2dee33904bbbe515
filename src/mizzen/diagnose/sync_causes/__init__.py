"""Why a proxy has not what it was sent: `proxy-status --explain`.

    syncz, problems, metrics, pods ─> scope ─> Finding: whose fault it is, by what, and what to do next ─> text
                                        └ timing: where the time of pushes goes

The rule of scope: a type that many proxies lack at once is held up at the control plane; one that few lack is refused
by these, or does not reach them. What a proxy refuses is its configuration's fault however many refuse it.
"""
