// How fluid the timeline is: times between frames while a hand pans and zooms, printed, never judged.
//
//   E2E_BIG=FOLDER   also the recordings of that folder, such as ten million generated events and hosts of 256 vCPUs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { start } from "./serve.mjs";
import { LINUX, open } from "./shared.mjs";

const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)];

function inWords(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share) => quantile(sorted, share).toFixed(1);
  return `median ${at(0.5)} ms, p95 ${at(0.95)} ms, max ${sorted.at(-1).toFixed(1)} ms`;
}

/** Notes the time between frames, and how long each drawing took. */
const watch = () => {
  const seen = { between: [], drawing: [] };
  let last = null;
  const step = (now) => {
    if (last !== null) seen.between.push(now - last);
    last = now;
    seen.handle = requestAnimationFrame(step);
  };
  seen.handle = requestAnimationFrame(step);
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntriesByName("timeline")) seen.drawing.push(entry.duration);
  });
  observer.observe({ entryTypes: ["measure"] });
  globalThis.seen = seen;
};

/** A hand does not move faster than frames are drawn. */
const frame = (page) => page.evaluate(() => new Promise(requestAnimationFrame));

async function drive(page) {
  const box = await page.locator(".lane-canvas .above").boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + 60];
  await page.mouse.move(x, y);
  await page.keyboard.down("Control");
  for (let i = 0; i < 18; i++) {
    await page.mouse.wheel(0, -120);
    await frame(page);
  }
  await page.keyboard.up("Control");
  for (let turn = 0; turn < 3; turn++) {
    await page.mouse.down();
    for (let i = 1; i <= 20; i++) {
      await page.mouse.move(x - i * 12, y);
      await frame(page);
    }
    await page.mouse.up();
    await page.mouse.move(x, y);
  }
  await page.keyboard.down("Control");
  for (let i = 0; i < 18; i++) {
    await page.mouse.wheel(0, 120);
    await frame(page);
  }
  await page.keyboard.up("Control");
}

/** The memory of the largest renderer, in MB: what the system counts for the process, not the heap of its script. */
async function rendererMb(page) {
  const session = await page.context().browser().newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  const status = (id) => {
    try {
      return readFileSync(`/proc/${id}/status`, "utf8");
    } catch {
      // Another step's, which has ended since it was listed.
      return "";
    }
  };
  const sizes = processInfo
    .filter(({ type }) => type === "renderer")
    .map(({ id }) => Number(status(id).match(/VmRSS:\s+(\d+)/)?.[1] ?? 0));
  return Math.max(0, ...sizes) / 1024;
}

/** Milliseconds from a letter in the filter of Exits until the next frame is drawn, the worst of twelve. */
async function lettersIn(page, base, id) {
  await open(page, base, `r=${encodeURIComponent(id)}&view=exits`);
  const field = page.getByLabel("Filter rows");
  if ((await field.count()) === 0) return null;
  await field.focus();
  const times = [];
  for (const letter of "l1 cpuid 0 m") {
    const took = await page.evaluate((letter) => {
      const input = document.activeElement;
      const start = performance.now();
      input.value += letter;
      input.dispatchEvent(new Event("input", { bubbles: true }));
      return new Promise((done) => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => done(performance.now() - start);
        requestAnimationFrame(() => port2.postMessage(null));
      });
    }, letter);
    times.push(took);
  }
  return times;
}

async function measure(page, base, id) {
  const address = `r=${encodeURIComponent(id)}&view=timeline`;
  // Once before, so that the server has read the recording: what is measured is the page.
  await open(page, base, address);
  await page.waitForSelector("canvas[data-drawn]:not([data-drawn='0'])");
  const start = performance.now();
  await open(page, base, address);
  await page.waitForSelector("canvas[data-drawn]:not([data-drawn='0'])");
  const opened = performance.now() - start;
  const timeline = await (await fetch(`${base}/api/recordings/${encodeURIComponent(id)}/timeline`)).json();
  const slices = timeline.lanes.reduce((sum, lane) => sum + lane.slices, 0);
  const vcpus = timeline.lanes.filter(({ kind }) => kind === "vcpu").length;
  let requests = 0;
  const count = (request) => {
    if (request.url().includes("/api/")) requests++;
  };
  page.on("request", count);
  await page.evaluate(watch);
  await drive(page);
  const { between, drawing } = await page.evaluate(() => {
    cancelAnimationFrame(globalThis.seen.handle);
    return globalThis.seen;
  });
  page.off("request", count);
  const mb = await rendererMb(page);
  assert.ok(between.length > 20 && drawing.length > 20, "frames were drawn while the hand moved");
  const letters = await lettersIn(page, base, id);
  const number = (value) => value.toLocaleString("en-US");
  console.log(
    `      ${id}, ${number(vcpus)} vCPUs, ${number(slices)} slices: opened in ${opened.toFixed(0)} ms;`,
  );
  console.log(`      ${between.length} frames while panning and zooming, ${inWords(between)};`);
  console.log(
    `      of that drawing ${inWords(drawing)}; ${requests} requests; renderer ${mb.toFixed(0)} MB;`,
  );
  if (letters) console.log(`      a letter in the filter of Exits: ${inWords(letters)}`);
}

export const frames = [
  [
    "the timeline is drawn while it is panned and zoomed",
    async ({ page, base, program }) => {
      await measure(page, base, LINUX);
      if (!process.env.E2E_BIG) return;
      const server = await start({ program, folder: process.env.E2E_BIG });
      page.setDefaultTimeout(600_000);
      try {
        const big = server.base.replace(/\/$/, "");
        const { recordings } = await (await fetch(`${big}/api/recordings`)).json();
        for (const { id } of recordings) await measure(page, big, id);
      } finally {
        server.child.kill();
      }
    },
  ],
];
