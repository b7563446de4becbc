// Builds each entry into one self-contained HTML file: `npm run build [-- OUT_DIR]`, by default groupcoord/page/static.
import { build } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

const ENTRIES = ["page", "playground", "report"];
const outDir = new URL(process.argv[2] ?? "../groupcoord/page/static/", import.meta.url).pathname;

for (const [place, entry] of ENTRIES.entries()) {
  await build({
    root: new URL(`src/${entry}/`, import.meta.url).pathname,
    configFile: false,
    logLevel: "warn",
    base: "./",
    plugins: [viteSingleFile({ removeViteModuleLoader: true })],
    build: {
      outDir,
      emptyOutDir: place === 0,
      target: "es2022",
      rolldownOptions: { input: { [entry]: new URL(`src/${entry}/${entry}.html`, import.meta.url).pathname } },
    },
  });
}
