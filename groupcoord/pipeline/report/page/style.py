"""How the page looks: on a screen of any width, in print, by day and by night."""

STYLE = """
:root { color-scheme: light dark; --bg: #fff; --fg: #1b1f24; --soft: #57606a; --line: #d0d7de; --card: #f4f6f8;
  --link: #0550ae; --bar: #4c8fd6; --bar-r: #d1702f; --heat: #1f6fb5; --storm: #fae0cb; --lost: #b3261e; --came: #0a6e5c;
  --step: #6e7781; --gone: #8a5a00; --vote: #6639a6; --else: #444c56; --others: #b6bec8;
  --c0: #4e79a7; --c1: #f0913a; --c2: #59a14f; --c3: #d3616a; --c4: #76b7b2; --c5: #b6992d; --c6: #a474a8; --c7: #9c755f;
  --c8: #5b6fd6; --c9: #8f9c2f; }
@media (prefers-color-scheme: dark) { :root { --bg: #14171b; --fg: #e6e9ed; --soft: #a6b0bc; --line: #363d47; --card: #1e2329;
  --link: #79b8ff; --bar: #5b9ae0; --bar-r: #e0844a; --heat: #6cb2ee; --storm: #5a3b22; --lost: #ff8f85; --came: #5fd3bb;
  --step: #98a3b0; --gone: #e0b050; --vote: #c3a6ff; --else: #c9d1d9; --others: #59626e; } }
@media print { :root { color-scheme: light; --bg: #fff; --fg: #000; --soft: #444; --line: #bbb; --card: #f4f4f4; --link: #000;
  --bar: #4c8fd6; --bar-r: #d1702f; --heat: #1f6fb5; --storm: #fae0cb; --lost: #b3261e; --came: #0a6e5c; --step: #6e7781;
  --gone: #8a5a00; --vote: #6639a6; --else: #444c56; --others: #b6bec8; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0 auto; max-width: 76rem; padding: 0 1rem 3rem; background: var(--bg); color: var(--fg);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 1.5rem 0 .3rem; }
h2 { font-size: 1.35rem; margin: 2.6rem 0 .4rem; padding-top: .6rem; border-top: 2px solid var(--line); }
h3 { font-size: 1.1rem; margin: 0 0 .3rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
a { color: var(--link); }
code { font: .92em ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
bdi { overflow-wrap: anywhere; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; list-style: none; margin: .8rem 0 0; padding: 0; }
.lead { max-width: 62rem; }
.more, .from { color: var(--soft); font-size: .85rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(12.5rem, 1fr)); gap: .7rem; margin: 1rem 0; }
.facts > div { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; }
dt { font-size: .9rem; color: var(--soft); }
dd { margin: 0; }
dd b { display: block; font-size: 1.5rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
dd span { display: block; }
.scroll { overflow-x: auto; margin: 1rem 0 .3rem; max-width: 100%; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; font-size: .88rem; min-width: min(100%, 24rem); }
caption { text-align: left; font-weight: 600; padding: .2rem 0 .4rem; position: sticky; left: 0; max-width: min(92vw, 74rem); }
caption .from, figcaption .from { font-weight: 400; }
th, td { text-align: left; vertical-align: top; padding: .32rem .6rem .32rem 0; border-bottom: 1px solid var(--line); }
th { font-size: .82rem; vertical-align: bottom; }
th small { display: block; font-weight: 400; color: var(--soft); }
td { min-width: 2.6rem; }
td bdi { display: inline-block; max-width: 30rem; }
td:first-child bdi { min-width: 8rem; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; }
td time { white-space: nowrap; }
th button { font: inherit; color: inherit; background: none; border: 0; padding: .2rem 0; text-align: inherit; cursor: pointer;
  text-decoration: underline dotted; text-underline-offset: .25em; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
.inbar { display: block; width: 100%; min-width: 3rem; height: 10px; }
article { border: 1px solid var(--line); border-radius: .6rem; padding: .9rem 1rem; margin: 1.2rem 0; }
details { margin: .4rem 0; }
summary { cursor: pointer; padding: .2rem 0; }
figure { margin: 1rem 0; }
figcaption { font-size: .9rem; margin-bottom: .3rem; overflow-wrap: anywhere; }
.chart { display: grid; grid-template-columns: minmax(0, 11rem) minmax(0, 1fr); gap: 0 .6rem; }
.labels { list-style: none; margin: 0; padding: 0; font-size: .8rem; text-align: right; }
.labels li { height: 18px; line-height: 18px; white-space: nowrap; display: flex; justify-content: flex-end; }
.labels bdi { overflow: hidden; text-overflow: ellipsis; }
.labels.tall li { height: 48px; line-height: 48px; }
.drawing { min-width: 0; }
.drawing svg { display: block; width: 100%; background: var(--card); }
.axis { display: flex; justify-content: space-between; font-size: .75rem; color: var(--soft); padding-top: .2rem;
  font-variant-numeric: tabular-nums; }
.tip { display: block; min-height: 1.4em; font-size: .85rem; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; list-style: none; margin: .2rem 0; padding: 0; font-size: .85rem; }
.legend svg { vertical-align: -.15em; }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); } .c4 { fill: var(--c4); }
.c5 { fill: var(--c5); } .c6 { fill: var(--c6); } .c7 { fill: var(--c7); } .c8 { fill: var(--c8); } .c9 { fill: var(--c9); }
.others { fill: var(--others); } .nobody { fill: var(--step); } .heat { fill: var(--heat); } .storm { fill: var(--storm); }
.bar { fill: var(--bar); } .bar-r { fill: var(--bar-r); } .fair { stroke: var(--fg); stroke-width: 2px; }
.r-lost { stroke: var(--lost); stroke-width: 2px; } .r-came { stroke: var(--came); stroke-width: 2px; stroke-dasharray: 6 3; }
.r-step { stroke: var(--step); stroke-width: 1.5px; stroke-dasharray: 2 3; }
.r-gone { stroke: var(--gone); stroke-width: 1.5px; stroke-dasharray: 8 2 2 2; }
.r-vote { stroke: var(--vote); stroke-width: 2px; stroke-dasharray: 3 2; }
.r-else { stroke: var(--else); stroke-width: 2px; stroke-dasharray: 4 2; }
.r-thin { stroke: var(--fg); stroke-width: 1px; stroke-opacity: .35; }
.mark.on line { stroke-width: 4px; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .6rem; }
@media (max-width: 40rem) {
  body { padding: 0 .7rem 2rem; }
  .facts { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem; }
  .chart { grid-template-columns: minmax(0, 6.2rem) minmax(0, 1fr); gap: 0 .4rem; }
  .axis span:not(:first-child):not(:last-child) { display: none; }
  article { padding: .7rem .6rem; }
  td bdi { max-width: 14rem; }
  td:first-child bdi { min-width: 7rem; }
}
@media print {
  html { font-size: 8.5pt; }
  body { max-width: none; padding: 0; }
  nav, .tip { display: none; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  .scroll { overflow: visible; }
  table { font-size: .84rem; }
  th, td { padding-right: .35rem; }
  td { min-width: 0; }
  td bdi, td:first-child bdi { max-width: 12rem; min-width: 0; }
  .inbar { min-width: 1.5rem; }
  tr, figure, .facts > div { break-inside: avoid; }
  h2, h3, caption, figcaption { break-after: avoid; }
}
"""
