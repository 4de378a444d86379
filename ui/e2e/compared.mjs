// Two recordings beside each other: the story, and what each view shows of both.
import assert from "node:assert/strict";
import { settled } from "./settled.mjs";
import { ask, clean, LINUX, NESTED, open, param, SHADOWED } from "./shared.mjs";

const BOTH = `r=${NESTED}&b=${SHADOWED}`;

const compare = async (base) => {
  const { sections } = await ask(base, NESTED, `compared/${SHADOWED}`);
  return sections.find(({ id }) => id === "compare");
};

const rowsOf = ({ columns, rows }) =>
  rows.map((cells) => Object.fromEntries(columns.map(({ name }, i) => [name, cells[i]])));

export const compared = [
  [
    "a second recording opens the story: what changed in a sentence, pairs with verdicts, both timelines, causes, tables",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}`);
      await page.getByLabel("Compare with").selectOption(SHADOWED);
      assert.equal(await param(page, "view"), "compared");
      const section = await compare(base);
      await page.waitForSelector(".headline");
      assert.equal(await page.locator(".headline").textContent(), section.summary.split("\n\n")[0]);
      assert.equal(
        (await page.locator("nav.views a").first().textContent()).trim(),
        "Compared",
        "it stands first",
      );
      const titles = await page.locator(".figure h2").allTextContents();
      for (const { title } of section.figures) assert.ok(titles.includes(title), title);
      const { dumbbells } = section.figures.find(({ drawing }) => drawing === "dumbbells");
      for (const { label, change } of dumbbells.flatMap(({ rows }) => rows)) {
        const said = page.locator("svg.picture g", { hasText: label }).filter({ hasText: change });
        assert.ok((await said.count()) > 0, `${label} ${change}`);
      }
      await page.waitForSelector("canvas[data-drawn=After]");
      await page.getByRole("button", { name: /^change/ }).click();
      assert.equal(await page.locator("tbody tr").count(), section.tables.change.rows.length);
      await page.getByRole("button", { name: "Close the comparison" }).click();
      await page.waitForSelector(".finding");
    },
  ],
  [
    "a long table of the comparison has only rows on screen in the document, sorts words both ways, and finds all by its filter",
    async ({ page, base }) => {
      // No two fixtures differ in so much.
      await page.route("**/compared/*", async (route) => {
        const answer = await (await route.fetch()).json();
        const { change } = answer.sections.find(({ id }) => id === "compare").tables;
        const at = change.columns.findIndex(({ name }) => name === "metric");
        const [row] = change.rows;
        change.rows = Array.from({ length: 1000 }, (_, i) =>
          row.with(at, `made ${String(i).padStart(3, "0")}`),
        );
        await route.fulfill({ json: answer });
      });
      await open(page, base, `${BOTH}&view=compared&table=compare.change`);
      const table = page.locator(".table-box").last();
      await table.getByText("made 000").waitFor();
      assert.ok((await table.locator("tbody tr").count()) < 100);
      const metric = table.getByRole("button", { name: "metric" });
      await metric.click();
      await metric.click();
      await table.getByText("made 999").waitFor();
      await page.getByLabel("Filter rows").last().fill("500");
      await page.getByText('1 of 1,000 rows, filtered by "500"').waitFor();
      await table.getByText("made 500").waitFor();
    },
  ],
  [
    "exits of both are divided by seconds, chains or units of work, with the verdict of compare or why there is none",
    async ({ page, base }) => {
      await open(page, base, `${BOTH}&view=exits`);
      const row = (reason) =>
        page.locator("tbody tr", { has: page.locator("b", { hasText: new RegExp(`^${reason}$`) }) }).first();
      const section = await compare(base);
      const change = rowsOf(section.tables.change).find(({ metric }) => metric === "L1 VMREAD, exits/s");
      await row("VMREAD").locator("td", { hasText: change.verdict }).waitFor();
      // 149 chains with 8 VMREADs each before, none after.
      await page.getByLabel("Divided by").selectOption("chain");
      await row("VMREAD").locator("td", { hasText: "–" }).waitFor();
      const each = await row("VMREAD").locator("td").allTextContents();
      assert.deepEqual([each[2], each[3], each[4]], ["8.00", "0", "gone"]);
      await page.getByText("A dash: the comparison judges exits per second").waitFor();
      await page.getByLabel("Divided by").selectOption("work:exit of L2");
      const work = rowsOf(section.tables.per_work).find(({ part }) => part === "VMREAD of L1");
      await row("VMREAD").locator("td", { hasText: work.verdict }).waitFor();
      const per = Number((await row("VMREAD").locator("td").nth(2).textContent()).replace(",", ""));
      assert.ok(Math.abs(per - work.exits_before) < 0.01, `${per}, and ${work.exits_before} in per_work`);
      assert.equal(await param(page, "per"), "work:exit of L2");
      await page.getByRole("button", { name: "Reason" }).click();
      const reasons = await page.locator("tbody b").allTextContents();
      assert.deepEqual(
        reasons,
        reasons.toSorted((a, b) => a.localeCompare(b)),
      );
    },
  ],
  [
    "both timelines have one scale and the shares that the server counts",
    async ({ page, base }) => {
      await open(page, base, `${BOTH}&view=timeline`);
      await page.waitForSelector("canvas[data-drawn=After]");
      const share = async (id) => {
        const { span, states } = await ask(base, id, "timeline");
        const { time_ns } = await ask(base, id, `states?lane=0&t0=${span.from_ns}&t1=${span.to_ns}`);
        const all = time_ns.reduce((a, b) => a + b, 0);
        return time_ns[states.findIndex(({ name }) => name === "preempted")] / all;
      };
      const [before, after] = await Promise.all([NESTED, SHADOWED].map(share));
      const words = `${(before * 100).toFixed(1)} % → ${(after * 100).toFixed(1)} %`;
      await page.locator(".legend.both li", { hasText: words }).waitFor();
      await page.getByText(`${SHADOWED} ends after 189.9 ms`).waitFor();
      // A window is one of both.
      await open(page, base, `${BOTH}&view=timeline&t0=100000000&t1=150000000`);
      await page.getByText("Both from 100.0 ms to 150.0 ms after their first events").waitFor();
    },
  ],
  [
    "both flames have one scale, and open together",
    async ({ page, base }) => {
      await open(page, base, `${BOTH}&view=flame`);
      const widths = () =>
        page.evaluate(() =>
          [...document.querySelectorAll(".both-side svg")].map((svg) => {
            const part = [...svg.querySelectorAll("g")].find((g) =>
              g.querySelector("title").textContent.startsWith("off CPU:"),
            );
            return Number(part.querySelector("rect").getAttribute("width")) + 1;
          }),
        );
      const { sections } = await ask(base, NESTED, "report");
      const [vcpu] = rowsOf(sections[0].tables.vcpus);
      const off = ["preempted", "halted", "blocked", "wake_delay"].reduce(
        (sum, state) => sum + (vcpu[`${state}_ns`] ?? 0),
        0,
      );
      const box = await page.locator(".both-side svg").first().getAttribute("viewBox");
      const [before, after] = await widths();
      const expected = (Number(box.split(" ")[2]) * off) / vcpu.wall_ns;
      assert.ok(Math.abs(before - expected) < 1.5, `${before} of ${expected} pixels`);
      assert.ok(after < before / 1.9, `${after} after, ${before} before`);
      await page.locator(".both-side svg g", { hasText: "off CPU" }).first().click();
      assert.equal(await param(page, "focus2"), "off CPU");
      await page.getByRole("button", { name: "up", exact: true }).click();
      assert.equal(await param(page, "focus2"), null);
    },
  ],
  [
    "costs, multiplication and findings show both, gauges and numbers say why not",
    async ({ page, base }) => {
      await open(page, base, `${BOTH}&view=costs`);
      await page.getByText(/^Before, 149 chains: half cost at most 1\.3 ms/).waitFor();
      await page.getByLabel("Costs of", { exact: true }).selectOption("L1 VMRESUME");
      await page.getByText(/^Before, 149 exits/).waitFor();
      await open(page, base, `${BOTH}&view=multiplication`);
      await page.getByText("One exit of L2 for CPUID caused 15.0 exits of L1 before and 3.0 after").waitFor();
      await open(page, base, `${BOTH}&view=findings`);
      const gone = page.locator(".both-findings ul").first();
      await gone.getByText("VMCS shadowing is off or absent").waitFor();
      await open(page, base, `${BOTH}&view=gauges`);
      await page.getByText("has no counterpart in").waitFor();
      await open(page, base, `${BOTH}&view=sections`);
      await page.getByText("the tables of both are in Compared").waitFor();
    },
  ],
  [
    "benches of two machines are pairs with the verdict of their launches, and no timeline is missed",
    async ({ page, base, mock }) => {
      if (mock) return;
      await open(page, base, "r=bench-vmx-shadow-off&b=bench-vmx-shadow-on&view=compared");
      await page.getByRole("heading", { name: "What changed in the benches, and is it real?" }).waitFor();
      await page.getByText("after, emulated: too few numbers for a verdict").first().waitFor();
      assert.equal(await page.locator(".both-lanes, .empty").count(), 0);
    },
  ],
  [
    "what cannot be compared is said in a sentence, and the good half stays",
    async ({ page, base, mock, expectErrors }) => {
      if (mock) return;
      expectErrors();
      for (const view of ["compared", "exits", "timeline", "flame", "costs", "multiplication"]) {
        await open(page, base, `r=${LINUX}&b=hosts-amd&view=${view}`);
        const said = page.locator(".empty, .summary, .figure").first();
        await said.waitFor();
        assert.ok(!(await page.content()).includes("NaN"), view);
      }
      // Of what has nothing in common, and of a recording and itself, no view says that anything is gone.
      for (const [b, why] of [
        ["hosts-amd", "no common metric"],
        [LINUX, "is compared with itself, so nothing can differ"],
      ]) {
        for (const view of [
          "compared",
          "findings",
          "exits",
          "timeline",
          "flame",
          "costs",
          "multiplication",
        ]) {
          await open(page, base, `r=${LINUX}&b=${b}&view=${view}`);
          await page.locator(".apart, .empty", { hasText: why }).waitFor();
          await settled(page);
          assert.equal(await page.locator("[data-both], .both-findings").count(), 0, view);
        }
      }
      await open(page, base, `r=${LINUX}&b=deleted-since&view=compared`);
      await page.getByText("deleted-since could not be opened, so nothing is compared").waitFor();
      await page.waitForSelector(".finding");
    },
  ],
  ...["light", "dark"].map((theme) => [
    `axe-core finds nothing in two recordings beside each other, ${theme}`,
    async ({ page, base }) => {
      for (const view of ["compared", "exits", "timeline", "flame", "costs", "multiplication", "findings"])
        await clean(page, base, `${BOTH}&view=${view}&theme=${theme}`);
    },
  ]),
  [
    "two recordings beside each other are no wider than a screen of 360 pixels",
    async ({ page, base }) => {
      await page.setViewportSize({ width: 360, height: 740 });
      for (const view of ["compared", "exits", "timeline", "flame", "costs", "multiplication", "findings"]) {
        await open(page, base, `${BOTH}&view=${view}`);
        await settled(page);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 360, `${view} is ${wide} pixels wide`);
      }
    },
  ],
];
