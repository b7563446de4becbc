/** The parts of the report: what happened, all groups in figures, one by one, their storms and lags, and how whole the data is. */
import { Fragment, type ComponentChild } from "preact";
import { Term } from "../kit/glossary.tsx";
import { Panel } from "../kit/panel.tsx";
import { GroupArticle } from "./group_article.tsx";
import { ActivityChart } from "./group_charts.tsx";
import type { NamedCount, Report, Vocabulary } from "./model.ts";
import { isYoung, OpenTransactionText } from "./open_transaction.tsx";
import { alternativeTo, causeOf, ownTrouble, reasons } from "./sentences.ts";
import { groupName, LagTable, WhatIfTable, type Anchors } from "./shared_tables.tsx";
import { Sources } from "./sources.tsx";
import { bars, count, figures, LeftOut, Name, name, NoneOf, Table, text, Time, time, words } from "./table.tsx";
import { amount, duration, number } from "./text.ts";

const OVERVIEW_TABLES = {
  "Groups to look at": ["group_health"], "Open transactions": ["open_transactions"], Storms: ["storms"], "What other assignors would have stopped": ["what_if"], Pauses: ["commit_pauses"],
  "The log": ["log_partitions", "record_counts"], Groups: ["group_health"], Commits: ["commits", "commit_rates", "lag"], "Rebalances, partitions moved, causes": ["rebalances"], "Suspect commits": ["zombies"], Lag: ["lag"],
};
const GROUP_TABLES = {
  "State and score": ["group_health"], Members: ["members"], Rebalances: ["rebalances"], Epochs: ["epochs"], "Who was to have how much": ["skew"], Storms: ["storms"],
  Commits: ["commits", "commit_rates"], "Owner of each partition": ["ownership"], Lags: ["lag"], "Where commits stopped": ["commit_gaps"], "Other assignors": ["what_if_summary"],
};
const QUALITY_TABLES = {
  Records: ["record_counts"], "Not decoded": ["bad_records"], "Members that could not be read": ["generations"], Warnings: ["source_warnings"], "Partitions of the log": ["log_partitions"],
};

export function OverviewPanel({ report, vocabulary, anchors }: { report: Report; vocabulary: Vocabulary; anchors: Anchors }) {
  const { overview: of, run } = report;
  const late = report.statuses.reduce((sum, { status, partitions }) => sum + (status === null || status === "OK" ? 0 : partitions), 0);
  return (
    <Panel id="overview" title="Overview" aside={<Sources tables={OVERVIEW_TABLES} />}>
      <Incidents report={report} vocabulary={vocabulary} anchors={anchors} />
      <h3>The log</h3>
      <p>Read from <Name text={run.source} longest={120} />.</p>
      <History report={report} />
      {run.as_of !== null && <p>As of {run.as_of}: later records do not count.</p>}
      <dl class="facts">
        <Fact title="Records read" value={of.records} more={`of ${amount(of.log_partitions, "partitions")} of the log`} />
        <Fact
          title="Groups"
          value={of.groups}
          more={`${number(of.groups_with_members)} with members, ${number(of.groups - of.groups_with_members - of.groups_gone)} without${of.groups_gone ? `, ${number(of.groups_gone)} gone` : ""}`}
        />
        <Fact title="Commits" value={of.commits} more={`for ${amount(of.partitions, "partitions")}`} />
        <Fact title="Rebalances" value={of.rebalances} more={of.hidden_generations ? `${amount(of.hidden_generations, "generations")} between them left no record` : ""} />
        <Fact title="Partitions moved" value={of.moved} more={`${number(of.moved_needlessly)} of them needlessly`} />
        <Fact title="Storms" value={of.storms} more="of five rebalances or more in a row" />
        <Fact title="Commits stopped" value={of.commit_gaps} more="pauses, far longer than usual" />
        <Fact title="Suspect commits" value={of.zombies} more="perhaps by a former owner of the partition" />
        <Fact title="Lag" value={of.lag} more={of.lag === null ? "the ends of topics are not known" : `records; ${amount(late, "partitions")} not OK`} />
      </dl>
      <ActivityChart overview={of} />
      <Causes report={report} vocabulary={vocabulary} anchors={anchors} />
    </Panel>
  );
}

/** How many incidents of each kind are told at the top of the page. */
const TOLD = 5;
/** How many groups are named that should be looked at first. */
const FIRST = 3;

/** What to look at, and what happened: a sentence for each. */
function Incidents({ report, vocabulary, anchors }: { report: Report; vocabulary: Vocabulary; anchors: Anchors }) {
  const { storms, pauses, losses, expiring, open_transactions: open } = report;
  const told = open.filter((one) => !isYoung(one, report)).slice(0, TOLD);
  const troubled = ownTrouble(report.groups, vocabulary);
  return (
    <>
      <Sentences title="Look at these groups first" leftOut={0} what="" table="group_health">
        {troubled.groups.slice(0, FIRST).map((one) => <li key={one.group}>{groupName(one.group, anchors).shown}: {reasons(one, troubled.vocabulary)}.</li>)}
      </Sentences>
      <Sentences title="Records lost" table="lag" leftOut={losses.length - TOLD + report.losses_left_out} what="partitions with records that were deleted before they were read">
        {losses.slice(0, TOLD).map((one) => (
          <li key={`${one.group} ${one.topic} ${one.partition}`}>
            {groupName(one.group, anchors).shown}: <Name text={`${one.topic}-${one.partition}`} /> begins at offset {number(one.log_start_offset)}, {amount(one.records_lost, "offsets")} behind {number(one.committed_offset)}, which the group has committed: what was between was deleted before the group read it.
          </li>
        ))}
      </Sentences>
      <Sentences title="Offsets that expire within a day" table="group_health" leftOut={expiring.length - TOLD + report.expiring_left_out} what="groups with lag whose offsets expire within a day">
        {expiring.slice(0, TOLD).map((one) => (
          <li key={one.group}>
            {groupName(one.group, anchors).shown}: its offsets expire from <Time ms={one.expire_ts} /> UTC on, with a lag of {amount(one.lag, "records")}; consumers that come later do not know where it was.
          </li>
        ))}
      </Sentences>
      <Sentences title="Open transactions" table="open_transactions" leftOut={open.length - told.length + report.open_transactions_left_out} what="other producers with an open transaction">
        {told.map((one) => <li key={`${one.producer_id} ${one.places[0]!.topic} ${one.places[0]!.partition}`}><OpenTransactionText one={one} anchors={anchors} /></li>)}
      </Sentences>
      <Sentences title="The longest pauses" table="commit_pauses" leftOut={pauses.length - TOLD + report.pauses_left_out} what="pauses that were shorter">
        {pauses.slice(0, TOLD).map((one) => (
          <li key={`${one.group} ${one.from_ts}`}>
            {groupName(one.group, anchors).shown}: commits for {amount(one.partitions, "partitions")} stopped for {duration(1_000 * one.seconds)}, from <Time ms={one.from_ts} /> {one.to_ts === null ? "UTC on, until the end of the log" : <>to <Time ms={one.to_ts} /> UTC</>}.
          </li>
        ))}
      </Sentences>
      <Sentences title="The largest storms" table="storms" leftOut={storms.length - TOLD + report.storms_left_out} what="storms with fewer rebalances">
        {storms.slice(0, TOLD).map((one) => (
          <li key={`${one.group} ${one.from_ts}`}>
            {groupName(one.group, anchors).shown}: {amount(one.rebalances, "rebalances")} in {duration(one.to_ts - one.from_ts)}, from <Time ms={one.from_ts} /> UTC on; {number(one.of_cause_kind)} of them: {causeOf(one, vocabulary)}{alternativeTo(one) && `; ${alternativeTo(one)}`}.
          </li>
        ))}
      </Sentences>
    </>
  );
}

function Sentences({ title, table, leftOut, what, children }: { title: string; table: string; leftOut: number; what: string; children: ComponentChild[] }) {
  if (!children.length) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul aria-label={title}>{children}</ul>
      <LeftOut count={leftOut} what={what} table={table} />
    </>
  );
}

function Causes({ report: { causes }, vocabulary, anchors }: { report: Report; vocabulary: Vocabulary; anchors: Anchors }) {
  if (!causes.length) return null;
  const affected = ({ groups, in_other_groups }: Report["causes"][number]) => (
    <>
      {groups.map(({ group, count: times }, place) => <Fragment key={group}>{place > 0 && ", "}{groupName(group, anchors).shown} {number(times)}</Fragment>)}
      {in_other_groups > 0 && `, others ${number(in_other_groups)}`}
    </>
  );
  return (
    <Table
      caption="Why groups rebalanced, as far as the log shows it: each rebalance counts once"
      columns={[words("Kind of cause"), bars("Rebalances"), words("Most of them in", "group and rebalances")]}
      rows={causes.map((one) => [
        text(vocabulary.cause_kinds[one.cause_kind] ?? one.cause_kind), count(one.count), { shown: affected(one), value: one.groups[0]!.group },
      ])}
    />
  );
}

function History({ report: { overview: of } }: { report: Report }) {
  if (of.from_ts === null || of.to_ts === null) return <p>No record has a time.</p>;
  return (
    <p>
      The log is from <Time ms={of.from_ts} /> to <Time ms={of.to_ts} /> UTC: {duration(of.to_ts - of.from_ts)}.{" "}
      {of.missing ? (
        <>
          <strong>{of.groups_with_gaps ? `The history of ${amount(of.groups_with_gaps, "groups")} of ${number(of.groups)} has gaps` : "No history of a group has gaps"}</strong>: {amount(of.missing, "offsets")} of the log are missing, which compaction has taken. From <Time ms={of.whole_from_ts} /> UTC on nothing is missing anywhere; the section of a group says from when on.
        </>
      ) : (
        <>History is whole: no offset is missing.</>
      )}
    </p>
  );
}

function Fact({ title, value, more }: { title: string; value: number | null; more: string }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd><b>{number(value)}</b>{more && <span class="quiet">{more}</span>}</dd>
    </div>
  );
}

export function DetailsPanel({ report, vocabulary, anchors }: { report: Report; vocabulary: Vocabulary; anchors: Anchors }) {
  const { details, overview, what_if } = report;
  const rest = overview.groups - details.length;
  return (
    <Panel id="details" title="Group by group" aside={<Sources tables={GROUP_TABLES} />}>
      <p>{rest > 0 ? <>The most troubled groups, and those named on top of the page: {number(details.length)}. {number(rest)} more have no section here: <code>groupcoord pipeline run --details N</code> gives more groups one, and the tables under “Where from” have all groups.</> : "All groups."}</p>
      {details.map((detail, place) => {
        const { group } = detail.group;
        return <GroupArticle key={group} id={anchors.get(group)!} detail={detail} vocabulary={vocabulary} whatIf={what_if?.groups[group]} isOpen={place === 0} />;
      })}
    </Panel>
  );
}

export function StormsPanel({ report, anchors }: { report: Report; anchors: Anchors }) {
  const { storms } = report;
  const causes = (all: string[]) => all.slice(0, 3).join("; ") + (all.length > 3 ? `; and ${amount(all.length - 3, "others")}` : "");
  return (
    <Panel id="storms" title="Storms" aside={<Sources tables={{ Storms: ["storms"] }} />}>
      <p>Five <Term id="rebalance">rebalances</Term> or more of one group, none more than a minute after the one before.</p>
      {storms.length ? (
        <Table
          caption="The largest storms"
          columns={[
            words("Group"), words("From", "UTC"), words("To", "UTC"), figures("Rebalances"), figures("Without a record", "generations"), words("Members", "lowest to highest"), figures("Moved", "partitions"), words("Likely causes"),
          ]}
          rows={storms.map((one) => [
            groupName(one.group, anchors), time(one.from_ts), time(one.to_ts), count(one.rebalances), count(one.hidden_generations), text(`${number(one.members_lowest)} to ${number(one.members_highest)}`), count(one.moved), name(causes(one.likely_causes), 240),
          ])}
        />
      ) : (
        <NoneOf what="storms" />
      )}
      <LeftOut count={report.storms_left_out} what="storms with fewer rebalances" table="storms" />
    </Panel>
  );
}

export function LagPanel({ report, anchors }: { report: Report; anchors: Anchors }) {
  return (
    <Panel id="lag" title="Lag" aside={<Sources tables={{ Lags: ["lag"] }} />}>
      <p>
        By Burrow's published rules, from the last ten commits: WARN: <Term id="lag" /> never fell; STOP: no commit for longer than these ten took; STALL: commits, but of the same offset; REWIND: an offset went back.
      </p>
      {report.statuses.length ? (
        <Table
          caption="Partitions by status"
          columns={[words("Status"), figures("Partitions"), figures("Lag", "records")]}
          rows={report.statuses.map((one) => [text(one.status ?? "unknown: where the topic ends is not known"), count(one.partitions), count(one.lag)])}
          isSortable={false}
        />
      ) : (
        <NoneOf what="committed offsets" />
      )}
      {report.lags.length > 0 && <LagTable caption="The longest lags" lags={report.lags} anchors={anchors} />}
    </Panel>
  );
}

export function WhatIfPanel({ report: { what_if } }: { report: Report }) {
  if (!what_if) return null;
  return (
    <Panel id="what-if" title="What if: other assignors" aside={<Sources tables={{ "Other assignors": ["what_if_summary"] }} />}>
      <p>
        The members of every <Term id="generation" />, given to other <Term id="assignor">assignors</Term>: how many partitions would have moved, how many of them needlessly, and how many would have stopped meanwhile. Fewer is better.
      </p>
      <WhatIfTable caption="All groups together" results={what_if.together} />
    </Panel>
  );
}

const WENT: Record<string, string> = { in: "came in", later: "are later than the moment that was asked for", bad_records: "could not be decoded" };

export function QualityPanel({ report: { quality: of } }: { report: Report }) {
  return (
    <Panel id="quality" title="Data quality" aside={<Sources tables={QUALITY_TABLES} />}>
      <p>{of.adds_up ? "Every record that came in is in one of the tables." : "The counts do not add up."}</p>
      <Table
        caption="What came in, and where it went"
        columns={[words("Records that"), figures("How many", "records")]}
        rows={of.counts.map((one) => [text(WENT[one.what] ?? `are in ${one.what}`), count(one.count)])}
        isSortable={false}
      />
      <Reasons caption="Records that could not be decoded" counts={of.bad} />
      <Reasons caption="Generations whose members could not be read in full" counts={of.problems} />
      {of.warnings.length ? (
        <Table
          caption="Warnings of the source"
          columns={[words("Where"), words("What"), figures("Log partition"), figures("Records"), figures("Bytes")]}
          rows={of.warnings.map((one) => [name(one.where, 120), name(one.what, 200), count(one.log_partition), count(one.records), count(one.bytes)])}
          isSortable={false}
        />
      ) : (
        <p>Warnings of the source: none.</p>
      )}
      <LeftOut count={of.warnings_left_out} what="warnings" table="source_warnings" />
      {of.log_partitions.length ? (
        <details>
          <summary>{amount(of.log_partitions.length + of.log_partitions_left_out, "partitions")} of the log, one by one</summary>
          <Table
            caption="Partitions of __consumer_offsets that were read"
            columns={[
              figures("Log partition"), figures("Records"), figures("Hidden", "by transactions"), figures("Missing", "offsets"), figures("First", "offset"), figures("Last", "offset"), words("From", "UTC"), words("To", "UTC"), words("Whole from", "UTC"),
            ]}
            rows={of.log_partitions.map((one) => [
              count(one.log_partition), count(one.records), count(one.hidden), count(one.missing), count(one.first_offset), count(one.last_offset), time(one.first_ts), time(one.last_ts), time(one.whole_from_ts),
            ])}
          />
          <LeftOut count={of.log_partitions_left_out} what="partitions, with fewer missing offsets" table="log_partitions" />
        </details>
      ) : (
        <p>No partition was read.</p>
      )}
    </Panel>
  );
}

function Reasons({ caption, counts }: { caption: string; counts: NamedCount[] }) {
  if (!counts.length) return <p>{caption}: none.</p>;
  return <Table caption={caption} columns={[words("Why"), figures("How many", "records")]} rows={counts.map((one) => [name(one.what, 200), count(one.count)])} isSortable={false} />;
}
