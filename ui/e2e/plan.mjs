// A plan: its controls compute it anew, by the program's own model.
import assert from "node:assert/strict";
import { ask, open } from "./shared.mjs";

const PLAN = "plan-chain";

export const plan = [
  [
    "a plan is computed anew as its controls move, and is as planned again",
    async ({ page, base, mock }) => {
      if (mock) return; // The stand-in has no model.
      await open(page, base, `r=${PLAN}&view=sections`);
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
];
