// Drives the built dashboard in Chromium: `npm run e2e`. It needs a build, Chromium and a full `kvmscope` program.
//
//   KVMSCOPE=PROGRAM   the program (default ../target/release/kvmscope, or the debug build)
//   E2E_URL=ADDRESS    a server that runs already, over the folder fixtures/
//   --mock             the stand-in mock/ in place of the program's server
//   --shots            also writes the pictures of docs/screenshots; --shots=FOLDER all there are; not with the stand-in
//   WORD ...           only the steps whose names have it
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { EXECUTABLE, launch } from "./browser.mjs";
import { start } from "./serve.mjs";
import { COUNTING, PATIENCE_MS } from "./settled.mjs";
import { shoot } from "./shots.mjs";
import { steps } from "./steps.mjs";

const WORKERS = 2;

const here = import.meta.dirname;
const built = ["release", "debug"].map((kind) => resolve(here, `../../target/${kind}/kvmscope`));
const program = resolve(process.env.KVMSCOPE ?? built.find(existsSync) ?? built[0]);
const fixtures = resolve(here, "../../fixtures");
const mock = process.argv.includes("--mock");
const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const chosen = steps.filter(([name]) => words.every((word) => name.includes(word)));

function skip(what, reason) {
  console.log(`skipped: ${what}: ${reason}\n0 passed, 0 failed, ${chosen.length} skipped`);
  process.exit(0);
}

if (!existsSync(resolve(here, "../dist/index.html"))) skip("npm", "no ui/dist; run `npm run build` first");
if (!existsSync(EXECUTABLE)) skip("chromium", `no ${EXECUTABLE}; apt-get install chromium`);
if (!process.env.E2E_URL && !existsSync(program)) skip("kvmscope", `no ${program}; run \`make full\` first`);

/** Takes a step on a page of its own, and says how it went. */
async function taken(browser, [name, run]) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.addInitScript(COUNTING);
  page.setDefaultTimeout(PATIENCE_MS);
  let wrong = [];
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(error.message));
  let tolerant = false;
  try {
    await run({ page, base, program, mock, expectErrors: () => (tolerant = true) });
    if (tolerant) wrong = [];
    if (wrong.length > 0) throw new Error(`the console says: ${wrong.join("; ")}`);
    console.log(`ok    ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}\n      ${error.message.split("\n").slice(0, 14).join("\n      ")}`);
  }
  await page.close();
}

const server = process.env.E2E_URL
  ? { child: null, base: process.env.E2E_URL }
  : await start({ program, folder: fixtures, mock });
const base = server.base.replace(/\/$/, "");
let failed = 0;
try {
  const browser = await launch();
  const left = [...chosen];
  // Steps wait for most of their time; each has a page of its own.
  const worker = async () => {
    for (let step = left.shift(); step; step = left.shift()) await taken(browser, step);
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  const shots = process.argv.find((word) => word.startsWith("--shots"));
  if (shots && mock) console.log("no pictures: the stand-in's timeline is invented");
  else if (shots) {
    const [, folder] = shots.split("=");
    await shoot(
      browser,
      base,
      resolve(folder ?? resolve(here, "../../docs/screenshots")),
      folder !== undefined,
    );
  }
  await browser.close();
} finally {
  server.child?.kill();
}
console.log(`${chosen.length - failed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
