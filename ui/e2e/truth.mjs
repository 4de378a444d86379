// The numbers of each view are those of report --json, on the largest recording of the fixtures: no view has a part and calls it all.
import assert from "node:assert/strict";
import { settled } from "./settled.mjs";
import { ask, LINUX, NESTED, open, param } from "./shared.mjs";

const grouped = (value) => Math.round(value).toLocaleString("en-US");

/** A table of section flow as objects, of the host's own trace. */
async function rows(base, name) {
  const { sections } = await ask(base, LINUX, "report");
  const { columns, rows } = sections[0].tables[name];
  const all = rows.map((row) => Object.fromEntries(columns.map((column, i) => [column.name, row[i]])));
  return all.filter(({ machine }) => machine === "L0");
}

const sum = (all, name) => all.reduce((sum, row) => sum + (row[name] ?? 0), 0);

const caption = (page) => page.locator("figcaption").first().textContent();

export const truth = [
  [
    "multiplication has every exit of every complete chain",
    async ({ page, base, mock }) => {
      if (mock) return;
      const chains = await rows(base, "chains");
      const closed = sum(chains, "count") - sum(chains, "censored") - sum(chains, "disturbed");
      const exits = sum(await rows(base, "chain_exits"), "count");
      await open(page, base, `r=${LINUX}&view=multiplication`);
      const said = await caption(page);
      assert.ok(said.includes(`${grouped(closed)} exits of L2`), said);
      assert.ok(
        said.includes(`caused ${grouped(exits)} exits of L1, ${(exits / closed).toFixed(1)} per exit`),
        said,
      );
      const bands = new Set((await rows(base, "chain_exits")).map((row) => `${row.reason}/${row.l1_reason}`));
      assert.equal(await page.locator("svg.picture path[opacity]").count(), bands.size);
    },
  ],
  [
    "costs have all complete chains, and their quantiles are exact",
    async ({ page, base, mock }) => {
      if (mock) return;
      const chains = await rows(base, "chains");
      const closed = sum(chains, "count") - sum(chains, "censored");
      const all = [];
      for (let offset = 0; ; offset += 1000) {
        const page = await ask(base, LINUX, `chains?sort=time&offset=${offset}&limit=1000`);
        all.push(...page.chains);
        if (page.chains.length === 0) break;
      }
      const calm = all.filter((chain) => chain.cost_ns !== null && !chain.interrupted && !chain.migrated);
      const costs = calm.map((chain) => chain.cost_ns).sort((a, b) => a - b);
      const aggregates = await ask(base, LINUX, "aggregates");
      assert.equal(aggregates.chains - aggregates.censored, closed);
      assert.equal(aggregates.chains - aggregates.censored - aggregates.disturbed, costs.length);
      const median = aggregates.shares.find(([share]) => share >= 0.5)[1];
      assert.equal(median, costs[Math.ceil(0.5 * costs.length) - 1]);
      await open(page, base, `r=${LINUX}&view=costs`);
      // The picture of all chains comes after that of the most expensive ones.
      const said = await page.locator("figcaption", { hasText: "chains between" }).first().textContent();
      assert.ok(
        said.includes(`${grouped(costs.length)} chains between`) ||
          said.includes(`${grouped(closed)} chains between`),
        said,
      );
    },
  ],
  [
    "the flame is as wide as all time of all vCPUs",
    async ({ page, base, mock }) => {
      if (mock) return;
      const wall = sum(await rows(base, "vcpus"), "wall_ns");
      await open(page, base, `r=${LINUX}&view=flame`);
      const said = await caption(page);
      const seconds = wall / 1e9;
      assert.ok(
        said.includes(
          `${seconds.toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 })} s in all`,
        ),
        `${said}: ${seconds}`,
      );
    },
  ],
  [
    "gauges count all chains of their stretch",
    async ({ page, base, mock }) => {
      if (mock) return;
      const { slots, chains, t0_ns, t1_ns } = await ask(base, LINUX, "aggregates");
      assert.equal(
        slots.chains.reduce((a, b) => a + b, 0),
        chains,
      );
      const at = slots.chains.indexOf(Math.max(...slots.chains));
      await open(page, base, `r=${LINUX}&view=gauges&at=${((at + 0.5) / slots.chains.length).toFixed(4)}`);
      await page.waitForSelector("svg.gauge");
      const first = Math.max(0, at + 1 - slots.back);
      const seconds = ((t1_ns - t0_ns) / slots.chains.length / 1e9) * Math.min(slots.back, at + 1);
      const rate = slots.chains.slice(first, at + 1).reduce((a, b) => a + b, 0) / seconds;
      const gauges = await page.locator("svg.gauge").allTextContents();
      const gauge = gauges.find((text) => text.includes("reflected"));
      assert.ok(gauge, `${gauges}`);
      const shown = Number(gauge.replace(/,/g, "").match(/[\d.]+/)[0]);
      assert.ok(Math.abs(shown - rate) <= Math.max(1, rate * 0.01), `${shown} on the gauge, ${rate} counted`);
    },
  ],
  [
    "evidence of a state leads to the longest time in it, not to the first place that is full of it",
    async ({ page, base, mock }) => {
      if (mock) return;
      const { span, states } = await ask(base, NESTED, "timeline");
      const preempted = states.findIndex(({ name }) => name === "preempted");
      const { slices } = await ask(
        base,
        NESTED,
        `slices?lane=0&t0=${span.from_ns}&t1=${span.to_ns}&limit=100000`,
      );
      const waits = slices.filter(({ state }) => state === preempted);
      const longest = waits.reduce((a, b) => (b.to_ns - b.from_ns > a.to_ns - a.from_ns ? b : a));
      await open(page, base, `r=${NESTED}`);
      const card = page.locator("article", { hasText: "FLW-PREEMPT" });
      await card
        .getByRole("button", { name: /^See it/ })
        .first()
        .click();
      await page.waitForFunction(() => location.hash.includes("mark="));
      await settled(page);
      assert.equal(Number(await param(page, "mark")), longest.from_ns);
    },
  ],
];
