"""One body of stories, told to a real Kafka broker and to groupcoord; the transcripts must be equal."""
