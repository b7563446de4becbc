import { defineConfig } from "vitest/config";

// A browser that a machine stalls is tried once more; the report says so.
const inBrowser = { testTimeout: 60_000, retry: 1 };

// `npm test` runs what needs no browser; `npm run test:browser` the pages in a browser, `npm run test:playground` the playground there.
export default defineConfig({
  test: {
    projects: [
      { test: { name: "unit", include: ["test/*.test.ts"] } },
      { test: { name: "browser", include: ["test/browser/*.test.ts"], ...inBrowser, hookTimeout: 60_000, fileParallelism: false } },
      { test: { name: "playground", include: ["test/playground/*.test.ts"], ...inBrowser, hookTimeout: 100_000 } },
    ],
  },
});
