/** The page of a cluster that lives: groupcoord serve --page. */
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { end, launch, missing, open, python, type Running } from "./browser.ts";

const MEMBER = join(import.meta.dirname, "member.py");

describe.skipIf(missing)("a live page", () => {
  let browser: Browser;
  const running: Running[] = [];
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await Promise.all(running.map(end));
  });

  /** The addresses of a new cluster: for clients, and of its page. */
  async function serve(...options: string[]): Promise<[string, string]> {
    const server = await python(["-m", "groupcoord", "serve", "-q", "--dev", "--port", "0", "--topic", "orders:4", "--page", ...options], /page at \S+/);
    running.push(server);
    return [/listening on (\S+)/.exec(server.said)![1]!, /page at (\S+)/.exec(server.said)![1]!];
  }

  async function member(address: string, name: string): Promise<Running> {
    const started = await python([MEMBER, address, "baristas", name], /joined/);
    running.push(started);
    return started;
  }

  const group = (page: Page) => page.getByRole("region", { name: "Group baristas" });

  test("shows a rebalance that happens, and does what its buttons say", async () => {
    const [address, url] = await serve();
    const { page, problems } = await open(browser, url);
    await page.getByText("There is no").waitFor();
    await member(address, "alice");
    await group(page).getByText("1 member", { exact: false }).first().waitFor();
    await member(address, "bob");
    await group(page).getByText("2 members").first().waitFor();
    await page.getByRole("region", { name: "Partition assignment over time" }).getByRole("button", { name: /because .*bob/ }).first().waitFor();

    await page.getByRole("button", { name: "Expire a member" }).click();
    await page.getByLabel("Member", { exact: true }).selectOption({ label: "bob" });
    await page.locator("form").getByRole("button", { name: "Expire a member" }).click();
    // Bob comes back at once, and what happened just now is soon no longer the last: the generation stays.
    await page.getByRole("region", { name: "Partition assignment over time" }).getByRole("button", { name: /because .*bob.* is out/ }).waitFor();

    await page.getByRole("button", { name: "Create a topic" }).click();
    await page.getByLabel("Name", { exact: true }).fill("late");
    await page.locator("form").getByRole("button").click();
    await page.getByRole("rowheader", { name: "late-0" }).waitFor();

    await page.getByRole("button", { name: "Advance the clock" }).press("Enter");
    await page.getByRole("status").getByText("--clock manual lets you move it").waitFor();
    expect(problems).toEqual([]);
    await page.close();
  });

  test("asks for the token, and does nothing without it", async () => {
    const [, url] = await serve("--control-token", "a secret");
    const { page } = await open(browser, url);
    await page.getByText("a token is needed").waitFor();
    await page.getByLabel(/The token/).fill("another");
    await page.getByRole("button", { name: "Use it" }).click();
    await page.getByText("the token is another one").waitFor();
    await page.getByLabel(/The token/).fill("a secret");
    await page.getByRole("button", { name: "Use it" }).click();
    await page.getByText("There is no").waitFor();
    await page.close();
  });
});
