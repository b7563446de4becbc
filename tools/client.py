"""Generates the tables of client settings in docs/client.md: the supported ones, and those that are left out."""

from dataclasses import MISSING, fields

from groupcoord.client.consumer_settings import LEFT_OUT, ConsumerSettings
from tools.sync_api import attribute_docs


def settings() -> str:
    """All settings of a consumer, with defaults and meanings."""
    meanings = attribute_docs(ConsumerSettings)
    rows = [
        f"| `{each.name}` | {'' if each.default is MISSING else f'`{each.default}`'} "
        f"| {' '.join(meanings[each.name].replace('``', '`').split())} |"
        for each in fields(ConsumerSettings)
    ]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows]) + "\n"


def left_out() -> str:
    """Settings that other clients have and this one refuses."""
    rows = [f"| `{name}` | {why} |" for name, why in LEFT_OUT.items()]
    return "\n".join(["| setting | why it is not there |", "|---|---|", *rows]) + "\n"
