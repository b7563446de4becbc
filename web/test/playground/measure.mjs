// How long the playground takes until it can be used: `node test/playground/measure.mjs [TIMES]` in web/, after `make playground`.
import { statSync } from "node:fs";
import { chromium } from "playwright-core";

const built = new URL("../../../build/playground/index.html", import.meta.url);
const quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const times = { "text is there": [], "lessons can be opened": [], "the first step is done": [] };
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: quiet });
for (let run = 0; run < Number(process.argv[2] ?? 5); run += 1) {
  const page = await browser.newPage();
  const begun = performance.now();
  const took = (what) => times[what].push(performance.now() - begun);
  await page.goto(built.href);
  await page.getByText("groupcoord playground").first().waitFor();
  took("text is there");
  await page.getByRole("button", { name: "The life of an offset" }).click({ timeout: 120_000 });
  took("lessons can be opened");
  await page.getByRole("button", { name: "Begin" }).click();
  await page.getByRole("heading", { name: "1 of 6:" }).waitFor();
  took("the first step is done");
  await page.close();
}
await browser.close();
console.log(`size                    ${(statSync(built).size / 1e6).toFixed(1)} MB`);
for (const [what, all] of Object.entries(times)) {
  const [least, middle, most] = [0, 0.5, 1].map((part) => (all.sort((one, other) => one - other)[Math.round(part * (all.length - 1))] / 1000).toFixed(1));
  console.log(`${what.padEnd(23)} ${middle} s (${least} to ${most} s of ${all.length})`);
}
