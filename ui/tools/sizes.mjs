// Says how large the built pages are; the report's script has a budget, because every report file carries it.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const REPORT_SCRIPT_BYTES = 150_000;
for (const folder of ["dist", "dist/assets", "dist-report"]) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (!statSync(path).isFile()) continue;
    const bytes = readFileSync(path);
    console.log(`${path}: ${bytes.length} B, ${gzipSync(bytes).length} B gzip`);
    if (path.endsWith("report.js") && bytes.length > REPORT_SCRIPT_BYTES) {
      console.error(`report.js is above its budget of ${REPORT_SCRIPT_BYTES} B.`);
      process.exitCode = 1;
    }
  }
}
