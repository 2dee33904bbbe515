"""Findings over objects: coded messages for what is wrong, doubtful or without effect."""
