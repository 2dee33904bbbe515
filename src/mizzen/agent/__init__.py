"""The sidecar's agent: what runs beside one Envoy, in the pod.

    control plane ──15012──> relay ──etc/istio/proxy/XDS──> Envoy      configuration (delta ADS)
                  ──15012──> identity ──SDS socket────────> Envoy      keys, certificates and roots
                             relay ──name table──> dns :15053          answers for the pod's applications
      servers, registries ─> wasm ───files───────────────> Envoy      modules that configuration names by address
                             supervisor ──> Envoy's process            start, drain, stop
    kubelet, Prometheus ──15020──> status                              readiness, metrics, probes of the application

`bootstrap` is pure: what Envoy starts with. `options` is everything that one agent is told, `main` puts all parts
together, `control_plane` is how the control plane is dialled, `admin` how Envoy is asked and ordered.

All paths are relative to the agent's working directory, as pilot-agent's are: `/` in a container, a folder of its own
for each pod of a local mesh. Envoy runs in the same directory. The package ships without the control plane: it knows
nothing of services or routes, only of bytes that it passes on.
"""
