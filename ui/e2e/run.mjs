// Drives the built dashboard in Chromium: `npm run e2e`. It needs a build, a `kvmscope` program and Chromium.
//
//   KVMSCOPE=PROGRAM   the program (default ../target/release/kvmscope); one without `serve` is stood in for by mock/
//   E2E_URL=ADDRESS    a server that runs already, over the folder fixtures/
//   --shots            also writes the pictures of docs/screenshots; only with a real server
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { EXECUTABLE, launch } from "./browser.mjs";
import { shoot } from "./shots.mjs";
import { steps } from "./steps.mjs";

const PORT = 8791;
const here = import.meta.dirname;
const program = process.env.KVMSCOPE ?? resolve(here, "../../target/release/kvmscope");
const fixtures = resolve(here, "../../fixtures");

function skip(reason) {
  console.log(`skipped: ${reason}\n0 passed, 0 failed, ${steps.length} skipped`);
  process.exit(0);
}

function start() {
  // The slim program knows the command and has no server: it says so and ends.
  const tried = spawnSync(program, ["serve", fixtures, "--port", "0"], { timeout: 3000, encoding: "utf8" });
  if (tried.error?.code === "ETIMEDOUT") {
    const child = spawn(program, ["serve", fixtures, "--port", String(PORT)], { stdio: "ignore" });
    return { real: true, child };
  }
  const args = [resolve(here, "../mock/server.mjs"), fixtures, String(PORT)];
  const env = { ...process.env, KVMSCOPE: program };
  return { real: false, child: spawn(process.execPath, args, { stdio: "ignore", env }) };
}

async function answers(base) {
  for (let i = 0; i < 100; i++) {
    try {
      if ((await fetch(`${base}/api/recordings`)).ok) return;
    } catch {
      // It is still starting.
    }
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`${base} does not answer`);
}

if (!existsSync(resolve(here, "../dist/index.html"))) skip("no ui/dist; run `npm run build` first");
if (!existsSync(EXECUTABLE)) skip(`no ${EXECUTABLE}; apt-get install chromium`);
if (!process.env.E2E_URL && !existsSync(program)) skip(`no ${program}; run \`make run\` first`);

const server = process.env.E2E_URL ? { real: true, child: null } : start();
const base = (process.env.E2E_URL ?? `http://127.0.0.1:${PORT}`).replace(/\/$/, "");
let failed = 0;
try {
  await answers(base);
  const browser = await launch();
  for (const [name, run] of steps) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    let wrong = [];
    page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
    page.on("pageerror", (error) => wrong.push(error.message));
    let tolerant = false;
    try {
      await run({ page, base, expectErrors: () => (tolerant = true) });
      if (tolerant) wrong = [];
      if (wrong.length > 0) throw new Error(`the console says: ${wrong.join("; ")}`);
      console.log(`ok    ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAIL  ${name}\n      ${error.message.split("\n").slice(0, 14).join("\n      ")}`);
    }
    await page.close();
  }
  if (process.argv.includes("--shots")) {
    if (server.real) await shoot(browser, base, resolve(here, "../../docs/screenshots"));
    else console.log("no pictures: the stand-in's timeline is invented");
  }
  await browser.close();
} finally {
  server.child?.kill();
}
console.log(`${steps.length - failed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
