/** The report of a run of `groupcoord pipeline`: what is in its `report.json`. */
import { render } from "preact";
import { embedded } from "../data.ts";
import "../kit/style.css";
import { ThemeToggle } from "../kit/theme.tsx";
import { GroupsPanel } from "./groups_panel.tsx";
import { parseReport, type Report, type Vocabulary } from "./model.ts";
import "./report.css";
import { DetailsPanel, LagPanel, OverviewPanel, QualityPanel, StormsPanel, WhatIfPanel } from "./sections.tsx";

const app = document.getElementById("app")!;

async function begin(): Promise<void> {
  const [report, vocabulary] = await Promise.all([embedded("report"), embedded("vocabulary")]);
  if (report === null || vocabulary === null) app.textContent = "There is no report in this file: `groupcoord pipeline run` puts one in.";
  else {
    render(<ReportPage report={parseReport(report)} vocabulary={JSON.parse(vocabulary) as Vocabulary} />, app);
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }
}

function ReportPage({ report, vocabulary }: { report: Report; vocabulary: Vocabulary }) {
  const anchors = new Map(report.details.map(({ group }, place) => [group.group, `g${place + 1}`]));
  const sections: [string, string, boolean][] = [
    ["overview", "Overview", true],
    ["groups", "Groups by health", true],
    ["details", "Group by group", report.details.length > 0],
    ["storms", "Storms", true],
    ["lag", "Lag", true],
    ["what-if", "What if", report.what_if !== null],
    ["quality", "Data quality", true],
  ];
  return (
    <div class="report">
      <header>
        <div class="title"><h1>What the consumer groups did</h1><ThemeToggle /></div>
        <p>All times are in UTC.</p>
        <nav aria-label="Sections">
          <ul>{sections.filter(([, , isThere]) => isThere).map(([id, title]) => <li key={id}><a href={`#${id}`}>{title}</a></li>)}</ul>
        </nav>
      </header>
      <main>
        <OverviewPanel report={report} vocabulary={vocabulary} anchors={anchors} />
        <GroupsPanel report={report} vocabulary={vocabulary} anchors={anchors} />
        {report.details.length > 0 && <DetailsPanel report={report} vocabulary={vocabulary} anchors={anchors} />}
        <StormsPanel report={report} anchors={anchors} />
        <LagPanel report={report} anchors={anchors} />
        <WhatIfPanel report={report} />
        <QualityPanel report={report} />
      </main>
      <footer class="quiet">Made by groupcoord pipeline.</footer>
    </div>
  );
}

void begin();
