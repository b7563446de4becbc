/** A page of a saved trace, opened from its file. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launch, missing, open, savedPage, violations } from "./browser.ts";

describe.skipIf(missing)("a saved page", () => {
  let browser: Browser;
  let url: string;
  beforeAll(async () => {
    browser = await launch();
    url = savedPage("baristas.jsonl");
  });
  afterAll(() => browser?.close());

  const group = (page: Page) => page.getByRole("region", { name: "Group baristas" });
  const why = (page: Page) => page.getByRole("region", { name: "Why" });
  const arrows = (page: Page) => page.getByRole("listbox", { name: "Sequence diagram" });

  test("says at once who is in the group, who owns what, what happened and why, and asks nobody", async () => {
    const { page, problems } = await open(browser, url);
    await group(page).getByText("Stable").first().waitFor();
    expect(await group(page).getByRole("row").count()).toBe(3);
    expect(await group(page).innerText()).toMatch(/orders-0[\s\S]*orders-3[\s\S]*leader baristas-1 assigns generation 3/);
    await why(page).getByText("generation 3: member baristas-2").waitFor();
    expect(problems).toEqual([]);
    await page.close();
  });

  test("a click on an arrow shows why, and its bytes field by field", async () => {
    const { page, problems } = await open(browser, url);
    await arrows(page).getByRole("option", { name: /baristas-1 asks JoinGroup/ }).last().click();
    await why(page).getByText("JoinGroup v9 request").waitFor();
    const field = why(page).getByRole("row", { name: /group_id baristas/ });
    await field.hover();
    const marked = await why(page).locator(".hex .on").allInnerTexts();
    const text = String.fromCharCode(...marked.map((byte) => parseInt(byte, 16)));
    expect(text).toContain("baristas");
    await why(page).getByText("What followed from it").click();
    await why(page).getByRole("button", { name: /joins again/ }).click();
    await why(page).getByText("Because").waitFor();
    expect(problems).toEqual([]);
    await page.close();
  });

  test("names __transaction_state where its records are shown, too", async () => {
    const appended = {
      seq: 277, at_ms: 1764000076000, real_ms: 552, event: "trace.RecordsAppended", caused_by: 276, answers: null,
      cause: { type: "AdminAction", action: "an append" },
      fields: {
        topic: "__transaction_state", partition: 3, base_offset: 0, end_offset: 1,
        records: [[0, 'TransactionLog transactionalId="billing"', "v1 producerId=0"]],
      },
    };
    const { page } = await open(browser, savedPage("baristas.jsonl", `${JSON.stringify(appended)}\n`));
    await page.getByRole("region", { name: "__consumer_offsets", exact: true }).getByLabel("all groups").check();
    const both = page.getByRole("region", { name: "__consumer_offsets and __transaction_state", exact: true });
    await both.getByText(/TransactionLog transactionalId="billing"/).first().waitFor();
    await page.close();
  });

  test("goes back in time with the slider and with the keyboard alone", async () => {
    const { page, problems } = await open(browser, url);
    await group(page).getByText("Stable").first().waitFor();
    const slider = page.getByRole("slider", { name: "The moment that is shown" });
    await slider.focus();
    await page.keyboard.press("Home");
    expect(await slider.getAttribute("aria-valuetext")).toMatch(/^0\.0 s, entry 1 of/);
    await page.keyboard.press("Tab"); // Next
    for (let step = 0; step < 5; step += 1) await page.keyboard.press("Enter");
    await group(page).getByText("generation 1: 2 members").waitFor();
    await why(page).getByText("began at").waitFor();
    await arrows(page).focus();
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowUp");
    expect(await arrows(page).locator('[aria-selected="true"]').count()).toBe(1);
    expect(await arrows(page).getAttribute("aria-activedescendant")).toBe(await arrows(page).locator('[aria-selected="true"]').getAttribute("id"));
    expect(problems).toEqual([]);
    await page.close();
  });

  test("explains a term to who reaches it with the keyboard", async () => {
    const { page } = await open(browser, url);
    const term = group(page).getByRole("button", { name: "generation", exact: true });
    await term.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("note").getByText("The number of a classic group's membership").waitFor();
    await page.keyboard.press("Escape");
    expect(await page.getByRole("note").count()).toBe(0);
    await page.close();
  });

  test("shows each group, also one of KIP-848", async () => {
    const { page } = await open(browser, url);
    await page.getByRole("button", { name: /^modern .* Stable/ }).click();
    await page.getByRole("region", { name: "Group modern" }).getByText("consumer protocol (KIP-848)").waitFor();
    await why(page).getByText(/^epoch 3: .* joined/).first().waitFor();
    await page.close();
  });

  for (const colorScheme of ["light", "dark"] as const) {
    for (const width of [1400, 800, 390]) {
      test(`is accessible and fits, ${colorScheme}, ${width} pixels`, async () => {
        const { page } = await open(browser, url, { colorScheme, viewport: { width, height: 900 } });
        await group(page).getByText("Stable").first().waitFor();
        await arrows(page).getByRole("option").last().click();
        await page.getByText("request").or(page.getByText("response")).first().waitFor();
        expect(await violations(page)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
        await page.close();
      });
    }
  }

  test("can be made dark by hand", async () => {
    const { page } = await open(browser, url, { colorScheme: "light" });
    const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await ground();
    await page.getByRole("button", { name: "Use dark colours" }).click();
    await expect.poll(ground).not.toBe(light);
    await page.close();
  });
});
