"""Sidecar injection: pod in, pod out, nothing else touched.

    pod ──selection──> yes or a reason ──strip──> pod without an earlier injection
        ──overrides, mesh──> what the annotations and the mesh ask for ──template──> containers, volumes, labels
        ──merge, probes, prometheus──> the injected pod

The one entry for a single pod is `pod.inject_pod(pod, namespace=…, mesh=…, config=…) -> Injection`; whole manifests
(Deployments, Jobs, Lists, …) go through `manifests.inject_documents`. Pods are the raw dictionaries that the user
wrote, because every field that is not ours must come out as it went in; all that we derive from them is typed
(`values.InjectionConfig`, `overrides.Overrides`, `workload.Workload`). Pure: no input is changed, and the same input
gives the same output. `gateways` makes the pods of managed Gateways, and what stands around them, of the same parts.

Names, order of environment variables, ports and annotations are Istio's, so that its tools and its proxy image work
with pods injected here.
"""
