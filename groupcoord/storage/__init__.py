"""A data directory: topics and logs in Kafka's own files, so that they outlive the process."""
