// The first screen is the answer: a picture of the levels, the changes that give most back, and the views that have something.
import assert from "node:assert/strict";
import { settled } from "./settled.mjs";
import { ask, clean, LINUX, NESTED, open, param } from "./shared.mjs";

const BENCH = "bench-vmx-shadow-off";
const HOSTS = "hosts-intel";

const views = (page) => page.locator(".views a").allTextContents();

export const glance = [
  [
    "the first screen draws the levels with the numbers of report --json",
    async ({ page, base }) => {
      for (const id of [NESTED, LINUX]) {
        await open(page, base, `r=${id}`);
        const { sections } = await ask(base, id, "report");
        const [figure] = sections[0].figures;
        assert.equal(figure.drawing, "levels");
        const drawn = await page.locator("svg.levels").first().textContent();
        const each = figure.columns[0].storeys.find(({ for_each }) => for_each !== null).for_each;
        assert.ok(drawn.includes(`${Number(each.toFixed(2))} for each that it handles`), `${id}: ${drawn}`);
        for (const { label, share } of figure.time.filter(({ share }) => share >= 0.001 && share < 1))
          assert.ok(drawn.includes(`${label} ${(100 * share).toFixed(1)} %`), `${id}: ${label} ${share}`);
        const most = await page.locator("svg.levels").first().boundingBox();
        assert.ok(most.y + most.height < 900, "it is on the first screen");
      }
    },
  ],
  [
    "the answer stands first and largest, and its picture, its number and what to run above the fold",
    async ({ page, base }) => {
      await page.setViewportSize({ width: 1280, height: 800 });
      for (const id of [NESTED, LINUX, HOSTS, BENCH, "seed-vhost", "ovs-dpdk-chain", "plan-chain"]) {
        await open(page, base, `r=${id}`);
        await settled(page);
        const { sections } = await ask(base, id, "report");
        const first = page.locator(".summary.first").first();
        const said = await first.textContent();
        assert.ok(sections[0].summary.startsWith(said), `${id}: ${said}`);
        assert.match(said, /[.!?]$/, `${id}: it is a whole sentence`);
        const size = await first.evaluate((it) => Number.parseFloat(getComputedStyle(it).fontSize));
        assert.ok(size >= 20, `${id}: ${size} px`);
        const box = async (what) => page.locator(what).first().boundingBox();
        const [answer, picture] = [await first.boundingBox(), await box(".glance :is(svg.picture, table)")];
        assert.ok(answer.y + answer.height < 400, `${id}: the answer ends at ${answer.y + answer.height}`);
        assert.ok(picture.y < 450, `${id}: the picture begins at ${picture.y}`);
        for (const what of [".best .much", ".best pre"]) {
          if ((await page.locator(what).count()) === 0) continue;
          const { y, height } = await box(what);
          assert.ok(y + height <= 800, `${id}: ${what} ends at ${y + height}`);
        }
      }
    },
  ],
  [
    "exits are those that one level recorded, and another level's are one press away",
    async ({ page, base }) => {
      await open(page, base, `r=${LINUX}&view=exits`);
      const { sections } = await ask(base, LINUX, "report");
      const { columns, rows } = sections[0].tables.exits;
      const at = (name) => columns.findIndex((column) => column.name === name);
      for (const level of ["L0", "L1"]) {
        await page.locator(".seen-by").getByRole("button", { name: level }).click();
        const own = rows.filter((row) => row[at("machine")] === level);
        const exits = own.reduce((sum, row) => sum + row[at("count")], 0);
        await page.getByText(`${exits.toLocaleString("en-US")} exits took`).waitFor();
        assert.equal(await page.locator("table.numbers tbody tr").count(), own.length);
        assert.equal(await param(page, "by"), level === "L0" ? null : level);
      }
      await page.getByText("As L1 saw it: the work of L0 is inside.").waitFor();
    },
  ],
  [
    "what gives most back stands first, and leads to its card",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}`);
      const { sections } = await ask(base, NESTED, "report");
      const all = sections.flatMap(({ findings }) => findings);
      const explained = new Set(all.flatMap(({ explains }) => explains));
      const back = ({ gives_back }) => gives_back?.share ?? 0;
      const best = all
        .filter(({ id, severity }) => severity !== "info" && !explained.has(id))
        .toSorted((a, b) => back(b) - back(a) || a.rank - b.rank)
        .slice(0, 3);
      const shown = await page.locator(".best li p").allTextContents();
      assert.deepEqual(
        shown.map((text) => text.slice(2)),
        best.map(({ title }) => title),
      );
      assert.equal(
        await page.locator(".best .much").first().textContent(),
        `${best[0].gives_back.low > 0 ? "" : "up to "}${(100 * back(best[0])).toFixed(1)} %`,
      );
      await page.locator(".best button").first().click();
      assert.equal(await param(page, "finding"), best[0].id);
      await page.waitForSelector(".finding.open");
    },
  ],
  [
    "views follow what a recording has, and its own picture stands first",
    async ({ page, base }) => {
      await open(page, base, `r=${BENCH}`);
      assert.deepEqual(
        await views(page),
        ["1 Findings", "2 Nesting", "All numbers"].map((it, i) => (i === 2 ? "3 All numbers" : it)),
      );
      await page.waitForSelector(".glance svg.picture");
      await page.keyboard.press("2");
      assert.equal(await param(page, "view"), "of-nesting");
      await page.waitForSelector(".figure svg.picture");
      await open(page, base, `r=${HOSTS}`);
      await page.waitForSelector(".glance table.matrix");
      const { sections } = await ask(base, HOSTS, "report");
      const features = sections
        .find(({ id }) => id === "nesting")
        .figures.find(({ drawing }) => drawing === "matrix");
      const [first] = features.rows;
      const row = await page.locator("table.matrix tbody tr").first().locator("td").allTextContents();
      assert.deepEqual(
        row.slice(0, features.columns.length).map((text) => text.split(" ").at(-1)),
        first.cells.map((standing) => standing ?? ""),
      );
    },
  ],
  [
    "the waterfall adds up, and names what would come back",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}&view=sections`);
      const { sections } = await ask(base, NESTED, "report");
      const [whole] = sections[0].figures.find(({ drawing }) => drawing === "waterfall").wholes;
      const sum = whole.steps.reduce((sum, { share }) => sum + share, 0);
      assert.ok(Math.abs(sum - 1) < 1e-9, `${sum}`);
      const drawn = await page.locator(`svg.picture[aria-label="${whole.title}"]`).textContent();
      for (const { label, note } of whole.steps)
        assert.ok(drawn.includes(label) && drawn.includes(note), label);
      assert.match(drawn, /FLW-PREEMPT gives back up to 38\.4 %/);
    },
  ],
  [
    "the first screen is accessible, dark, narrow and wide",
    async ({ page, base }) => {
      for (const [width, theme] of [
        [390, "dark"],
        [1280, "light"],
        [2560, "dark"],
      ]) {
        await page.setViewportSize({ width, height: 900 });
        await clean(page, base, `r=${NESTED}&theme=${theme}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${wide} of ${width} pixels`);
      }
      await page.setViewportSize({ width: 1280, height: 900 });
    },
  ],
];
