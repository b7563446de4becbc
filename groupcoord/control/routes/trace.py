"""Routes of the trace: query, download, stream and draw it, and explain why something happened."""

from typing import Annotated

from fastapi import Header, Query
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from groupcoord.control.models import Entries, Entry
from groupcoord.control.problem_documents import ProblemError, wrong_argument
from groupcoord.control.route_dependencies import TEXT, Target, partition_of, router
from groupcoord.control.trace_selection import Selected
from groupcoord.control.trace_stream import MEDIA_TYPE, TraceStream
from groupcoord.testing.trace.file_format import entry_as_json
from groupcoord.testing.trace.mermaid import LIMIT as MOST_STEPS
from groupcoord.testing.trace.trace import LIMIT as MOST_ENTRIES

trace = router("trace")

JSON_LINES = "application/x-ndjson"

Since = Annotated[float | None, Query(description="from this moment on: seconds since the trace began")]
Until = Annotated[float | None, Query(description="up to this moment: seconds since the trace began")]
GroupFilter = Annotated[str | None, Query(description="only entries about this group")]
TransactionFilter = Annotated[str | None, Query(description="only entries about this transactional id")]


@trace.get("/trace", summary="Query the trace")
async def query_trace(
    cluster: Target,
    selected: Selected,
    since: Since = None,
    until: Until = None,
    after: Annotated[int, Query(ge=0, description="after the entry with this number")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ENTRIES, description="at most so many entries, the first ones")] = 10_000,
) -> Entries:
    """The entries, oldest first, as in the trace's file format (docs/trace.md)."""
    found = cluster.trace.entries(since=since, until=until, transaction=selected.transaction)
    chosen = [entry for entry in found if entry.seq > after and selected(entry)][:limit]
    return Entries(
        run=cluster.run,
        start_ms=cluster.trace.start_ms or 0,
        last_seq=cluster.trace.last_seq,
        dropped=cluster.trace.dropped,
        entries=[Entry(**entry_as_json(entry)) for entry in chosen],
    )


@trace.get("/trace/text", summary="Read the trace as text", response_class=PlainTextResponse, responses=TEXT)
async def trace_text(
    cluster: Target,
    group: GroupFilter = None,
    transaction: TransactionFilter = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int | None, Query(ge=1, description="only the last so many lines")] = None,
    fold: Annotated[bool, Query(description="requests without effect are one line for each client")] = False,
) -> str:
    """One line for each entry, each with its cause."""
    return cluster.trace.text(group=group, transaction=transaction, since=since, until=until, limit=limit, fold=fold)


@trace.get(
    "/trace/mermaid", summary="Draw the trace as a sequence diagram", response_class=PlainTextResponse, responses=TEXT
)
async def trace_mermaid(
    cluster: Target,
    group: GroupFilter = None,
    transaction: TransactionFilter = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, Query(ge=1, description="only the last so many steps")] = MOST_STEPS,
) -> str:
    """A Mermaid sequence diagram, which GitHub renders."""
    return cluster.trace.mermaid(group=group, transaction=transaction, since=since, until=until, limit=limit)


@trace.get(
    "/trace/file",
    summary="Download the trace",
    response_class=Response,
    responses={200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}}},
)
async def trace_file(cluster: Target) -> StreamingResponse:
    """A header line, then one line of JSON for each entry (docs/trace.md); ``groupcoord.Trace.load`` reads it."""
    return StreamingResponse(
        cluster.trace.lines(),
        media_type=JSON_LINES,
        headers={"Content-Disposition": 'attachment; filename="trace.jsonl"'},
    )


@trace.get("/trace/why", summary="Explain why something happened", response_class=PlainTextResponse, responses=TEXT)
async def why(
    cluster: Target,
    group: Annotated[str | None, Query(description="the group to explain")] = None,
    generation: Annotated[
        int | None, Query(description="why this generation or epoch began; the newest unless given")
    ] = None,
    epoch: Annotated[int | None, Query(description="why the consumer group is at this epoch")] = None,
    member: Annotated[str | None, Query(description="how this member last joined, left or changed")] = None,
    lost: Annotated[
        str | None, Query(description="TOPIC:PARTITION: why the member, or any member, last lost it")
    ] = None,
    got: Annotated[str | None, Query(description="TOPIC:PARTITION: why the member, or any member, last got it")] = None,
    cause: Annotated[
        int | None, Query(description="the number of an entry: explains each generation that the entry led to")
    ] = None,
    transaction: Annotated[
        str | None, Query(description="a transactional id: why its transaction was aborted, or its producer refused")
    ] = None,
) -> str:
    """An explanation in words, from the causes in the trace. 404, which says what is known, if the trace does not have it."""
    try:
        entry = None if cause is None else cluster.trace[cause]
    except KeyError as gone:
        raise LookupError(gone.args[0]) from None
    if (group is None) == (transaction is None):
        raise ProblemError.of_field("query", "group= explains a group, transaction= a transaction: one of the two")
    with wrong_argument("query"):
        return cluster.trace.why(
            group,
            generation,
            epoch=epoch,
            member=member,
            lost=None if lost is None else partition_of(lost, "lost"),
            got=None if got is None else partition_of(got, "got"),
            cause=entry,
            transaction=transaction,
        )


@trace.get(
    "/trace/stream",
    summary="Follow the trace as it grows",
    response_class=Response,
    responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}},
)
async def trace_stream(
    cluster: Target,
    selected: Selected,
    last_event_id: Annotated[str | None, Header(description="continue after this event: RUN-SEQ")] = None,
) -> TraceStream:
    """Server-sent events: ``start`` (a new trace begins, as after a reset; earlier entries are void), then an ``entry`` for
    each entry of the trace: first those that exist, then new ones. ``id`` is RUN-SEQ, from which ``Last-Event-ID`` continues.
    A client that reads too slowly is disconnected, and may reconnect."""
    return TraceStream(cluster, selected, last_event_id)
