// Says how large the built pages are, and holds them to their budgets.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** Compressed, as mail and web servers send it: what the dashboard loads before anything is shown, */
const FIRST_LOAD_BYTES = 64 << 10;
/** and the script that every report file carries, with all views in it. */
const REPORT_SCRIPT_BYTES = 66 << 10;

const index = readFileSync("dist/index.html", "utf8");
let firstLoad = 0;
const over = [];
for (const folder of ["dist", "dist/assets", "dist-report"]) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (!statSync(path).isFile()) continue;
    const bytes = readFileSync(path);
    const packed = gzipSync(bytes).length;
    console.log(`${path}: ${bytes.length} B, ${packed} B gzip`);
    if (folder === "dist/assets" && name.endsWith(".js") && index.includes(name)) firstLoad += packed;
    if (name === "report.js" && packed > REPORT_SCRIPT_BYTES)
      over.push(`report.js, ${REPORT_SCRIPT_BYTES} B`);
  }
}
console.log(`scripts that the dashboard loads at once: ${firstLoad} B gzip`);
if (firstLoad > FIRST_LOAD_BYTES) over.push(`the dashboard's first load, ${FIRST_LOAD_BYTES} B`);
for (const budget of over) {
  console.error(`Above its budget: ${budget} gzip.`);
  process.exitCode = 1;
}
