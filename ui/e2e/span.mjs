// One window for all views: chosen on the strip, named in every view, and obeyed.
import assert from "node:assert/strict";
import { ask, LINUX, NESTED, open, param, VIEWS } from "./shared.mjs";

const reasons = (table) => {
  const at = (name) => table.columns.findIndex((column) => column.name === name);
  return table.rows
    .toSorted((a, b) => b[at("total_ns")] - a[at("total_ns")])
    .map((row) => `${row[at("reason")]} ${row[at("count")].toLocaleString("en-US")}`);
};

async function drag(page, from, to, over = ".strip canvas") {
  const box = await page.locator(over).boundingBox();
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + from * box.width, y);
  await page.mouse.down();
  await page.mouse.move(box.x + to * box.width, y, { steps: 6 });
  await page.mouse.up();
}

export const span = [
  [
    "a window dragged over the strip narrows the exits to those of the report of that window",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}&view=exits`);
      const before = await page.locator("td b").allTextContents();
      await drag(page, 0.3, 0.5);
      const [t0, t1] = [await param(page, "t0"), await param(page, "t1")];
      assert.ok(Number(t1) > Number(t0), "the window is in the address");
      await page.getByText("showing").first().waitFor();
      const report = await ask(base, NESTED, `report?t0=${t0}&t1=${t1}`);
      const expected = reasons(report.sections[0].tables.exits);
      await page.waitForFunction(
        (first) =>
          [...document.querySelectorAll("tbody tr:first-child td")].some((td) => td.textContent === first),
        expected[0].split(" ").at(-1),
      );
      const shown = await page.evaluate(() =>
        [...document.querySelectorAll("tbody tr")].map(
          (row) =>
            `${row.querySelector("b").textContent} ${row.querySelectorAll("td.number")[0].textContent.trim()}`,
        ),
      );
      assert.deepEqual(shown, expected);
      await page.getByRole("button", { name: "clear" }).click();
      assert.equal(await param(page, "t0"), null);
      assert.deepEqual(await page.locator("td b").allTextContents(), before);
    },
  ],
  [
    "a time dragged over the heat map of chains narrows to it, and a click opens a chain",
    async ({ page, base }) => {
      await open(page, base, `r=${LINUX}&view=costs`);
      await page.locator(".heat canvas").scrollIntoViewIfNeeded();
      const { t0_ns, t1_ns } = await ask(base, LINUX, "aggregates");
      await drag(page, 0.25, 0.5, ".heat canvas");
      const [t0, t1] = [Number(await param(page, "t0")), Number(await param(page, "t1"))];
      const near = (ns, share) => Math.abs((ns - t0_ns) / (t1_ns - t0_ns) - share) < 0.01;
      assert.ok(near(t0, 0.25) && near(t1, 0.5), `${t0} to ${t1} of ${t0_ns} to ${t1_ns}`);
      await page.getByText(`between`).first().waitFor();
      await page.locator(".heat canvas").click();
      await page.waitForFunction(() => location.hash.includes("view=chains"));
    },
  ],
  [
    "every view shows which window it has, and chains, heat map and Sankey count what lies in it",
    async ({ page, base }) => {
      const { span } = await ask(base, LINUX, "timeline");
      const [t0, t1] = [0.2, 0.5].map((part) => Math.round(part * span.to_ns));
      const at = `t0=${t0}&t1=${t1}`;
      for (const view of VIEWS) {
        await open(page, base, `r=${LINUX}&view=${view}&${at}`);
        assert.match(await page.locator(".span-chip").textContent(), /^showing \d/, view);
      }
      const { total } = await ask(base, LINUX, `chains?${at}&limit=1`);
      await open(page, base, `r=${LINUX}&view=chains&${at}`);
      await page
        .getByRole("heading", { name: `${total.toLocaleString("en-US")} chains in this window` })
        .waitFor();
      await open(page, base, `r=${LINUX}&view=multiplication&${at}`);
      const report = await ask(base, LINUX, `report?${at}`);
      const { columns, rows } = report.sections[0].tables.chains;
      const [count, censored, disturbed] = ["count", "censored", "disturbed"].map((name) =>
        columns.findIndex((column) => column.name === name),
      );
      const exits = rows
        .reduce((sum, row) => sum + row[count] - row[censored] - row[disturbed], 0)
        .toLocaleString("en-US");
      await page.waitForFunction(
        (start) => document.querySelector("figcaption")?.textContent.startsWith(start),
        `${exits} exits of L2`,
      );
    },
  ],
];
