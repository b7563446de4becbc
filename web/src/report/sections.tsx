/** The parts of the report: all groups in figures, by trouble, one by one, their storms and lags, and how whole the data is. */
import { Fragment, type ComponentChild } from "preact";
import { Term } from "../kit/glossary.tsx";
import { Panel } from "../kit/panel.tsx";
import { GroupArticle } from "./group_article.tsx";
import { ActivityChart } from "./group_charts.tsx";
import type { NamedCount, Report, Vocabulary } from "./model.ts";
import { groupName, LagTable, WhatIfTable, type Anchors } from "./shared_tables.tsx";
import { bar, count, figures, From, LeftOut, Name, name, NoneOf, Table, text, Time, time, words } from "./table.tsx";
import { amount, duration, number } from "./text.ts";

export function OverviewPanel({ report, vocabulary, anchors }: { report: Report; vocabulary: Vocabulary; anchors: Anchors }) {
  const { overview: of, run } = report;
  const rebalanced = ["rebalances", "modern_rebalances"];
  return (
    <Panel id="overview" title="Overview">
      <p>Read from <Name text={run.source} longest={120} />.</p>
      <History report={report} />
      {run.as_of !== null && <p>As of {run.as_of}: later records do not count.</p>}
      <dl class="facts">
        <Fact title="Records read" value={of.records} more={`of ${amount(of.log_partitions, "partitions")} of the log`} from={["record_counts", "log_partitions"]} />
        <Fact
          title="Groups"
          value={of.groups}
          more={`${number(of.groups_with_members)} with members, ${number(of.groups - of.groups_with_members - of.groups_gone)} without${of.groups_gone ? `, ${number(of.groups_gone)} gone` : ""}`}
          from={["group_health"]}
        />
        <Fact title="Commits" value={of.commits} more={`for ${amount(of.partitions, "partitions")}`} from={["commit_rates", "lag"]} />
        <Fact title="Rebalances" value={of.rebalances} more={of.hidden_generations ? `${amount(of.hidden_generations, "generations")} between them left no record` : ""} from={rebalanced} />
        <Fact title="Partitions moved" value={of.moved} more={`${number(of.moved_needlessly)} of them needlessly`} from={rebalanced} />
        <Fact title="Storms" value={of.storms} more="of five rebalances or more in a row" from={["storms"]} />
        <Fact title="Commits stopped" value={of.commit_gaps} more="times, far longer than usual" from={["commit_pauses"]} />
        <Fact title="Odd commits" value={of.zombies} more="as if by who had lost the partition" from={["zombies"]} />
        <Fact title="Lag" value={of.lag} more={of.lag === null ? "the ends of topics are not known" : `records; ${amount(of.late_partitions, "partitions")} not OK`} from={["lag"]} />
      </dl>
      <Incidents report={report} vocabulary={vocabulary} anchors={anchors} />
      <ActivityChart overview={of} />
      <Causes report={report} vocabulary={vocabulary} anchors={anchors} />
    </Panel>
  );
}

/** How many storms and how many pauses are told at the top of the page. */
const TOLD = 5;

/** What happened, in a sentence for each storm and each pause. */
function Incidents({ report, vocabulary, anchors }: { report: Report; vocabulary: Vocabulary; anchors: Anchors }) {
  const { storms, pauses } = report;
  return (
    <>
      <Sentences title="The largest storms" table="storms" leftOut={storms.length - TOLD + report.storms_left_out} what="storms with fewer rebalances">
        {storms.slice(0, TOLD).map((one) => (
          <li key={`${one.group} ${one.from_ts}`}>
            {groupName(one.group, anchors).shown}: {amount(one.rebalances, "rebalances")} in {duration(one.to_ts - one.from_ts)}, from <Time ms={one.from_ts} /> UTC on; {number(one.of_cause_kind)} of them: {vocabulary.cause_kinds[one.cause_kind] ?? one.cause_kind}.
          </li>
        ))}
      </Sentences>
      <Sentences title="The longest pauses" table="commit_pauses" leftOut={pauses.length - TOLD + report.pauses_left_out} what="pauses that were shorter">
        {pauses.slice(0, TOLD).map((one) => (
          <li key={`${one.group} ${one.from_ts}`}>
            {groupName(one.group, anchors).shown}: commits for {amount(one.partitions, "partitions")} stopped for {duration(1_000 * one.seconds)}, from <Time ms={one.from_ts} /> UTC on{one.to_ts === null && ", until the end of the log"}.
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
      <p>{title}: <From tables={[table]} /></p>
      <ul aria-label={title}>{children}</ul>
      <LeftOut count={leftOut} what={what} table={table} />
    </>
  );
}

function Causes({ report: { causes }, vocabulary, anchors }: { report: Report; vocabulary: Vocabulary; anchors: Anchors }) {
  if (!causes.length) return null;
  const highest = Math.max(...causes.map(({ count }) => count));
  const affected = ({ groups, in_other_groups }: Report["causes"][number]) => (
    <>
      {groups.map(({ group, count: times }, place) => <Fragment key={group}>{place > 0 && ", "}{groupName(group, anchors).shown} {number(times)}</Fragment>)}
      {in_other_groups > 0 && `, others ${number(in_other_groups)}`}
    </>
  );
  return (
    <Table
      caption="Why groups rebalanced, as far as the log shows it: each rebalance counts once"
      from={["rebalances", "modern_rebalances"]}
      columns={[words("Kind of cause"), figures("Rebalances"), words("Most of them in", "group and rebalances")]}
      rows={causes.map((one) => [
        text(vocabulary.cause_kinds[one.cause_kind] ?? one.cause_kind), bar(one.count, highest), { shown: affected(one), value: one.groups[0]!.group },
      ])}
    />
  );
}

function History({ report: { overview: of } }: { report: Report }) {
  if (of.from_ts === null || of.to_ts === null) return <p>No record has a time.</p>;
  const from = <From tables={["log_partitions"]} />;
  return (
    <p>
      The log is from <Time ms={of.from_ts} /> to <Time ms={of.to_ts} /> UTC: {duration(of.to_ts - of.from_ts)}.{" "}
      {of.missing ? (
        <>
          <strong>{of.groups_with_gaps ? `The history of ${amount(of.groups_with_gaps, "groups")} of ${number(of.groups)} has gaps` : "No history of a group has gaps"}</strong>: {amount(of.missing, "offsets")} of the log are missing, which compaction has taken. From <Time ms={of.whole_from_ts} /> UTC on nothing is missing anywhere; for each group its row says from when on. <From tables={["log_partitions", "group_health"]} />
        </>
      ) : (
        <>History is whole: no offset is missing. {from}</>
      )}
    </p>
  );
}

function Fact({ title, value, more, from }: { title: string; value: number | null; more: string; from: string[] }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd><b>{number(value)}</b>{more && <span class="quiet">{more}</span>}<From tables={from} /></dd>
    </div>
  );
}

export function GroupsPanel({ report, vocabulary, anchors }: { report: Report; vocabulary: Vocabulary; anchors: Anchors }) {
  const { groups } = report;
  const highest = Math.max(0, ...groups.map(({ score }) => score));
  return (
    <Panel id="groups" title="Groups by trouble">
      <p>
        The score says what to look at first. Each symptom gives its points times log₂(1 + how often it was seen), so that one of many kinds of trouble cannot hide the others; the score is their sum. It is a rule of thumb. <From tables={["group_health"]} />
      </p>
      <details>
        <summary>What each symptom gives</summary>
        <Table
          caption="Points"
          from={["group_health"]}
          columns={[words("Symptom"), figures("Seen once", "points"), figures("Three times", "points"), words("Counted in")]}
          rows={vocabulary.symptoms.map(({ meaning, points, table }) => [text(meaning), count(points), count(2 * points), { shown: <code>{table}</code>, value: table }])}
          isSortable={false}
        />
      </details>
      {groups.length ? (
        <Table
          caption="Groups by trouble"
          from={["group_health"]}
          columns={[
            words("Group"), figures("Score", "points"), words("Kind"), words("State"), figures("Members"), figures("Rebalances"), figures("Storms"), figures("Moved", "partitions"), figures("Needlessly", "partitions"),
            figures("Stopped", "pauses"), figures("Odd", "commits"), figures("Lag", "records"), figures("Not OK", "partitions"), figures("Commits"), words("Last seen", "UTC"),
          ]}
          rows={groups.map((one) => [
            groupName(one.group, anchors), bar(one.score, highest, { digits: 1 }), text(one.kind), text(one.state ?? "gone"), count(one.members), count(one.rebalances), count(one.storms), count(one.moved), count(one.moved_needlessly),
            count(one.commit_gaps), count(one.zombies), count(one.lag), count(one.late_partitions), count(one.commits), time(one.last_ts),
          ])}
        />
      ) : (
        <NoneOf what="groups" table="group_health" />
      )}
      <LeftOut count={report.groups_left_out} what="groups with lower scores" table="group_health" />
    </Panel>
  );
}

export function DetailsPanel({ report, vocabulary, anchors }: { report: Report; vocabulary: Vocabulary; anchors: Anchors }) {
  const { details, overview, what_if } = report;
  const rest = overview.groups - details.length;
  return (
    <Panel id="details" title="Group by group">
      <p>{rest > 0 ? `The ${number(details.length)} most troubled groups; ${number(rest)} more have no section here, the tables have all of them.` : "All groups."}</p>
      {details.map((detail) => {
        const { group } = detail.group;
        return <GroupArticle key={group} id={anchors.get(group)!} detail={detail} vocabulary={vocabulary} whatIf={what_if?.groups[group]} />;
      })}
    </Panel>
  );
}

export function StormsPanel({ report, anchors }: { report: Report; anchors: Anchors }) {
  const { storms } = report;
  const causes = (all: string[]) => all.slice(0, 3).join("; ") + (all.length > 3 ? `; and ${amount(all.length - 3, "others")}` : "");
  return (
    <Panel id="storms" title="Storms">
      <p>Five <Term id="rebalance">rebalances</Term> or more of one group, none more than a minute after the one before.</p>
      {storms.length ? (
        <Table
          caption="The largest storms"
          from={["storms"]}
          columns={[
            words("Group"), words("From", "UTC"), words("To", "UTC"), figures("Rebalances"), figures("Without a record", "generations"), words("Members", "lowest to highest"), figures("Moved", "partitions"), words("Likely causes"),
          ]}
          rows={storms.map((one) => [
            groupName(one.group, anchors), time(one.from_ts), time(one.to_ts), count(one.rebalances), count(one.hidden_generations), text(`${number(one.members_lowest)} to ${number(one.members_highest)}`), count(one.moved), name(causes(one.likely_causes), 240),
          ])}
        />
      ) : (
        <NoneOf what="storms" table="storms" />
      )}
      <LeftOut count={report.storms_left_out} what="storms with fewer rebalances" table="storms" />
    </Panel>
  );
}

export function LagPanel({ report, anchors }: { report: Report; anchors: Anchors }) {
  return (
    <Panel id="lag" title="Lag">
      <p>
        By Burrow's published rules, from the last ten commits: WARN: <Term id="lag" /> never fell; STOP: no commit for longer than these ten took; STALL: commits, but of the same offset; REWIND: an offset went back.
      </p>
      {report.statuses.length ? (
        <Table
          caption="Partitions by status"
          from={["lag"]}
          columns={[words("Status"), figures("Partitions"), figures("Lag", "records")]}
          rows={report.statuses.map((one) => [text(one.status ?? "unknown: where the topic ends is not known"), count(one.partitions), count(one.lag)])}
          isSortable={false}
        />
      ) : (
        <NoneOf what="committed offsets" table="lag" />
      )}
      {report.lags.length > 0 && <LagTable caption="The longest lags" lags={report.lags} anchors={anchors} />}
    </Panel>
  );
}

export function WhatIfPanel({ report: { what_if } }: { report: Report }) {
  if (!what_if) return null;
  return (
    <Panel id="what-if" title="What if: other assignors">
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
    <Panel id="quality" title="Data quality">
      <p>{of.adds_up ? "Every record that came in is in one of the tables." : "The counts do not add up."} <From tables={["record_counts"]} /></p>
      <Table
        caption="What came in, and where it went"
        from={["record_counts"]}
        columns={[words("Records that"), figures("How many", "records")]}
        rows={of.counts.map((one) => [text(WENT[one.what] ?? `are in ${one.what}`), count(one.count)])}
        isSortable={false}
      />
      <Reasons caption="Records that could not be decoded" table="bad_records" counts={of.bad} />
      <Reasons caption="Generations whose members could not be read in full" table="generations" counts={of.problems} />
      {of.warnings.length ? (
        <Table
          caption="Warnings of the source"
          from={["source_warnings"]}
          columns={[words("Where"), words("What"), figures("Log partition"), figures("Records"), figures("Bytes")]}
          rows={of.warnings.map((one) => [name(one.where, 120), name(one.what, 200), count(one.log_partition), count(one.records), count(one.bytes)])}
          isSortable={false}
        />
      ) : (
        <p>Warnings of the source: none. <From tables={["source_warnings"]} /></p>
      )}
      <LeftOut count={of.warnings_left_out} what="warnings" table="source_warnings" />
      {of.log_partitions.length ? (
        <details>
          <summary>{amount(of.log_partitions.length + of.log_partitions_left_out, "partitions")} of the log, one by one</summary>
          <Table
            caption="Partitions of __consumer_offsets that were read"
            from={["log_partitions"]}
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
        <p>No partition was read. <From tables={["log_partitions"]} /></p>
      )}
    </Panel>
  );
}

function Reasons({ caption, table, counts }: { caption: string; table: string; counts: NamedCount[] }) {
  if (!counts.length) return <p>{caption}: none. <From tables={[table]} /></p>;
  return <Table caption={caption} from={[table]} columns={[words("Why"), figures("How many", "records")]} rows={counts.map((one) => [name(one.what, 200), count(one.count)])} isSortable={false} />;
}
