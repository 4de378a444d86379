// What a person does with the dashboard, as a list of steps. Each throws a sentence where something is wrong.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { compared } from "./compared.mjs";
import { copies } from "./copies.mjs";
import { findings } from "./findings.mjs";
import { frames } from "./frames.mjs";
import { gaps } from "./gaps.mjs";
import { gestures } from "./gestures.mjs";
import { glance } from "./glance.mjs";
import { latency } from "./latency.mjs";
import { growing, live } from "./live.mjs";
import { migration } from "./migration.mjs";
import { paper } from "./paper.mjs";
import { perfetto } from "./perfetto.mjs";
import { plan } from "./plan.mjs";
import { rates } from "./rates.mjs";
import { recordings } from "./recordings.mjs";
import { settled } from "./settled.mjs";
import { clean, LINUX, length, NESTED, open, param, SHADOWED, VIEWS } from "./shared.mjs";
import { span } from "./span.mjs";
import { still } from "./still.mjs";
import { truth } from "./truth.mjs";
import { wide } from "./wide.mjs";

/** A report file as `report --html` makes it, from what the server answers. */
async function reportFile(base, folder) {
  const at = `${base}/api/recordings/${NESTED}`;
  const json = async (path) => (await fetch(`${at}/${path}`)).json();
  const [report, timeline, aggregates, top] = await Promise.all([
    json("report"),
    json("timeline"),
    json("aggregates"),
    json("chains?sort=cost&descending=1&limit=8"),
  ]);
  const { from_ns, to_ns } = timeline.span;
  const tile = Buffer.from(
    await (await fetch(`${at}/tile?lanes=0&t0=${from_ns}&t1=${to_ns}&w=2000`)).arrayBuffer(),
  );
  const pyramid = [{ t0_ns: from_ns, t1_ns: to_ns, width: 2000, tile: tile.toString("base64") }];
  const chains = await Promise.all(top.chains.map((chain) => json(`chains/${chain.id}`)));
  const data = gzipSync(JSON.stringify({ report, timeline, pyramid, chains, aggregates })).toString("base64");
  const built = resolve(import.meta.dirname, "../dist-report");
  const script = readFileSync(join(built, "report.js"), "utf8").replaceAll("</script", "<\\/script");
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>report</title>
    <meta http-equiv="content-security-policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
    <style>${readFileSync(join(built, "report.css"), "utf8")}</style><body>
    <script type="application/octet-stream" id="kvmscope-data">${data}</script><script>${script}</script>`;
  const path = join(folder, "report.html");
  writeFileSync(path, page);
  return { path, report, aggregates };
}

export const steps = [
  [
    "the first page lists the recordings",
    async ({ page, base }) => {
      await open(page, base, "");
      await page.getByText(LINUX, { exact: true }).click();
      await page.waitForSelector(".summary");
    },
  ],
  [
    "findings say what report --json says",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}`);
      const report = await (await fetch(`${base}/api/recordings/${NESTED}/report`)).json();
      const findings = report.sections.flatMap((section) => section.findings);
      const titles = findings.sort((a, b) => a.rank - b.rank).map(({ title }) => title);
      assert.ok(titles.length > 0, "the fixture has findings");
      assert.deepEqual(await page.locator(".finding h3").allTextContents(), titles);
      const first = await page.locator(".summary").first().textContent();
      assert.ok(report.sections[0].summary.startsWith(first) && first.endsWith("."), first);
    },
  ],
  [
    "exits on screen are the rows of the table, sorted and filtered",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}&view=exits`);
      const report = await (await fetch(`${base}/api/recordings/${NESTED}/report`)).json();
      const { columns, rows } = report.sections[0].tables.exits;
      const at = (name) => columns.findIndex((column) => column.name === name);
      const expected = rows
        .toSorted((a, b) => b[at("total_ns")] - a[at("total_ns")])
        .map((row) => row[at("reason")]);
      assert.deepEqual(await page.locator("td b").allTextContents(), expected);
      await page.keyboard.press("/");
      await page.keyboard.type("l1 vmread");
      assert.deepEqual(await page.locator("td b").allTextContents(), ["VMREAD"]);
      const count = rows.find((row) => row[at("reason")] === "VMREAD")[at("count")];
      assert.match(
        await page.locator("tbody tr").first().textContent(),
        new RegExp(count.toLocaleString("en-US")),
      );
      await page.keyboard.press("Escape");
      assert.equal(await page.locator("td b").count(), expected.length);
    },
  ],
  [
    "the timeline zooms by key and wheel, pans by drag, and shows all again",
    async ({ page, base }) => {
      await open(page, base, `r=${LINUX}&view=timeline`);
      await page.waitForSelector("canvas[data-drawn]:not([data-drawn='0'])");
      for (let i = 0; i < 3; i++) await page.keyboard.press("w");
      await settled(page);
      const first = await length(page);
      const box = await page.locator(".lane-canvas .above").boundingBox();
      await page.mouse.move(box.x + box.width / 3, box.y + 60);
      await page.keyboard.down("Control");
      await page.mouse.wheel(0, -400);
      await page.keyboard.up("Control");
      await settled(page);
      const second = await length(page);
      assert.ok(second < first, `the wheel zooms in: ${second} < ${first}`);
      const before = Number(await param(page, "t0"));
      await page.mouse.down();
      await page.mouse.move(box.x + box.width / 3 + 120, box.y + 60, { steps: 5 });
      await page.mouse.up();
      assert.ok(Number(await param(page, "t0")) < before, "dragging to the right shows earlier time");
      assert.ok(Math.abs((await length(page)) - second) <= 1, "dragging keeps the length");
      await page.keyboard.press("f");
      await settled(page);
      assert.equal(await param(page, "t0"), null);
    },
  ],
  [
    "groups of lanes unfold by their names, and the address keeps that",
    async ({ page, base }) => {
      await open(page, base, `r=${LINUX}&view=timeline`);
      const cpus = page.getByRole("button", { name: /host CPUs/ });
      assert.equal(await cpus.getAttribute("aria-expanded"), "false");
      await cpus.click();
      const { lanes } = await (await fetch(`${base}/api/recordings/${LINUX}/timeline`)).json();
      for (const lane of lanes.filter((lane) => lane.kind === "cpu"))
        await page.locator(".lane-names strong", { hasText: lane.title }).last().waitFor();
      assert.equal(await param(page, "groups"), "host CPUs");
    },
  ],
  [
    "shares below the timeline are exact",
    async ({ page, base }) => {
      await open(page, base, `r=${LINUX}&view=timeline&lane=0`);
      const timeline = await (await fetch(`${base}/api/recordings/${LINUX}/timeline`)).json();
      const { from_ns, to_ns } = timeline.span;
      const answer = await fetch(`${base}/api/recordings/${LINUX}/states?lane=0&t0=${from_ns}&t1=${to_ns}`);
      const { time_ns } = await answer.json();
      const total = time_ns.reduce((a, b) => a + b, 0);
      const guest = timeline.states.findIndex((state) => state.name === "guest_l1");
      const expected = `${((100 * time_ns[guest]) / total).toFixed(1)} %`;
      await page.waitForFunction(() => !document.querySelector("figcaption").textContent.includes("about"));
      const legend = await page.locator(".legend li").allTextContents();
      assert.ok(
        legend.some((line) => line.includes(`L1 guest ${expected}`)),
        `${expected} in ${legend}`,
      );
    },
  ],
  [
    "a slice on the staircase leads to its chain, keys walk the chains",
    async ({ page, base }) => {
      const first = (await (await fetch(`${base}/api/recordings/${LINUX}/chains?limit=1`)).json()).chains[0];
      const rim = first.to_ns - first.from_ns;
      const window = `t0=${Math.max(0, first.from_ns - rim)}&t1=${first.to_ns + rim}`;
      await open(page, base, `r=${LINUX}&view=timeline&lane=${first.lane}&${window}`);
      await page.waitForSelector(".step");
      const box = await page.locator(".lane-canvas .above").boundingBox();
      const t0 = Number(await param(page, "t0"));
      const x = ((first.from_ns + rim / 2 - t0) / (await length(page))) * box.width;
      await page.mouse.click(box.x + x, box.y + 70);
      await page
        .locator(".details")
        .getByRole("button", { name: /of L1$/ })
        .click();
      await page.waitForSelector("svg.ladder");
      assert.equal(await param(page, "chain"), String(first.id));
      await page.keyboard.press("]");
      await page.waitForFunction(
        (id) => new URLSearchParams(location.hash.slice(1)).get("chain") === id,
        String(first.id + 1),
      );
    },
  ],
  [
    "one exit of L2 is a ladder, beside that of another recording",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}&view=chains&b=${SHADOWED}`);
      await page.waitForFunction(() => document.querySelectorAll("svg.ladder").length === 2);
      const titles = await page.locator(".figure h2").allTextContents();
      assert.equal(titles[0], "1 L2 exit = 15 L1 exits, 8 of them VMREAD");
      assert.match(titles[1], /^1 L2 exit = \d+ L1 exits?/);
    },
  ],
  [
    "exits of two recordings are compared per second, before and after",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}&view=exits&b=${SHADOWED}`);
      for (const title of ["Before", "After", "Change"])
        await page.getByText(title, { exact: true }).first().waitFor();
      const cells = await page
        .locator("tbody tr", { has: page.locator("b", { hasText: /^VMREAD$/ }) })
        .first()
        .locator("td")
        .allTextContents();
      const [{ span }, report] = await Promise.all(
        ["timeline", "report"].map(async (what) =>
          (await fetch(`${base}/api/recordings/${NESTED}/${what}`)).json(),
        ),
      );
      const { columns, rows } = report.sections[0].tables.exits;
      const at = (name) => columns.findIndex((column) => column.name === name);
      const vmreads = rows.filter((row) => row[at("reason")] === "VMREAD");
      const exits = vmreads.reduce((sum, row) => sum + row[at("count")], 0);
      const expected = Math.round(exits / ((span.to_ns - span.from_ns) / 1e9)).toLocaleString("en-US");
      assert.equal(cells[2], expected, "before, per second over all vCPUs");
      assert.deepEqual(cells.slice(3, 5), ["0", "gone"]);
    },
  ],
  [
    "gauges play the recording back",
    async ({ page, base }) => {
      await open(page, base, `r=${LINUX}&view=gauges&at=0.2&speed=1`);
      await page.waitForSelector("svg.gauge");
      const before = await page.locator("figcaption").textContent();
      await page.getByRole("button", { name: "Play" }).click();
      await page.waitForFunction(
        (before) => document.querySelector("figcaption").textContent !== before,
        before,
      );
      await page.getByRole("button", { name: "Pause" }).click();
    },
  ],
  [
    "number keys open every view, ? the keys, t the other theme, and the address keeps all of it",
    async ({ page, base }) => {
      await open(page, base, `r=${LINUX}&theme=light&later=kept`);
      const listed = await page
        .locator(".views a")
        .evaluateAll((links) => links.map((link) => link.getAttribute("href").replace("#view=", "")));
      assert.deepEqual(
        listed.filter((view) => !view.startsWith("of-")),
        VIEWS,
      );
      for (const [i, view] of listed.slice(0, 9).entries()) {
        await page.keyboard.press(String(i + 1));
        assert.equal(await param(page, "view"), view);
        assert.match(await page.title(), new RegExp(`^${LINUX}: .+ - kvmscope$`));
        await page.waitForSelector(".figure figcaption, .page");
      }
      await page.keyboard.press("?");
      await page.waitForSelector("dialog[open]");
      await page.keyboard.press("Escape");
      await page.waitForSelector("dialog[open]", { state: "detached" });
      await page.keyboard.press("t");
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
      assert.equal(await param(page, "later"), "kept");
    },
  ],
  [
    "a recording without a trace has a placeholder in each view that would need one",
    async ({ page, base, mock }) => {
      if (mock) return;
      for (const view of VIEWS) {
        await open(page, base, `r=hosts-amd&view=${view}`);
        const shown = await page.locator(".empty, .finding, .figure").count();
        assert.ok(shown > 0, `${view} shows something`);
      }
      await open(page, base, "r=hosts-amd&view=timeline");
      await page.getByText("No vCPU to draw").waitFor();
    },
  ],
  [
    "a recording that is not there is said in a sentence",
    async ({ page, base, expectErrors }) => {
      expectErrors();
      await open(page, base, "r=nothing-of-this-name");
      await page.getByText("nothing-of-this-name cannot be opened").waitFor();
    },
  ],
  [
    "what the address names wrongly is refused in a sentence, and the good recording stays",
    async ({ page, base, expectErrors }) => {
      expectErrors();
      await open(page, base, `r=${LINUX}&view=exits&b=deleted-since`);
      await page.getByText("deleted-since could not be opened, so nothing is compared").waitFor();
      await page.locator("td b").first().waitFor();
      await open(page, base, `r=${LINUX}&view=chains&chain=abc`);
      await page.getByText("chains are numbered from 0").waitFor();
      await open(page, base, `r=${LINUX}&view=gauges&at=7`);
      await page.getByText("at=7 is not a position in the recording").waitFor();
    },
  ],
  [
    "no view prints NaN, whatever a recording holds",
    async ({ page, base, mock }) => {
      if (mock) return;
      for (const recording of [NESTED, "hosts-amd", "bench-svm"]) {
        for (const view of VIEWS) {
          await open(page, base, `r=${recording}&view=${view}`);
          await page.waitForSelector(".figure figcaption, .page, .empty, .heading");
          await settled(page);
          assert.ok(!(await page.content()).includes("NaN"), `${view} of ${recording}`);
        }
      }
    },
  ],
  [
    "a report file opens without a server, with the same numbers",
    async ({ page, base }) => {
      const folder = mkdtempSync(join(tmpdir(), "kvmscope-report-"));
      try {
        const { path, report, aggregates } = await reportFile(base, folder);
        await page.goto(`file://${path}`);
        await page.waitForSelector("html[data-kvmscope=mounted]");
        await page.waitForSelector(".summary");
        const first = await page.locator(".summary").first().textContent();
        assert.ok(report.sections[0].summary.startsWith(first) && first.endsWith("."), first);
        await page.keyboard.press("2");
        await page.waitForSelector("canvas[data-drawn]");
        assert.match(await page.locator("figcaption").textContent(), /1 vCPU: about \d/);
        const find = page.getByLabel(/^Find slices/);
        await find.fill("VMREAD");
        await find.press("Enter");
        await page.getByText(/^1 of [\d,]+ in the slices that this file contains/).waitFor();
        const box = await page.locator(".lane-canvas .above").boundingBox();
        await page.keyboard.down("Shift");
        await page.mouse.move(box.x + 200, box.y + 60);
        await page.mouse.down();
        await page.mouse.move(box.x + 400, box.y + 80, { steps: 4 });
        await page.mouse.up();
        await page.keyboard.up("Shift");
        await page.locator(".details").getByText("Share, about").waitFor();
        await find.blur();
        await page.keyboard.press("4");
        await page.waitForSelector("svg.ladder");
        const { chains, censored, disturbed } = aggregates;
        await page
          .getByRole("heading", { name: new RegExp(`of ${chains.toLocaleString("en-US")} chains`) })
          .waitFor();
        await page.keyboard.press("5");
        const closed = (chains - censored - disturbed).toLocaleString("en-US");
        await page.locator("figcaption", { hasText: `${closed} chains between` }).waitFor();
        await page.getByRole("link", { name: "All numbers" }).click();
        await page.getByText("A report file contains no single events").waitFor();
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  ],
  [
    "nothing is wider than a screen of 360 pixels",
    async ({ page, base }) => {
      await page.setViewportSize({ width: 360, height: 740 });
      for (const view of VIEWS) {
        await open(page, base, `r=${LINUX}&view=${view}`);
        await settled(page);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 360, `${view} is ${wide} pixels wide`);
      }
    },
  ],
  ...recordings,
  ...span,
  ...truth,
  ...glance,
  ...findings,
  ...compared,
  ...perfetto,
  ...copies,
  ...paper,
  ...still,
  ...frames,
  ...gaps,
  ...gestures,
  ...wide,
  ...latency,
  ...migration,
  ...plan,
  ...live,
  ...growing,
  ...rates(clean),
  ...VIEWS.map((view) => [
    `axe-core finds nothing in ${view}, light and dark`,
    async ({ page, base }) => {
      for (const theme of ["light", "dark"])
        await clean(page, base, `r=${NESTED}&view=${view}&theme=${theme}`);
    },
  ]),
];
