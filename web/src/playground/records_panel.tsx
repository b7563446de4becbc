/** The records of the topics, with those of transactions that are open or were aborted. */
import { Panel } from "../kit/panel.tsx";
import type { Snapshot } from "./data.ts";

export function RecordsPanel({ snapshot }: { snapshot: Snapshot }) {
  const logs = Object.entries(snapshot.topics).flatMap(([topic, { partitions }]) =>
    partitions.map((log, number) => ({ name: `${topic}-${number}`, ...log })).filter((log) => log.records.length),
  );
  if (!logs.length) return null;
  return (
    <Panel title="Records" aside={<small class="quiet">dashed: in an open transaction; struck out: aborted</small>}>
      {logs.map((log) => (
        <p key={log.name} class="records">
          <span class="mono">{log.name}</span>{" "}
          {log.records.map((record) => (
            <span key={record.offset} class={`record ${record.state}`} title={`${record.value}, ${record.state}`}>
              {record.offset}
            </span>
          ))}
        </p>
      ))}
      {Object.entries(snapshot.transactions).map(([name, transaction]) => (
        <p key={name}>
          Transaction {name}: {transaction.state}, producer id {transaction.producer_id}, epoch {transaction.epoch}
          {transaction.partitions.length > 0 && <>, with {transaction.partitions.join(", ")}</>}
        </p>
      ))}
    </Panel>
  );
}
