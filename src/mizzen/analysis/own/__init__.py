"""Mizzen's own rules: what hurts in practice and the reference does not say.

They ask `model` what a proxy is really told, so they follow Sidecars, visibility and defaults. `table` lists them; none
knows another.
"""
