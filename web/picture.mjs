/** The picture of a report in the docs: the page from its top to the end of the first group, whatever is below it left out.
 *
 *   groupcoord pipeline demo --fast --no-open --out build/pipeline-demo
 *   node web/picture.mjs build/pipeline-demo/report.html docs/images/pipeline-report.png
 */
import { resolve } from "node:path";
import { chromium } from "playwright-core";

const [page, picture] = process.argv.slice(2).map((path) => resolve(path));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const shown = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
await shown.goto(`file://${page}`);
await shown.getByRole("article").first().waitFor();
await shown.addStyleTag({ content: "article ~ article, #details ~ section, footer { display: none }" });
await shown.screenshot({ path: picture, fullPage: true });
await browser.close();
