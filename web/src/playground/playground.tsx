import { render } from "preact";
import "../kit/style.css";
import { Panel } from "../kit/panel.tsx";
import { Term } from "../kit/glossary.tsx";
import { ThemeToggle } from "../kit/theme.tsx";

function App() {
  return (
    <main style={{ padding: "12px" }}>
      <Panel title="groupcoord playground" aside={<ThemeToggle />}>
        A <Term id="group" /> and its <Term id="member">members</Term>.
      </Panel>
    </main>
  );
}

render(<App />, document.getElementById("app")!);
