"""Configuration for Envoy: its ADS stream carried on to the control plane.

`server` is what Envoy connects to and decides what follows when a stream ends; `exchange` is one attempt to reach the
control plane; `journal` keeps what Envoy accepted; `saved` answers from it while the control plane is away.
"""
