// From a gap that a bench saw to who had the CPU meanwhile: rows that say when they were open the timeline there.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ask, audited, open, param } from "./shared.mjs";

const HOG = "channel-hog";
const TABLE = `r=${HOG}&view=of-channel&table=channel.gaps`;
const fixtures = resolve(import.meta.dirname, "../../fixtures");
const SEE = { name: /^See it on the timeline/ };

/** The rows of the table, in its order, as objects. */
async function rowsOf(base) {
  const { sections } = await ask(base, HOG, "report");
  const { columns, rows } = sections.find(({ id }) => id === "channel").tables.gaps;
  return rows.map((row) => Object.fromEntries(columns.map(({ name }, i) => [name, row[i]])));
}

/** Fails unless the timeline shows the gap, and not much around it. */
async function shows(page, { timeline_from_ns: from, timeline_to_ns: to }) {
  await page.waitForFunction(() => location.hash.includes("view=timeline"));
  assert.equal(await param(page, "view"), "timeline");
  const [t0, t1, mark] = await Promise.all(
    ["t0", "t1", "mark"].map(async (key) => Number(await param(page, key))),
  );
  assert.ok(t0 < from && t1 > to, `the gap from ${from} to ${to} lies in ${t0} to ${t1}`);
  assert.ok(t1 - t0 < 2.5 * (to - from), `it is most of the ${t1 - t0} ns that are shown`);
  assert.equal(mark, from, "the mark is where it begins");
  await page.waitForSelector("canvas[data-drawn]:not([data-drawn='0'])");
  const lanes = await page.locator(".lane-names strong").allTextContents();
  assert.deepEqual(lanes, ["CPU 0", "CPU 1"], "lanes are open, so that who had the CPU is seen");
  assert.ok((await page.evaluate(() => scrollY)) === 0, "from its top on");
}

/** How many colours the lanes have, which are empty where nothing is drawn. */
const colours = (page) =>
  page.evaluate(() => {
    const canvas = document.querySelector("canvas[data-drawn]");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });

export const gaps = [
  [
    "a gap of a bench opens the timeline where it was, Back returns, and the address can be shared",
    async ({ page, base, mock }) => {
      if (mock) return; // Its timeline is invented.
      const rows = await rowsOf(base);
      await open(page, base, TABLE);
      const links = page.getByRole("button", SEE);
      assert.equal(await links.count(), rows.length, "each gap has a link");
      // Far down, where the page has been scrolled.
      const last = rows.length - 1;
      await links.nth(last).click();
      await shows(page, rows[last]);
      await page.goBack();
      await page.waitForFunction(() => location.hash.includes("view=of-channel"));
      assert.equal(await page.locator(".notice").textContent(), "", "what was said of the timeline is gone");
      // By keyboard, the longest one.
      await links.first().focus();
      await page.keyboard.press("Enter");
      await shows(page, rows[0]);
      await page.waitForFunction(() =>
        document.querySelector("figcaption").textContent.includes("other task"),
      );
      assert.ok((await colours(page)) > 5, "there is something in them");
      const [, name, tid] = rows[0].by.match(/^(.*)\/(\d+)/);
      await page.locator(".details tr", { hasText: `${name} (${tid})` }).waitFor();
      const where = await page.locator(".details h3").textContent();
      assert.ok(where.startsWith("4.2 ms from 0.14435"), where);
      // A row that names its CPU is about that one alone.
      assert.ok(where.endsWith("cpu" in rows[0] ? `CPU ${rows[0].cpu}` : "2 lanes"), where);
      const shared = new URL(page.url()).hash.slice(1);
      await open(page, base, shared);
      await shows(page, rows[0]);
    },
  ],
  [
    "the longest gap that a finding names is shown with who had the CPU, whatever was filtered before",
    async ({ page, base, mock }) => {
      if (mock) return;
      await open(page, base, `r=${HOG}&lane=0&lanes=CPU+0`);
      await page
        .locator("article", { hasText: "CHN-PREEMPTED" })
        .getByRole("button", { name: /^See it/ })
        .first()
        .click();
      const [longest] = await rowsOf(base);
      await shows(page, longest);
      const details = page.locator(".details", { hasText: "hog (" });
      await details.waitFor();
      assert.match(
        await details.locator("h3").textContent(),
        /CPU 1$/,
        "on the CPU of the side that lost it",
      );
      const most = await details.locator("table").last().locator("tbody tr").first().textContent();
      assert.match(most, /^hog \(\d+\)other task\d+4\.0 ms$/, "who had it, and for how long");
    },
  ],
  [
    "gaps are read and opened in a window of 800 pixels, dark and light",
    async ({ page, base, mock }) => {
      if (mock) return;
      const rows = await rowsOf(base);
      await page.setViewportSize({ width: 800, height: 700 });
      for (const theme of ["dark", "light"]) {
        await open(page, base, `${TABLE}&theme=${theme}`);
        const link = page.getByRole("button", SEE).first();
        const [row, box] = await Promise.all([page.locator("tbody tr").first(), page.locator(".table-box")]);
        const [cells, around] = await Promise.all([row.boundingBox(), box.boundingBox()]);
        assert.ok(cells.x + cells.width <= around.x + around.width, "a row is seen without moving the table");
        await audited(page, `the table of gaps, ${theme}`);
        await link.click();
        await shows(page, rows[0]);
        await audited(page, `a gap on the timeline, ${theme}`);
      }
    },
  ],
  [
    "a gap in a report file opens the timeline of the file",
    async ({ page, base, program, mock }) => {
      if (mock) return; // It has no program that writes files.
      const folder = mkdtempSync(join(tmpdir(), "kvmscope-gaps-"));
      try {
        const path = join(folder, "report.html");
        execFileSync(program, ["report", join(fixtures, HOG), "--html", path], { stdio: "pipe" });
        await page.goto(`file://${path}#view=of-channel&table=channel.gaps`);
        await page.waitForSelector("html[data-kvmscope=mounted]");
        await page.getByRole("button", SEE).first().click();
        await shows(page, (await rowsOf(base))[0]);
        await page.waitForFunction(() =>
          document.querySelector("figcaption").textContent.includes("other task"),
        );
        assert.ok((await colours(page)) > 5, "there is something in them");
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  ],
];
