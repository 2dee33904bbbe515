"""One pod of a local mesh, from its manifest to its processes.

`containers` turns a container into a command line and an environment, `volumes` into files below the pod's folder,
`probes` asks whether it works as the kubelet would, `capture` applies the rules that its injected init container asks
for, `sandbox` brings it all up in order and takes it down again. The pod's folder stands in for the root of a
container's file system: a volume mounted at /etc/tls lies at etc/tls in it, and the variable MIZZEN_ROOT names it.
"""
