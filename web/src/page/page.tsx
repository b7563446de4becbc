import { render } from "preact";
import { useState } from "preact/hooks";
import { embedded, type PageData, type Source } from "../data.ts";
import { Explorer } from "../kit/explorer.tsx";
import { Panel } from "../kit/panel.tsx";
import { Control, TokenNeeded } from "./control.ts";
import { liveSource } from "./live.ts";
import { savedSource } from "./saved.ts";

const app = document.getElementById("app")!;
const show = (source: Source) => render(<Explorer source={source} />, app);

async function begin(): Promise<void> {
  const data = JSON.parse((await embedded("data")) ?? "null") as PageData | null;
  if (!data) {
    app.textContent = "There is no trace in this file: `groupcoord page trace.jsonl --out page.html` puts one in.";
    return;
  }
  document.title = `${data.title} – groupcoord`;
  if (data.kind === "saved") show(savedSource(data));
  else await beginLive(data.title, new Control("../"), data.acts);
}

async function beginLive(title: string, control: Control, acts: boolean): Promise<void> {
  try {
    show(await liveSource(title, control, acts));
  } catch (problem) {
    const again = (token: string) => {
      control.keepToken(token);
      void beginLive(title, control, acts);
    };
    if (problem instanceof TokenNeeded) render(<TokenForm problem={problem.message} use={again} />, app);
    else app.textContent = `The cluster does not answer: ${(problem as Error).message}`;
  }
}

function TokenForm({ problem, use }: { problem: string; use(token: string): void }) {
  const [token, setToken] = useState("");
  return (
    <main style={{ maxWidth: "480px", margin: "15vh auto", padding: "0 12px" }}>
      <Panel title="This cluster requires its token">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            use(token);
          }}
        >
          <p>
            <label>
              The token of <code>--control-token</code>{" "}
              <input type="password" value={token} autocomplete="off" onInput={(event) => setToken(event.currentTarget.value)} />
            </label>{" "}
            <button type="submit">Use it</button>
          </p>
          <p class="quiet" role="status">{problem}</p>
        </form>
      </Panel>
    </main>
  );
}

void begin();
