// The report: one classic script and one style sheet, inlined into a page that opens from a mail.
import { defineConfig } from "vite";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist-report",
    cssCodeSplit: false,
    lib: {
      entry: "src/report.tsx",
      formats: ["iife"],
      name: "kvmscope",
      fileName: () => "report.js",
      cssFileName: "report",
    },
  },
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
});
