// How fluid the timeline is: times between frames while a hand pans and zooms, printed, never judged.
//
//   E2E_BIG=FOLDER   also the first recording of that folder, such as ten million generated events (make torture)
import assert from "node:assert/strict";
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

async function drive(page) {
  const box = await page.locator(".lane-canvas .above").boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + 60];
  await page.mouse.move(x, y);
  await page.keyboard.down("Control");
  for (let i = 0; i < 18; i++) {
    await page.mouse.wheel(0, -120);
    await page.waitForTimeout(16);
  }
  await page.keyboard.up("Control");
  for (let turn = 0; turn < 3; turn++) {
    await page.mouse.down();
    for (let i = 1; i <= 20; i++) {
      await page.mouse.move(x - i * 12, y);
      await page.waitForTimeout(8);
    }
    await page.mouse.up();
    await page.mouse.move(x, y);
  }
  await page.keyboard.down("Control");
  for (let i = 0; i < 18; i++) {
    await page.mouse.wheel(0, 120);
    await page.waitForTimeout(16);
  }
  await page.keyboard.up("Control");
}

async function measure(page, base, id) {
  await open(page, base, `r=${encodeURIComponent(id)}&view=timeline`);
  await page.waitForSelector("canvas[data-drawn]:not([data-drawn='0'])");
  const timeline = await (await fetch(`${base}/api/recordings/${encodeURIComponent(id)}/timeline`)).json();
  const slices = timeline.lanes.reduce((sum, lane) => sum + lane.slices, 0);
  await page.evaluate(watch);
  await drive(page);
  const { between, drawing } = await page.evaluate(() => {
    cancelAnimationFrame(globalThis.seen.handle);
    return globalThis.seen;
  });
  assert.ok(between.length > 20 && drawing.length > 20, "frames were drawn while the hand moved");
  console.log(
    `      ${id}, ${slices.toLocaleString("en-US")} slices: ${between.length} frames while panning and`,
  );
  console.log(`      zooming, ${inWords(between)}; of that drawing ${inWords(drawing)}`);
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
        await measure(page, big, recordings[0].id);
      } finally {
        server.child.kill();
      }
    },
  ],
];
