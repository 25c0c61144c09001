"""The simulated Kafka clients: what `dueline.scheduler.kafka.client` opens, in virtual time."""
