// A plan: its controls compute it anew, by the program's own model.
import assert from "node:assert/strict";
import { ask, clean, open } from "./shared.mjs";

const PLAN = "plan-chain";

export const plan = [
  [
    "a plan is computed anew as its controls move, and is as planned again",
    async ({ page, base, mock }) => {
      if (mock) return; // The stand-in has no model.
      await open(page, base, `r=${PLAN}&view=sections&table=datapath.rates`);
      const summary = page.locator(".controls + p");
      const before = await summary.textContent();
      await page.getByLabel("VNFs", { exact: true }).press("ArrowLeft");
      await page.waitForFunction(
        (text) => document.querySelector(".controls + p").textContent !== text,
        before,
      );
      const { summary: expected } = await ask(base, PLAN, "sections/datapath?vnfs=6");
      assert.equal(await summary.textContent(), expected);
      await page.getByLabel("NIC").selectOption("E810-CQ");
      const other = await ask(base, PLAN, "sections/datapath?vnfs=6&nic=E810-CQ");
      await page.waitForFunction(
        (text) => document.querySelector(".controls + p").textContent === text,
        other.summary,
      );
      const { columns, rows } = other.tables.rates;
      const shown = page.locator(".figure", { has: page.locator("[id='rates-title']") }).locator("tbody tr");
      assert.equal(await shown.count(), rows.length);
      assert.equal(columns[0].name, "design");
      await page.getByRole("button", { name: "Reset" }).click();
      await page.waitForFunction(
        (text) => document.querySelector(".controls + p").textContent === text,
        before,
      );
      assert.ok(await page.getByRole("button", { name: "Reset" }).isDisabled());
    },
  ],
  [
    "the way of a packet has every crossing, in as many lines as the screen needs",
    async ({ page, base, mock }) => {
      if (mock) return; // The stand-in has no model.
      const { figures } = await ask(base, PLAN, "sections/datapath");
      const { flows } = figures.find(({ drawing }) => drawing === "flows");
      const heights = [];
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 800 });
        await open(page, base, `r=${PLAN}&view=sections`);
        await page.waitForSelector(".flow svg");
        assert.equal(await page.locator(".flow").count(), flows.length);
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
        for (const [i, flow] of flows.entries()) {
          const drawn = page.locator(".flow").nth(i);
          const crossings = flow.hops.reduce((sum, hop) => sum + hop.crossings * hop.count, 0);
          assert.ok((await drawn.locator("p").textContent()).endsWith(`${crossings} crossings of PCIe`));
          assert.equal(await drawn.locator("circle").count(), crossings, "none of eight VNFs is folded");
        }
        heights.push((await page.locator(".flow svg").first().boundingBox()).height);
      }
      assert.ok(heights[1] > 2 * heights[0], `${heights}: a narrow screen breaks it into more lines`);
    },
  ],
  [
    "axe-core finds nothing in a plan, light and dark",
    async ({ page, base, mock }) => {
      if (mock) return;
      for (const theme of ["light", "dark"])
        await clean(page, base, `r=${PLAN}&view=sections&theme=${theme}`);
    },
  ],
];
