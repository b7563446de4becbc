"""Sends alerts: one when an incident begins, and one when it ends, each delivered at least once.

``state/alerts.json`` in the directory of the watch has the open incidents and which alerts were delivered. It is written after
the delivery. So a restarted watch repeats no alert, unless it was killed between delivery and writing: then it repeats the
alerts of that batch, with the same ids.
"""

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Literal

from groupcoord.pipeline.errors import PipelineError, SourceWarning
from groupcoord.pipeline.watch.alert_sinks import AlertDeliveryError, Sink
from groupcoord.pipeline.watch.batch_outcome import BatchOutcome
from groupcoord.pipeline.watch.incident_detection import Incident, incidents, lost_log
from groupcoord.pipeline.watch.output_directory import WatchDirectory

STATE_FILE = "state/alerts.json"
FORMAT = 1
BUDGET_S = 5.0
"""The time that delivery may take after a batch, in seconds; the remaining alerts are delivered after the next batch."""


@dataclass(frozen=True, kw_only=True)
class OpenIncident:
    """An incident of which not all alerts were delivered, or that goes on. ``was_told``: the alert of its begin was delivered.
    ``until``: when it ended, if that alert is still to be delivered; None: the incident goes on."""

    incident: Incident
    was_told: bool = False
    until: str | None = None


@dataclass(eq=False)
class WatchAlerts:
    """Sends alerts about incidents to ``sink`` after each batch, and keeps its state in ``output``. ``say`` is called once when
    delivery begins to fail, and once when it works again.

    ``clock`` returns seconds. Raises PipelineError if the stored state cannot be read.
    """

    output: WatchDirectory
    sink: Sink
    _: KW_ONLY
    hanging_after_s: int
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._has_failed = False
        self._open = _from_json(self.output.read_note(STATE_FILE))

    def note_lost(self, lost: Sequence[SourceWarning], since: str) -> None:
        """Store that records were deleted from the log before they were read. This must be done before the batch is
        committed, because no later batch reports it."""
        before = dict(self._open)
        for warning in lost:
            incident = lost_log(warning, since)
            self._open.setdefault(incident.id, OpenIncident(incident=incident))
        self._keep(before)

    def update(self, outcome: BatchOutcome) -> None:
        """Compare the incidents of now with those before the batch, and send alerts for those that began or ended."""
        before = dict(self._open)
        found, unknown = incidents(outcome, self.hanging_after_s)
        now = {incident.id: incident for incident in found}
        for incident in found:
            known = self._open.get(incident.id, OpenIncident(incident=incident))
            self._open[incident.id] = dataclasses.replace(known, until=None)
        for name, known in before.items():
            if name in now or name in unknown or known.until is not None:
                continue
            if known.was_told:
                self._open[name] = dataclasses.replace(known, until=outcome.now.isoformat())
            else:
                del self._open[name]
        try:
            self._tell_all(outcome.manifest.source)
        finally:
            self._keep(before)

    def _tell_all(self, source: str) -> None:
        begun = self.clock()
        for name, known in list(self._open.items()):
            if known.was_told and known.until is None:
                continue
            if self.clock() - begun >= BUDGET_S:
                return
            try:
                self.sink(_event("resolved" if known.was_told else "firing", known, source))
            except AlertDeliveryError as problem:
                if problem.is_final:
                    self.say(f"an alert was refused and is not told again ({known.incident.id}): {problem}")
                else:
                    if not self._has_failed:
                        self.say(f"alerts cannot be told: {problem}; trying again after each batch")
                    self._has_failed = True
                    return
            else:
                if self._has_failed:
                    self.say("alerts can be told again")
                self._has_failed = False
            if known.was_told:
                del self._open[name]
            else:
                self._open[name] = dataclasses.replace(known, was_told=True)

    def _keep(self, before: dict[str, OpenIncident]) -> None:
        if self._open != before:
            self.output.write_note(STATE_FILE, _to_json(self._open))


def _event(state: Literal["firing", "resolved"], known: OpenIncident, source: str) -> str:
    """One line of JSON."""
    incident = known.incident
    fields = {
        "id": incident.id,
        "kind": incident.kind,
        "state": state,
        "group": incident.group,
        "since": incident.since,
        "until": known.until,
        "text": incident.text if state == "firing" else incident.over,
        "source": source,
    }
    return json.dumps(fields, ensure_ascii=False)


def _to_json(known: dict[str, OpenIncident]) -> str:
    return json.dumps({"format": FORMAT, "open": [asdict(one) for one in known.values()]}, indent=1) + "\n"


def _from_json(text: str | None) -> dict[str, OpenIncident]:
    if text is None:
        return {}
    try:
        fields = json.loads(text)
        if fields["format"] != FORMAT:
            raise PipelineError(f"{STATE_FILE} was written by another version of groupcoord")
        found = [OpenIncident(**{**one, "incident": Incident(**one["incident"])}) for one in fields["open"]]
    except (ValueError, KeyError, TypeError):
        raise PipelineError(
            f"{STATE_FILE} is not what pipeline watch writes there: delete it, and alerts begin anew"
        ) from None
    return {one.incident.id: one for one in found}
