"""Unchanged schedulers and workers on a simulated Kafka, in virtual time."""
