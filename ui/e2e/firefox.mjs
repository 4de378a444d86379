// The same pages in Debian's Firefox ESR, over WebDriver BiDi (https://w3c.github.io/webdriver-bidi/): playwright drives builds of its own alone.
//
//   node --experimental-websocket e2e/firefox.mjs    KVMSCOPE=PROGRAM as for run.mjs; Node.js 20 has its WebSocket behind that flag
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { start } from "./serve.mjs";
import { COUNTING, REST_MS } from "./settled.mjs";
import { LINUX, NESTED } from "./shared.mjs";

const EXECUTABLE = process.env.FIREFOX ?? "/usr/bin/firefox-esr";
const here = import.meta.dirname;
const program = resolve(process.env.KVMSCOPE ?? resolve(here, "../../target/debug/kvmscope"));

const STEPS = [
  [
    "every view of the menu shows something, and the console says nothing",
    async (page, base) => {
      await page.open(`${base}/#r=${NESTED}`, ".views a");
      const views = await page.run(
        "[...document.querySelectorAll('.views a')].map((a) => a.getAttribute('href').slice(6))",
      );
      assert.ok(views.length > 8, `${views}`);
      for (const view of views)
        await page.open(`${base}/#r=${NESTED}&view=${view}`, ".figure figcaption, .page");
    },
  ],
  [
    "the first screen draws the levels, inside of the window",
    async (page, base) => {
      await page.open(`${base}/#r=${NESTED}`, "svg.levels");
      const box = await page.run(
        "JSON.stringify(document.querySelector('svg.levels').getBoundingClientRect())",
      );
      const { width, height } = JSON.parse(box);
      assert.ok(width > 300 && height > 150, box);
    },
  ],
  [
    "the timeline draws, zooms by its keys, and Back undoes that",
    async (page, base) => {
      await page.open(`${base}/#r=${LINUX}&view=timeline`, "canvas[data-drawn]:not([data-drawn='0'])");
      const colours = await page.run(
        "(() => { const c = document.querySelector('.lane-canvas canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const s = new Set(); for (let i = 0; i < d.length; i += 400) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size; })()",
      );
      assert.ok(colours > 3, `${colours} colours are no timeline`);
      const length =
        "(() => { const h = new URLSearchParams(location.hash.slice(1)); return Number(h.get('t1')) - Number(h.get('t0')); })()";
      await page.keys("www");
      await page.until(`${length} > 0`);
      const zoomed = await page.run(length);
      await page.keys("w");
      await page.until(`${length} < ${zoomed}`);
      // A gesture is a step of the history once the hand rests.
      await page.settled();
      await page.run(`skipTime(${REST_MS})`);
      const deep = await page.run(length);
      await page.run("history.back()");
      await page.until(`${length} !== ${deep}`);
    },
  ],
  [
    "two recordings are compared",
    async (page, base) => {
      await page.open(`${base}/#r=${NESTED}&b=nested-vmx-shadow-on&view=compared`, ".figure figcaption");
      await page.until("document.querySelectorAll('.figure').length > 2");
    },
  ],
  [
    "a report file opens without a server",
    async (page) => {
      const folder = mkdtempSync(join(tmpdir(), "kvmscope-firefox-"));
      try {
        const file = join(folder, "report.html");
        execFileSync(program, ["report", "--html", file, resolve(here, `../../fixtures/${NESTED}`)]);
        await page.open(`file://${file}`, "main h1");
        if (
          await page.run(
            "document.documentElement.dataset.kvmscope !== undefined || !!document.querySelector('#kvmscope-data')",
          )
        )
          await page.until("document.querySelector('svg.levels') !== null");
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  ],
];

/** How often it is looked whether something has become true. */
const MOST_FRAMES = 3_000;

/** One page of a Firefox that is driven over its socket. */
class Page {
  #next = 1;
  #waiting = new Map();
  errors = [];

  constructor(socket) {
    this.socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const { id, type, error, message, result, method, params } = JSON.parse(data);
      if (method === "log.entryAdded" && params.level === "error") this.errors.push(params.text);
      const waiting = this.#waiting.get(id);
      if (!waiting) return;
      this.#waiting.delete(id);
      if (type === "error") waiting.failed(new Error(`${error}: ${message}`));
      else waiting.done(result);
    });
  }

  send(method, params = {}) {
    const id = this.#next++;
    this.socket.send(JSON.stringify({ id, method, params }));
    return new Promise((done, failed) => this.#waiting.set(id, { done, failed }));
  }

  async begin() {
    await this.send("session.new", { capabilities: {} });
    await this.send("session.subscribe", { events: ["log.entryAdded"] });
    const { contexts } = await this.send("browsingContext.getTree");
    this.context = contexts[0].context;
    await this.send("script.addPreloadScript", { functionDeclaration: `() => { ${COUNTING} }` });
    await this.send("browsingContext.setViewport", {
      context: this.context,
      viewport: { width: 1280, height: 800 },
    });
  }

  async open(url, selector) {
    await this.send("browsingContext.navigate", {
      context: this.context,
      url: "about:blank",
      wait: "complete",
    });
    await this.send("browsingContext.navigate", { context: this.context, url, wait: "complete" });
    await this.until(`document.querySelector(${JSON.stringify(selector)}) !== null`);
  }

  async run(expression) {
    const { type, result, exceptionDetails } = await this.send("script.evaluate", {
      expression,
      target: { context: this.context },
      awaitPromise: true,
    });
    if (type === "exception") throw new Error(exceptionDetails.text);
    return result.type === "array" ? result.value.map(({ value }) => value) : result.value;
  }

  async until(expression) {
    // Of some 60 in a second, and fewer where the machine is busy.
    for (let frames = 0; frames < MOST_FRAMES; frames++) {
      if (await this.run(expression)) return;
      await this.run("new Promise((done) => requestAnimationFrame(() => done(0)))");
    }
    throw new Error(`this never became true: ${expression}`);
  }

  settled() {
    return this.until("isSettled()");
  }

  async keys(text) {
    const actions = [...text].flatMap((value) => [
      { type: "keyDown", value },
      { type: "keyUp", value },
    ]);
    await this.send("input.performActions", {
      context: this.context,
      actions: [{ type: "key", id: "keyboard", actions }],
    });
  }
}

/** A Firefox with an empty profile, and the address of its socket. */
async function firefox(profile) {
  const child = spawn(
    EXECUTABLE,
    ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"],
    {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, MOZ_DISABLE_AUTO_SAFE_MODE: "1" },
    },
  );
  let said = "";
  const address = await new Promise((done, failed) => {
    const patience = AbortSignal.timeout(60_000);
    patience.onabort = () => failed(new Error(`Firefox did not start: ${said.slice(-400)}`));
    child.on("exit", () => failed(new Error(`Firefox ended: ${said.slice(-400)}`)));
    child.stderr.on("data", (some) => {
      said += some;
      const found = /WebDriver BiDi listening on (ws:\/\/\S+)/.exec(said);
      if (found) {
        patience.onabort = null;
        done(found[1]);
      }
    });
  });
  return { child, address };
}

for (const [what, there, how] of [
  ["firefox", existsSync(EXECUTABLE), `no ${EXECUTABLE}; apt-get install firefox-esr`],
  ["firefox", typeof WebSocket !== "undefined", "this Node.js has no WebSocket; 22 or newer has"],
  ["kvmscope", existsSync(program), `no ${program}; run \`make full\` first`],
]) {
  if (there) continue;
  console.log(`skipped: ${what}: ${how}\n0 passed, 0 failed, ${STEPS.length} skipped`);
  process.exit(0);
}

const server = await start({ program, folder: resolve(here, "../../fixtures"), mock: false });
const profile = mkdtempSync(join(tmpdir(), "kvmscope-profile-"));
let failed = 0;
let browser = null;
try {
  browser = await firefox(profile);
  const socket = new WebSocket(`${browser.address}/session`);
  await new Promise((done, wrong) => {
    socket.addEventListener("open", done);
    socket.addEventListener("error", () => wrong(new Error("no connection to Firefox")));
  });
  const page = new Page(socket);
  await page.begin();
  for (const [name, run] of STEPS) {
    page.errors = [];
    try {
      await run(page, server.base.replace(/\/$/, ""));
      assert.deepEqual(page.errors, [], "the console says something");
      console.log(`ok    firefox: ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAIL  firefox: ${name}\n      ${error.message.split("\n").slice(0, 14).join("\n      ")}`);
    }
  }
  socket.close();
} finally {
  browser?.child.kill();
  server.child?.kill();
  rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
}
console.log(`${STEPS.length - failed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
