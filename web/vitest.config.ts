import { defineConfig } from "vitest/config";

// `npm test` runs what needs no browser; `npm run test:browser` the pages in a browser, `npm run test:playground` the playground there.
export default defineConfig({
  test: {
    projects: [
      { test: { name: "unit", include: ["test/*.test.ts"] } },
      { test: { name: "browser", include: ["test/browser/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000, fileParallelism: false } },
      { test: { name: "playground", include: ["test/playground/*.test.ts"], testTimeout: 60_000, hookTimeout: 100_000 } },
    ],
  },
});
