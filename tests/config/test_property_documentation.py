"""The documentation is in order."""

from groupcoord.config.property_definitions import TOPIC
from groupcoord.config.property_documentation import BROKER_DOCUMENTATION, TOPIC_DOCUMENTATION


def test_topics_are_told_the_same_as_brokers() -> None:
    """What acts as a topic's configuration also acts as the broker's default for it."""
    for name, text in TOPIC_DOCUMENTATION.items():
        assert all(BROKER_DOCUMENTATION[synonym.name] for synonym in TOPIC[name].synonyms)
        assert text[0].isupper()
