/** `__consumer_offsets`, and `__transaction_state`, as they fill: every record that was appended, and which compaction would drop. */
import { useMemo, useState } from "preact/hooks";
import { Term } from "./glossary.tsx";
import { Panel } from "./panel.tsx";
import { counted, type View } from "./view.ts";
import { VirtualList } from "./virtual.tsx";

/** So many squares are drawn: one for each of the newest records. */
const SQUARES = 240;

export function LogView({ view }: { view: View }) {
  const [all, setAll] = useState(false);
  const found = useMemo(() => {
    const there = view.history.log.at(view.state.seq);
    return all || !view.group ? there : there.filter(({ record }) => record.key.includes(`="${view.group}"`));
  }, [view.history.version, view.state.seq, view.group, all]);
  const old = found.filter((each) => !each.counts).length;
  const chosen = view.selected === null ? -1 : found.findIndex(({ record }) => record.seq === view.selected);
  const known = view.state.topics.size > 0;
  const transactions = found.some(({ record }) => record.log.startsWith("__transaction_state-"));
  return (
    <Panel
      title={<><Term id="__consumer_offsets" />{transactions && <> and <Term id="__transaction_state" /></>}</>}
      class="log"
      aside={view.group && <label><input type="checkbox" checked={all} onChange={() => setAll(!all)} /> all groups</label>}
    >
      {known && (
        <>
          <p>
            {counted(found.length, "record")}: {found.length - old} count, {old} superseded
            {old > 0 && <>; <Term id="compaction" /> would drop these</>}
          </p>
          <div class="squares" aria-hidden="true">
            {found.slice(-SQUARES).map(({ record, counts }) => (
              <i key={`${record.log} ${record.offset}`} class={counts ? (record.value === null ? "tombstone" : "counts") : "old"} title={`${record.log} offset ${record.offset}: ${record.key}`} />
            ))}
          </div>
        </>
      )}
      <VirtualList
        label={`Records of __consumer_offsets${transactions ? " and __transaction_state" : ""}`}
        count={found.length}
        rowHeight={40}
        chosen={chosen}
        choose={(place) => view.select(found[place]!.record.seq)}
        followsEnd
        empty={known ? "Nothing was appended yet." : "This trace does not have what was appended: it was made without detailed_trace=True."}
        rowClass={(place) => (found[place]!.counts ? "" : "old")}
        row={(place) => {
          const { record, counts } = found[place]!;
          return (
            <span class="record">
              <span><b class="mono">{record.log.replace("__consumer_offsets-", "p")}@{record.offset}</b> {view.history.names.shortened(record.key)}{!counts && <small class="badge">superseded</small>}{record.value === null && <small class="badge">tombstone</small>}</span>
              <small class="mono">{view.history.names.shortened(record.value ?? "no value: the key is forgotten")}</small>
            </span>
          );
        }}
      />
    </Panel>
  );
}
