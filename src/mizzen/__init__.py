"""Mizzen: an Istio-compatible control plane and diagnosis toolkit that drives real Envoy."""
