// Says how large the built pages are; the report's script has a budget, because every report file carries it.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** Compressed, as mail and web servers send it. */
const REPORT_SCRIPT_BYTES = 60 << 10;
for (const folder of ["dist", "dist/assets", "dist-report"]) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (!statSync(path).isFile()) continue;
    const bytes = readFileSync(path);
    const packed = gzipSync(bytes).length;
    console.log(`${path}: ${bytes.length} B, ${packed} B gzip`);
    if (path.endsWith("report.js") && packed > REPORT_SCRIPT_BYTES) {
      console.error(`report.js is above its budget of ${REPORT_SCRIPT_BYTES} B gzip.`);
      process.exitCode = 1;
    }
  }
}
