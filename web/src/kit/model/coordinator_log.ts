/** The records of `__consumer_offsets` and `__transaction_state` as they were appended, superseded and cleaned away. */
import type { Entry } from "../../data.ts";

interface LogRecord {
  /** The entry that says that it was appended. */
  seq: number;
  log: string;
  offset: number;
  key: string;
  /** null is a tombstone. */
  value: string | null;
  /** The entry with the next record of the same key: from then on this one counts no more; null: it still counts. */
  supersededBy: number | null;
  /** The offset of that record. */
  supersededAt: number;
  /** The entry that says that compaction took it away. */
  cleanedBy: number | null;
}

export class CoordinatorLog {
  records: LogRecord[] = [];
  /** By log: from where to where it was compacted, and when. */
  private newest = new Map<string, LogRecord>();

  learn(entry: Entry): void {
    const fields = entry.fields as Record<string, any>;
    if (entry.event === "trace.RecordsAppended") {
      const log = `${fields.topic}-${fields.partition}`;
      for (const [offset, key, value] of fields.records as [number, string, string | null][]) {
        const record = { seq: entry.seq, log, offset, key, value, supersededBy: null, supersededAt: 0, cleanedBy: null };
        const id = `${log} ${key}`;
        const before = this.newest.get(id);
        if (before) Object.assign(before, { supersededBy: entry.seq, supersededAt: offset });
        this.newest.set(id, record);
        this.records.push(record);
      }
    } else if (entry.event === "broker.LogCleaned") {
      for (const record of this.records) {
        const gone = record.log === fields.log && record.cleanedBy === null && record.supersededBy !== null;
        if (gone && record.supersededAt < fields.end_offset) record.cleanedBy = entry.seq;
      }
    }
  }

  forget(firstSeq: number): void {
    this.records = this.records.filter((record) => record.seq >= firstSeq || record.supersededBy === null);
  }

  /** The records that are in the logs after the entry `seq`: each with whether it still counts. */
  at(seq: number): { record: LogRecord; counts: boolean }[] {
    const found = [];
    for (const record of this.records) {
      if (record.seq > seq) break;
      if (record.cleanedBy !== null && record.cleanedBy <= seq) continue;
      found.push({ record, counts: record.supersededBy === null || record.supersededBy > seq });
    }
    return found;
  }
}
