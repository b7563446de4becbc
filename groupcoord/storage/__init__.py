"""The storage of topics and logs in a data directory, in Kafka's file formats."""
