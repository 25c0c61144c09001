"""The Kafka layer: everything that talks to a broker. The only importer of the client library."""
