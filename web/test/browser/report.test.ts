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
  /** Opens every group, and whatever else is folded, and so every drawing and table. */
  async function openAll(page: Page): Promise<void> {
    await page.getByRole("article").first().waitFor();
    const unfold = () => page.locator("details:not([open]) > summary").evaluateAll((all) => all.forEach((each) => (each as HTMLElement).click()));
    await unfold();
    await page.locator("article > details > summary + *").nth((await page.getByRole("article").count()) - 1).waitFor();
    await unfold();
  }
  /** What is wider than the place it has: the page itself, and tables. */
  const sideways = (page: Page) => page.evaluate(() =>
    [document.documentElement, ...document.querySelectorAll(".scroll")].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.getAttribute("aria-label") ?? each.tagName),
  );
  const titles = (page: Page) => page.locator("svg title").allTextContents();

  test("says what the tables say, and asks nobody", async () => {
    const { page, problems } = await shown("history");
    await panel(page, "Overview").getByText("No history of a group has gaps").waitFor();
    expect(await panel(page, "Overview").innerText()).toMatch(/No history of a group has gaps: 26 offsets of the log are missing[\s\S]*Records read\s*20\s*of 2 partitions of the log/);
    expect(await page.getByRole("navigation", { name: "Sections" }).getByRole("link").allInnerTexts()).toEqual([
      "Overview", "Groups by health", "Group by group", "Storms", "Lag", "What if", "Data quality",
    ]);
    expect(await page.getByRole("list", { name: "The largest storms" }).getByRole("listitem").allInnerTexts()).toEqual([
      "app: 5 rebalances in 1 min 30 s, from 2026-01-01 00:00:00 UTC on; 3 of them: b, c joined; sticky would have stopped 4 partitions instead of 12.",
    ]);
    expect(await page.getByRole("list", { name: "The longest pauses" }).getByRole("listitem").allInnerTexts()).toEqual([
      "app: commits for 1 partition stopped for 43 s, from 2026-01-01 00:00:07 to 2026-01-01 00:00:50 UTC.",
    ]);
    expect(await page.getByRole("list", { name: "Look at these groups first" }).getByRole("listitem").first().innerText()).toBe(
      "app: 1 storm of rebalances, 3 partitions that moved and need not have, 1 pause in which commits stopped, 1 commit as if by a member that had lost the partition, 1 of 2 partitions with records that were deleted before they were read, 1 of 2 partitions whose lag is not OK, 3 rebalances.",
    );
    expect(await page.getByRole("list", { name: "Open transactions" }).getByRole("listitem").allInnerTexts()).toEqual([
      "orders-0: a transaction of producer 7 with transactional id payments is open since 2026-01-01 00:00:15 UTC, so that consumers that read committed stop at offset 20, 80 offsets before the end; it holds up modern.",
      "ledger-0, ledger-1, ledger-2 and 2 more: a transaction of producer 8 is open since 2026-01-01 00:00:20 UTC, so that consumers that read committed stop before the end, by 14 offsets at most; groups there: app.",
    ]);
    // That it is held up is told with the transaction, and with the group itself.
    expect(await page.getByRole("list", { name: "Look at these groups first" }).getByRole("listitem").allInnerTexts()).toContain("modern: 1 rebalance.");
    const modern = page.getByRole("article").filter({ hasText: "1 transaction open for over a minute that it waits for, 1 rebalance" });
    await modern.getByRole("heading", { name: "modern" }).click();
    await modern.getByText("It waits in orders-0 for the end of a transaction of producer 7 with transactional id payments, which is open since 2026-01-01 00:00:15 UTC.").waitFor();
    const causes = (await table(page, "Why groups rebalanced").getByRole("row").allInnerTexts()).slice(1);
    expect(causes.map((row) => row.split(/\s*\t\s*/))).toEqual([
      ["members joined", "3", "app 2, modern 1"], ["members joined a group that was empty", "1", "quiet 1"], ["members left or timed out", "1", "app 1"],
    ]);
    const app = page.getByRole("article").first();
    expect(await app.innerText()).toMatch(/^app\s*1 storm of rebalances, .*\s*classic, 2 members; assignor range; generation 3. Score 22.3: storms of rebalances 5.0/);
    expect(await table(page, "The largest storms").getByRole("row").last().innerText()).toContain("b joined; a left or timed out; x; and 1 other");
    expect(await table(page, "All groups together").getByRole("row").count()).toBe(4);
    expect(await panel(page, "Data quality").innerText()).toMatch(/the key is cut off\s*1[\s\S]*torn tail: no whole batch/);
    expect(problems).toEqual([]);
    await page.close();
  });

  test("every mark of a drawing says what it is, also where it is clicked", async () => {
    const { page } = await shown("history");
    await openAll(page);
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
    await page.goto(`${page.url()}#g2`);
    const modern = page.getByRole("article").filter({ hasText: "assignment epoch" });
    await modern.getByText("6 changes in the lives of members in words").click();
    expect(await modern.getByRole("table", { name: "What members had" }).innerText()).toContain("it was told to give partitions back");
    await page.close();
  });

  test("a group is drawn when somebody opens it, follows a link to it, or prints", async () => {
    const { page } = await shown("history");
    const articles = page.getByRole("article");
    await articles.first().waitFor();
    const drawn = () => articles.evaluateAll((all) => all.map((each) => each.querySelector("figure") !== null));
    expect(await drawn()).toEqual([true, false, false, false]);
    await articles.nth(3).getByRole("heading", { name: "simple" }).click();
    await articles.nth(3).getByRole("figure").waitFor();
    await table(page, "Groups by health").getByRole("link", { name: "quiet" }).click();
    await articles.nth(2).getByRole("figure").first().waitFor();
    expect(await drawn()).toEqual([true, false, true, true]);
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    await articles.nth(1).getByRole("figure").first().waitFor();
    await page.close();
  });

  test("each part says in its corner which tables of the pipeline it is from, and each link leads somewhere", async () => {
    const { page } = await shown("history");
    await page.getByRole("article").first().waitFor();
    const there = new Set(names().tables);
    const named = (await page.locator(".sources dd").allTextContents()).flatMap((each) => each.split(", "));
    expect(named.filter((each) => !there.has(each))).toEqual([]);
    expect(await page.getByRole("region").count()).toBe(await page.locator(".panel > header .sources").count());
    const lost = await page.evaluate(() => [...document.querySelectorAll("a")].filter((link) => !document.querySelector(link.getAttribute("href")!)).length);
    expect(lost).toBe(0);
    await page.close();
  });

  test("bars stand where rows differ, and nowhere else", async () => {
    const { page } = await shown("history");
    await page.getByRole("article").first().waitFor();
    expect(await table(page, "The longest lags").locator(".in-bar").count()).toBe(0);
    expect(await table(page, "All groups together").locator(".in-bar").count()).toBe(9);
    await page.close();
  });

  test("five thousand groups are found by words, kind, state and problem, and the address keeps what was asked", async () => {
    const { page, problems } = await shown("crowd");
    const rows = table(page, "Groups by health").locator("tbody tr");
    const found = page.getByRole("search").getByRole("status");
    await page.getByText("1 to 50 of 5,000").waitFor();
    expect(await rows.count()).toBe(50);
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("51 to 100 of 5,000").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("Payments 0120");
    await found.getByText("1 of 5,000 groups").waitFor();
    expect(await rows.first().innerText()).toMatch(/^payments-service-consumer-0120\s.*23 partitions that moved and need not have/);
    await page.getByRole("searchbox").fill("");
    await page.getByLabel("Problem").selectOption("storms of rebalances");
    await found.getByText("500 of 5,000 groups").waitFor();
    await page.getByLabel("Kind").selectOption("classic");
    await page.getByLabel("State").selectOption("gone");
    await found.getByText("0 of 5,000 groups").waitFor();
    await page.getByLabel("State").selectOption("Stable");
    await found.getByText("250 of 5,000 groups").waitFor();
    await page.goto(page.url());
    await found.getByText("250 of 5,000 groups").waitFor();
    expect(await page.getByLabel("Problem").inputValue()).toBe("storms");
    expect(problems).toEqual([]);
    await page.close();
  });

  test("no name of a group is broken inside a word, and all columns of groups fit on 800 pixels", async () => {
    const { page } = await shown("crowd", { viewport: { width: 800, height: 900 } });
    const box = page.getByRole("group", { name: "Groups by health" });
    await box.waitFor();
    expect(await box.evaluate((each) => each.scrollWidth - each.clientWidth)).toBe(0);
    const link = table(page, "Groups by health").getByRole("link").first();
    const lines = await link.evaluate((each) => {
      const text = each.querySelector("bdi")!.firstChild!;
      const tops = [...text.textContent!].map((_, place) => {
        const range = document.createRange();
        range.setStart(text, place);
        range.setEnd(text, place + 1);
        return range.getClientRects()[0]!.top;
      });
      return [...text.textContent!].filter((_, place) => tops[place + 1]! > tops[place]!);
    });
    expect(new Set(lines)).toEqual(new Set(["-"]));
    await page.close();
  });

  for (const groups of ["five", "four hundred"]) {
    test(`nothing of ${groups} groups has to be scrolled sideways, and on a phone a group is a card`, async () => {
      for (const width of [390, 800, 1400]) {
        const { page } = await shown(groups, { viewport: { width, height: 900 } });
        await openAll(page);
        expect(await sideways(page)).toEqual([]);
        const first = table(page, "Groups by health").getByRole("row").nth(1);
        const [name, score] = await Promise.all([0, 1].map((place) => first.getByRole("cell").nth(place).boundingBox()));
        expect(score!.y > name!.y).toBe(width === 390);
        await page.close();
      }
    });
  }

  test("a phone sorts cards by any column", async () => {
    const { page } = await shown("five", { viewport: { width: 390, height: 900 } });
    const groups = table(page, "Groups by health");
    await groups.getByRole("button", { name: "Commits" }).click();
    expect(await groups.getByRole("row").nth(1).innerText()).toContain("payments-service-consumer-0004");
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
        await openAll(page);
        expect(await violations(page)).toEqual([]);
        expect(await sideways(page)).toEqual([]);
        await page.close();
      });
    }
  }
});
