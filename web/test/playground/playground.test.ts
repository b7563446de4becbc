/** The playground as `make playground` builds it, opened from its folder, with no network. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launch, missing, open } from "../browser/browser.ts";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const BUILT = new URL("../../../build/playground/index.html", import.meta.url);
/** Python starts in seconds, on a machine that does nothing else. */
const START_MS = 80_000;

describe.skipIf(missing)("the playground", () => {
  let browser: Browser;
  let page: Page;
  let problems: string[];
  beforeAll(async () => {
    if (!existsSync(BUILT)) throw new Error("the playground is not built: make playground");
    browser = await launch();
    ({ page, problems } = await open(browser, BUILT.href, { offline: true }));
    await page.getByRole("heading", { name: "Lessons" }).waitFor({ timeout: START_MS });
  }, START_MS + 10_000);
  afterAll(() => browser?.close());

  const group = (name: string) => page.getByRole("region", { name: `Group ${name}` });

  test("walks a lesson to its end, one step back, and to its beginning", async () => {
    await page.getByRole("button", { name: "From eager to cooperative to KIP-848" }).click();
    await page.getByRole("button", { name: "Begin" }).click();
    const steps = 9;
    for (let step = 1; step <= steps; step += 1) {
      await page.getByRole("heading", { name: `${step} of ${steps}:` }).waitFor();
      expect(await page.getByText(/of \d+ checks hold/).innerText()).toMatch(/^(\d+) of \1 checks hold$/);
      if (step === 3) await page.getByText("a joined again at 3.0 s").first().waitFor();
      if (step < steps) await page.getByRole("button", { name: "Next →" }).click();
    }
    await group("coop").getByText("Stable").first().waitFor();
    await page.getByText("because g joined by the consumer protocol").first().waitFor();
    await page.getByText("That was the last step.").waitFor();
    await page.getByRole("button", { name: "← Back" }).click();
    await page.getByRole("heading", { name: `8 of ${steps}:` }).waitFor();
    await page.getByRole("button", { name: "Replay" }).click();
    await page.getByRole("heading", { name: "Before the first step" }).waitFor();
    await page.keyboard.press("ArrowRight");
    await page.getByRole("heading", { name: `1 of ${steps}:` }).waitFor();
    await page.getByRole("button", { name: "All lessons" }).click();
    expect(problems).toEqual([]);
  });

  test("plays freely: a member that is killed is missed when its session is over, and the other one gets what it had", async () => {
    const add = page.getByRole("button", { name: "Add a member" });
    await add.click();
    await page.getByRole("heading", { name: "app-1 running" }).waitFor();
    await add.click();
    await page.getByRole("heading", { name: "app-2 running" }).waitFor();
    await page.getByRole("button", { name: "Until app is stable" }).click();
    await page.getByText("generation 2, owns orders-3, orders-4, orders-5").waitFor();
    await page.getByRole("group", { name: "What can happen to app-2" }).getByRole("button", { name: "Kill" }).click();
    await page.getByRole("heading", { name: "app-2 killed" }).waitFor();
    await page.getByRole("button", { name: "Advance" }).click(); // by 46 s
    await group("app").getByText("app-2 is out: nothing was heard of it").first().waitFor();
    await page.getByRole("button", { name: "Until app is stable" }).click();
    await page.getByText("generation 3, owns orders-0, orders-1, orders-2, orders-3, orders-4, orders-5").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("generation 2, owns orders-0, orders-1, orders-2").waitFor();
    expect(problems).toEqual([]);
  });

  test("says what cannot be, and nothing has changed", async () => {
    await page.getByRole("spinbutton").fill("99999999");
    await page.getByRole("button", { name: "Advance" }).click();
    await page.getByText("seconds=99999999: 0 to 2,592,000 seconds").waitFor();
  });

  for (const theme of ["light", "dark"])
    test(`is accessible in ${theme} colours`, async () => {
      await page.evaluate((chosen) => (document.documentElement.dataset.theme = chosen), theme);
      await page.addScriptTag({ path: AXE });
      const found = await page.evaluate(() => (globalThis as unknown as { axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe.run());
      expect(found.violations.map((each) => `${each.id}: ${each.nodes[0]?.html}`)).toEqual([]);
    });
});
