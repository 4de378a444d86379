// The wall of a measured service chain: live with ceilings, published rates and a stale mark, and played back.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { start } from "./serve.mjs";
import { settled } from "./settled.mjs";
import { ask } from "./shared.mjs";

const fixtures = resolve(import.meta.dirname, "../../fixtures");
const NAME = "chain";

const trial = { design: "ovs-dpdk", pattern: "chain", vnfs: 2, size_bytes: 64, repeat: 0, repeats: 3 };
/** Published of chains of this size. */
const published = [{ point: "p", design: "sriov", vnfs: 8, system_pps: 18.5e6, source: "a talk" }];
const look = (number, more = {}) => ({
  number,
  from_ns: number * 5e8,
  to_ns: (number + 1) * 5e8,
  read_ns: 3e5,
  trial,
  sent_pps: 8e6,
  received_pps: 1e6,
  system_pps: 3e6 + number * 1e5,
  vnfs_pps: [2e6, 1e6 + number * 1e5],
  ceiling: null,
  published,
  ...more,
});

/** A recording whose trials have samples: halves of the windows of the bundled one. */
function sampled(folder) {
  cpSync(join(fixtures, "ovs-dpdk-chain"), join(folder, NAME), { recursive: true });
  const path = join(folder, NAME, "L0/datapath/ovs.json");
  const bed = JSON.parse(readFileSync(path, "utf8"));
  for (const run of bed.runs) {
    const half = (all) => [Math.floor(all / 3), all - Math.floor(all / 3)];
    const [sent, received] = [half(run.window_sent), half(run.window_received)];
    run.samples = [0, 1].map((at) => ({
      to_ns: run.begin_ns + Math.round((run.window_ns * (at + 1)) / 2),
      read_ns: 300_000,
      sent: sent[at],
      received: received[at],
      vnfs: Array.from({ length: run.vnfs }, () => received[at]),
    }));
  }
  writeFileSync(path, JSON.stringify(bed));
  return bed;
}

const labels = (page) =>
  page.locator("svg.gauge").evaluateAll((all) => all.map((gauge) => gauge.getAttribute("aria-label")));

/** Steps through the wall by key, and looks whether the last gauge says what the recording holds. */
async function played(page, bed) {
  const last = bed.runs.at(-1);
  const sample = last.samples.at(-1);
  const seconds = (sample.to_ns - last.samples[0].to_ns) / 1e9;
  const mpps = (packets) => (packets / seconds / 1e6).toPrecision(3);
  const [all, , end] = await labels(page);
  assert.match(all, new RegExp(`^all VNFs: ${mpps(sample.received * last.vnfs)} Mpps`));
  assert.match(end, new RegExp(`^end of the chain: ${mpps(sample.received)} Mpps`));
  const slider = page.getByLabel("Sample");
  const words = () => page.locator(".figure h2").first().textContent();
  await slider.focus();
  await page.keyboard.press("Home");
  assert.match(await words(), /Chain of 1 VNF on ovs-dpdk, .* trial 1 of /);
  await page.keyboard.press("ArrowRight");
  assert.equal(await slider.inputValue(), "1");
  await page.getByRole("button", { name: "Play" }).focus();
  await page.getByLabel("Speed").selectOption("16");
  await page.getByRole("button", { name: "Play" }).press("Enter");
  await page.waitForFunction(() => Number(document.querySelector("input[type=range]").value) > 2);
}

export const rates = (clean) => [
  [
    "a chain that is measured stands on the wall with its ceiling, published rates and a stale mark",
    async ({ page, program, mock }) => {
      if (mock) return;
      const folder = mkdtempSync(join(tmpdir(), "kvmscope-rates-"));
      sampled(folder);
      const write = (samples, every_ns) => {
        const file = { schema: "kvmscope-live/1", every_ns, patience_ns: 9e10, ended: false, samples };
        writeFileSync(join(folder, "new"), JSON.stringify(file));
        renameSync(join(folder, "new"), join(folder, NAME, "live.json"));
      };
      write([look(0)], 3e8);
      const server = await start({ program, folder });
      try {
        await page.goto(server.base);
        await page.getByText("watch its gauges").click();
        await page.getByText("Chain of 2 VNFs on ovs-dpdk, 64 bytes, trial 1 of 3").waitFor();
        await page.getByText("frames with FCS, sent by all VNFs", { exact: true }).waitFor();
        await page.getByText("two are missing").waitFor();
        assert.equal((await labels(page))[0], "all VNFs: 3.00 Mpps, stale, 1 published");
        assert.equal(await page.locator("svg.gauge").count(), 5);
        write([look(0), look(1, { ceiling: { resource: "pmd", system_pps: 4e6, from: "earlier" } })], 3e8);
        const next = "all VNFs: 3.10 Mpps, modelled ceiling 4.00 Mpps, pmd, 1 published";
        await page.locator(`svg.gauge[aria-label='${next}']`).waitFor();
      } finally {
        server.child.kill();
        rmSync(folder, { recursive: true });
      }
    },
  ],
  [
    "samples of a chain are played back from the server and from a report file, by key, as the recording has them",
    async ({ page, program, mock }) => {
      if (mock) return;
      const folder = mkdtempSync(join(tmpdir(), "kvmscope-rates-"));
      const bed = sampled(folder);
      const server = await start({ program, folder });
      const base = server.base.replace(/\/$/, "");
      try {
        await page.goto(`${base}/#r=${NAME}&view=gauges`);
        await page.waitForSelector("svg.gauge");
        await played(page, bed);
        const { tables } = (await ask(base, NAME, "report")).sections.find((it) => it.id === "datapath");
        const modelled = tables.marks.rows.filter((row) => row.includes("modelled"));
        assert.ok(modelled.length > 0, "later trials have a ceiling");
        for (const theme of ["light", "dark"])
          await clean(page, base, `r=${NAME}&view=gauges&theme=${theme}`);
        await page.setViewportSize({ width: 390, height: 800 });
        await settled(page);
        assert.ok(
          await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
          "390 px fit",
        );
        await page.setViewportSize({ width: 1280, height: 800 });
        const out = join(folder, "chain.html");
        const made = spawnSync(program, ["report", "--html", out, join(folder, NAME)]);
        assert.equal(made.status, 0, made.stderr.toString());
        await page.goto("about:blank");
        await page.goto(`file://${out}#view=gauges`);
        await page.waitForSelector("svg.gauge");
        await played(page, bed);
      } finally {
        server.child.kill();
        rmSync(folder, { recursive: true });
      }
    },
  ],
];
