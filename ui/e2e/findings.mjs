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
  [
    "evidence opens the rows that it is about, in the table of its section",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}`);
      const { sections } = await ask(base, NESTED, "report");
      const shadow = sections[0].findings.find(({ rule }) => rule === "FLW-SHADOW");
      const { table, keys } = shadow.evidence[0].about.find(({ kind }) => kind === "rows");
      await page.locator("article", { hasText: "FLW-SHADOW" }).locator("li button.link").first().click();
      assert.equal(await param(page, "table"), table);
      const [, name] = table.split(".");
      const { columns, rows } = sections[0].tables[name];
      const at = (key) => columns.findIndex((column) => column.name === key);
      const wanted = rows.filter((row) => Object.entries(keys).every(([key, cell]) => row[at(key)] === cell));
      assert.ok(wanted.length > 0 && wanted.length < rows.length, "the rows are some of the table's");
      await page.getByText(`${wanted.length} of ${rows.length} rows, filtered by`).waitFor();
    },
  ],
  [
    "a wait for a CPU is shown in the lane of the vCPU that waited",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}`);
      await page
        .locator("article", { hasText: "FLW-PREEMPT" })
        .getByRole("button", { name: /^See it/ })
        .first()
        .click();
      await page.waitForFunction(() => location.hash.includes("mark="));
      assert.match(await page.locator(".notice").textContent(), /^preempted for /);
    },
  ],
  [
    "a finding says whether kvmscope can make its change",
    async ({ page, base }) => {
      await open(page, base, "r=seed-vhost");
      const card = page.locator("article", { hasText: "PLC-OVERLAP" });
      await card.getByText("kvmscope apply PLC-OVERLAP@bigip-virtio --from").waitFor();
      assert.equal(await card.getByRole("button", { name: /^See it/ }).count(), 0, "it has no timeline");
      await open(page, base, "r=hosts-amd");
      await page.locator("article", { hasText: "NST-APIC" }).waitFor();
      assert.equal(await page.getByText("kvmscope apply").count(), 0, "modules are reloaded by people");
      await open(page, base, `r=${NESTED}`);
      await page.locator("article", { hasText: "FLW-SHADOW" }).waitFor();
      assert.equal(await page.getByText("kvmscope apply").count(), 0, "nobody has that machine");
    },
  ],
];
