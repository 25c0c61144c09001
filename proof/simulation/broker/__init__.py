"""Simulated Kafka brokers in virtual time: what a client can learn of a cluster of Kafka 4.3, and how a cluster fails."""
