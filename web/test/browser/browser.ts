/** Debian's Chromium, and the processes that the pages come from. Where there is no Chromium the tests are skipped. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const ROOT = new URL("../../../", import.meta.url).pathname;
export const PYTHON = process.env.PYTHON ?? join(ROOT, ".venv/bin/python");
/** Chromium asks its maker for updates and the like unless it is told not to. */
const QUIET = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** Why there is no browser; "" if there is one. */
export const missing = existsSync(CHROMIUM) ? "" : `there is no ${CHROMIUM}`;
if (missing) console.warn(`skipped: ${missing}`);

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: QUIET });
}

/** A page whose errors and requests to other origins are collected in `problems`. */
export async function open(browser: Browser, url: string, options: Parameters<Browser["newPage"]>[0] = {}): Promise<{ page: Page; problems: string[] }> {
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 }, ...options });
  page.setDefaultTimeout(20_000);
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== "data:" && protocol !== "blob:" && !url.startsWith(protocol === "file:" ? "file:" : origin)) problems.push(`asks ${request.url()}`);
  });
  await page.goto(url);
  return { page, problems };
}

/** What axe finds wrong with the accessibility of a page. */
export async function violations(page: Page): Promise<string[]> {
  await page.addScriptTag({ path: AXE });
  return page.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: { run(): Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }> } }).axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0]!.html} ${nodes[0]!.failureSummary}`);
  });
}

/** The page that `groupcoord page` makes of a case, with `more` lines. */
export function savedPage(name: string, more = ""): string {
  const folder = mkdtempSync(join(tmpdir(), "groupcoord-page-"));
  const trace = join(folder, name);
  const out = join(folder, "page.html");
  writeFileSync(trace, readFileSync(join(ROOT, "web/test/cases", name), "utf8") + more);
  const made = spawnSync(PYTHON, ["-m", "groupcoord", "page", trace, "--out", out], { cwd: ROOT, encoding: "utf8" });
  if (made.status !== 0) throw new Error(made.stderr);
  return `file://${out}`;
}

export interface Running {
  process: ChildProcess;
  /** What it has said on stdout. */
  said: string;
}

/** A Python process that has said something that fits `ready`. */
export async function python(args: string[], ready: RegExp): Promise<Running> {
  const running: Running = { process: spawn(PYTHON, args, { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] }), said: "" };
  await new Promise<void>((resolve, reject) => {
    running.process.stdout!.on("data", (data: Buffer) => {
      running.said += data.toString();
      if (ready.test(running.said)) resolve();
    });
    running.process.on("exit", (code) => reject(new Error(`${args.join(" ")} ended with ${code}: ${running.said}`)));
  });
  return running;
}

export async function end({ process }: Running): Promise<void> {
  if (process.exitCode !== null) return;
  const ended = new Promise((resolve) => process.once("exit", resolve));
  process.kill("SIGTERM");
  await ended;
}
