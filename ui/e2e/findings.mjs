// From a finding to the instant, and from a reason to the finding.
import assert from "node:assert/strict";
import { ask, NESTED, open, param } from "./shared.mjs";

export const findings = [
  [
    "evidence opens the timeline at a chain that has what it names",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}`);
      await page
        .locator("article", { hasText: "FLW-SHADOW" })
        .getByRole("button", { name: /^See it/ })
        .first()
        .click();
      await page.waitForFunction(() => location.hash.includes("mark="));
      assert.equal(await param(page, "view"), "timeline");
      const [t0, t1] = [await param(page, "t0"), await param(page, "t1")];
      const { chains } = await ask(base, NESTED, `chains?t0=${t0}&t1=${t1}`);
      assert.ok(
        chains.some((chain) => chain.sequence.includes("VMREAD")),
        "the window holds such a chain",
      );
      assert.match(await page.locator(".notice").textContent(), /A chain of .* with \d+ × VMREAD/);
      await page.keyboard.press("Escape");
      assert.equal(await param(page, "mark"), null);
    },
  ],
  [
    "a reason leads to the finding that removes it",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}&view=exits&q=vmread`);
      await page.getByRole("button", { name: "FLW-SHADOW" }).first().click();
      await page.locator("article.open", { hasText: "FLW-SHADOW" }).waitFor();
      assert.equal(await param(page, "view"), "findings");
    },
  ],
];
