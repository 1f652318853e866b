import { defineConfig } from "vitest/config";

export default defineConfig({
  // Relative: the page does not know which stage or domain it is served under.
  base: "./",
  build: {
    outDir: "../layers/core/tidemark/console/static",
    emptyOutDir: true,
    // The function serves one flat folder.
    assetsDir: "",
    target: "es2022",
    // Nothing as a data: address; the page's policy knows no such source.
    assetsInlineLimit: 0,
    // What is bundled has licences that go where it goes.
    license: { fileName: "licenses.md" },
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 500,
  },
  test: { include: ["tests/**/*.test.ts"] },
});
