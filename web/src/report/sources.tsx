/** Which tables of the pipeline the numbers of a part of the report are from: in its corner, for who asks. */

/** `tables` has what is shown, and the tables that it is from. */
export function Sources({ tables }: { tables: Record<string, string[]> }) {
  return (
    <details class="sources">
      <summary>Where from</summary>
      <div>
        <p>Parquet files in <code>tables</code>, beside this page:</p>
        <dl>
          {Object.entries(tables).map(([what, names]) => (
            <div key={what}><dt>{what}</dt><dd><code>{names.join(", ")}</code></dd></div>
          ))}
        </dl>
      </div>
    </details>
  );
}
