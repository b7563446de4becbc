"""Dissects Kafka frames and record batches field by field: each field with its byte range, type, value and meaning.

The layouts are those of the codec (``protocol.codec``), read with positions; descriptions come from Kafka's message
definitions. All APIs of Kafka 4.3 are known, also those that this server does not serve.
"""

from groupcoord.dissect.dissection import DissectedField, Dissection, Problem
from groupcoord.dissect.frames import dissect_request, dissect_response
from groupcoord.dissect.record_batches import dissect_record_batches

__all__ = [
    "DissectedField",
    "Dissection",
    "Problem",
    "dissect_record_batches",
    "dissect_request",
    "dissect_response",
]
