"""The sidecar's agent: what runs beside one Envoy, in the pod.

    control plane ──15012──> relay ──etc/istio/proxy/XDS──> Envoy      configuration (delta ADS)
                  ──15012──> certificates ──> sds ──socket──> Envoy    keys, certificates and roots
                             relay ──> names ──> dns :15053            answers for the pod's applications
                             supervisor ──> Envoy's process            start, drain, stop
    kubelet, Prometheus ──15020──> status                              readiness, metrics, probes of the application

Pure parts: `proxy_config`, `node`, `bootstrap` (what Envoy starts with), `keys` (keys and requests), `delta` (an ADS
server over saved resources), `names` (the name table). Shell: `control_plane` (how it is dialled), `certificates`,
`sds`, `relay` with `journal` (the last good configuration on disk), `dns`, `supervisor` with `launch`, `status` with
`scrape` and `probes`, and `main`, which puts them together.

All paths are relative to the agent's working directory, as pilot-agent's are: `/` in a container, a folder of its own
for each pod of a local mesh. Envoy runs in the same directory. The package ships without the control plane: it knows
nothing of services or routes, only of bytes that it passes on.
"""
