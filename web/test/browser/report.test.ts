/** The page of the report, opened from its file. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CAUSE_LINES, causeLine } from "../../src/report/group_charts.tsx";
import { launch, missing, open, PYTHON, ROOT, violations } from "./browser.ts";

describe.skipIf(missing)("the report", () => {
  let browser: Browser;
  let folder: string;
  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(join(tmpdir(), "groupcoord-report-"));
    const made = spawnSync(PYTHON, ["web/test/browser/report_case.py", folder], { cwd: ROOT, encoding: "utf8", env: { ...process.env, PYTHONPATH: ROOT } });
    if (made.status !== 0) throw new Error(made.stderr);
  });
  afterAll(() => browser?.close());

  const shown = (name: string, options = {}) => open(browser, `file://${folder}/${name}.html`, options);
  const names = () => JSON.parse(readFileSync(join(folder, "names.json"), "utf8")) as { tables: string[]; causes: string[] };
  const panel = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
  const table = (page: Page, name: string) => page.getByRole("table", { name });
  const titles = (page: Page) => page.locator("svg title").allTextContents();

  test("says what the tables say, and asks nobody", async () => {
    const { page, problems } = await shown("history");
    await panel(page, "Overview").getByText("No history of a group has gaps").waitFor();
    expect(await panel(page, "Overview").innerText()).toMatch(/No history of a group has gaps: 26 offsets of the log are missing[\s\S]*Records read\s*20\s*of 2 partitions of the log/);
    expect(await page.getByRole("navigation", { name: "Sections" }).getByRole("link").allInnerTexts()).toEqual([
      "Overview", "Groups by trouble", "Group by group", "Storms", "Lag", "What if", "Data quality",
    ]);
    expect(await page.getByRole("list", { name: "The largest storms" }).getByRole("listitem").allInnerTexts()).toEqual([
      "app: 5 rebalances in 1 min 30 s, from 2026-01-01 00:00:00 UTC on; 3 of them: members joined.",
    ]);
    expect(await page.getByRole("list", { name: "The longest pauses" }).getByRole("listitem").allInnerTexts()).toEqual([
      "app: commits for 1 partition stopped for 43 s, from 2026-01-01 00:00:07 UTC on.",
    ]);
    const causes = (await table(page, "Why groups rebalanced").getByRole("row").allInnerTexts()).slice(1);
    expect(causes.map((row) => row.split(/\s*\t\s*/))).toEqual([
      ["members joined", "3", "app 2, modern 1"], ["members joined a group that was empty", "1", "quiet 1"], ["members left or timed out", "1", "app 1"],
    ]);
    const app = page.getByRole("article").first();
    expect(await app.innerText()).toMatch(/^app\s*classic, 2 members; assignor range; generation 3. Score .*storms of rebalances 5.0 \(seen once\)/);
    expect(await table(page, "The largest storms").getByRole("row").last().innerText()).toContain("b joined; a left or timed out; x; and 1 other");
    expect(await table(page, "All groups together").getByRole("row").count()).toBe(4);
    expect(await panel(page, "Data quality").innerText()).toMatch(/the key is cut off\s*1[\s\S]*torn tail: no whole batch/);
    expect(problems).toEqual([]);
    await page.close();
  });

  test("every mark of a drawing says what it is, also where it is clicked", async () => {
    const { page } = await shown("history");
    await page.getByRole("article").first().waitFor();
    const said = await titles(page);
    expect(said).toContain("generation 3, 2026-01-01 00:01:30.000 UTC: a left or timed out; 1 → 1 member; 4 of 4 partitions moved, 3 needlessly");
    expect(said).toContain("a: from 2026-01-01 00:00:00 UTC to 2026-01-01 00:01:30 UTC, 2 to 4 partitions");
    expect(said).toContain("b: from 2026-01-01 00:00:30 UTC on, not seen leaving, 2 to 4 partitions");
    expect(said).toContain("orders-1: nobody");
    expect(said).toContain("orders-0: m, which is to give it back");
    expect(said).toContain("epoch 7: members change over for 10,375 ms, then the next epoch came before all had it");
    const drawing = page.getByRole("img", { name: /^Members, rebalances and commits/ }).first();
    const box = (await drawing.boundingBox())!;
    await drawing.click({ position: { x: (box.width * 30) / 112, y: 4 } });
    await page.locator("output", { hasText: "b joined; 1 → 2 members" }).waitFor();
    await page.close();
  });

  test("what is drawn stands in tables, too, which sort by any column", async () => {
    const { page } = await shown("history");
    const app = page.getByRole("article").first();
    await app.getByText("3 rebalances in words").click();
    const rows = app.getByRole("table", { name: "The rebalances that are drawn" });
    const firsts = async () => (await rows.getByRole("row").allInnerTexts()).slice(1).map((row) => row.split("\t")[0]);
    expect(await firsts()).toEqual(["1", "2", "3"]);
    await rows.getByRole("button", { name: "Generation" }).click();
    expect(await firsts()).toEqual(["3", "2", "1"]);
    expect(await rows.getByRole("columnheader", { name: /^Generation/ }).getAttribute("aria-sort")).toBe("descending");
    const modern = page.getByRole("article").filter({ hasText: "assignment epoch" });
    await modern.getByText("6 changes in the lives of members in words").click();
    expect(await modern.getByRole("table", { name: "What members had" }).innerText()).toContain("it was told to give partitions back");
    await page.close();
  });

  test("every number says which table of the pipeline it is from, and each link leads somewhere", async () => {
    const { page } = await shown("history");
    await page.getByRole("article").first().waitFor();
    const there = new Set(names().tables);
    const named = await page.locator(".from code").allTextContents();
    expect(named.filter((each) => !there.has(each))).toEqual([]);
    expect(await page.locator("table, figure, dd").count()).toBe(await page.locator("caption .from, figcaption .from, dd .from").count());
    const lost = await page.evaluate(() => [...document.querySelectorAll("a")].filter((link) => !document.querySelector(link.getAttribute("href")!)).length);
    expect(lost).toBe(0);
    await page.close();
  });

  test("each kind of line is for causes that the pipeline tells of", () => {
    const { causes } = names();
    expect(Object.values(CAUSE_LINES).flatMap((line) => line.causes).filter((cause) => !causes.includes(cause))).toEqual([]);
    expect(new Set(causes.map(causeLine))).toEqual(new Set(Object.keys(CAUSE_LINES)));
  });

  test("has no part for what was not asked for, and says what there is not", async () => {
    const { page: plain } = await shown("plain");
    await panel(plain, "Lag").waitFor();
    expect(await panel(plain, "What if: other assignors").count()).toBe(0);
    await plain.close();
    const { page } = await shown("empty");
    await page.getByText("No record has a time.").waitFor();
    for (const words of ["There are no groups.", "There are no storms.", "There are no committed offsets.", "No partition was read."]) expect(await page.getByText(words).count()).toBe(1);
    expect(await page.locator("figure").count()).toBe(0);
    await page.close();
  });

  test("no name is more than text, and invisible characters are seen", async () => {
    const { page, problems } = await shown("hostile");
    await page.getByRole("article").first().waitFor();
    expect(await page.locator("img:not([role]), iframe, link:not([rel=icon]), #app script, #app style").count()).toBe(0);
    const words = await page.evaluate(() => document.getElementById("app")!.outerHTML);
    expect(words).toContain("\\u202egpj.exe\\u2066");
    expect(words).toContain("\\ud800 half");
    expect(words).toContain("(empty)");
    expect(words).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f\u200e\u200f\u2028\u202a-\u202e\u2066-\u2069]/);
    expect(await page.locator(`bdi[title="${"x".repeat(300)}"]`).first().innerText()).toContain("xxx…xxx");
    expect(problems).toEqual([]);
    await page.close();
  });

  for (const colorScheme of ["light", "dark"] as const) {
    for (const width of [1400, 800, 390]) {
      test(`is accessible and fits, ${colorScheme}, ${width} pixels`, async () => {
        const { page } = await shown("history", { colorScheme, viewport: { width, height: 900 } });
        await page.getByRole("article").first().waitFor();
        for (const closed of await page.locator("summary").all()) await closed.click();
        expect(await violations(page)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
        await page.close();
      });
    }
  }
});
