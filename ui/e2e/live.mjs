// The gauge wall of a recording that is being made: live, ended, silent, refused.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { start } from "./serve.mjs";

const fixtures = resolve(import.meta.dirname, "../../fixtures");
const NAME = "now";

function sample(number, more = {}) {
  const shares = {
    guest_l1: 0.5,
    guest_l2: 0.2,
    kvm: 0.2,
    vmm: 0.05,
    halted: 0.05,
    unknown: 0,
    blocked: null,
  };
  const vm = { vcpus: 2, exits_per_second: 900, userspace_exits_per_second: 4, shares };
  return {
    number,
    from_ns: number * 1e8,
    to_ns: (number + 1) * 1e8,
    seen_share: 1,
    events_per_second: 5000,
    exits_per_second: 1000 + number,
    userspace_exits_per_second: 9,
    chains_per_second: 120,
    exits_per_chain: 15,
    wakeup_p99_ns: null,
    vcpus: 4,
    shares,
    vms: [
      { vm: "web", ...vm },
      { vm: "db", ...vm },
    ],
    lost_events: 0,
    bytes: 1_000_000 * number,
    ...more,
  };
}

const said = (event, data, id) =>
  `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;

/** A stream that is over once it was sent. */
const whole = (samples, reason) =>
  said("recording", { recording: NAME, every_ns: 1e8 }) +
  samples.map((it) => said("sample", it, it.number)).join("") +
  said("end", { reason });

const stream = (page, body) =>
  page.route(/api\/live/, (route) => route.fulfill({ contentType: "text/event-stream", body }));

async function wall(page, base) {
  await page.goto("about:blank");
  await page.goto(`${base}/#live=${NAME}`);
}

const exits = (page) => page.locator("svg.gauge").first().getAttribute("aria-label");

export const live = [
  [
    "live gauges show the last sample, hold an earlier one, and say that the recording ended",
    async ({ page, base }) => {
      await stream(page, whole([sample(0), sample(1), sample(2)], "ended"));
      await wall(page, base);
      await page.getByText("The recording has ended.").waitFor();
      assert.equal(await exits(page), "exits: 1,002 per second");
      assert.equal(await page.locator("svg.gauge[aria-label^='wake-up']").count(), 0, "nothing told it");
      assert.deepEqual(await page.locator(".vms b").allTextContents(), ["web", "db"]);
      await page.getByLabel("Sample").fill("0");
      assert.equal(await exits(page), "exits: 1,000 per second");
      await page.getByRole("button", { name: "Hold" }).click();
      assert.equal(await exits(page), "exits: 1,002 per second");
    },
  ],
  [
    "a recorder that was killed, one that says nothing yet, and no recorder are told apart",
    async ({ page, base, expectErrors }) => {
      expectErrors();
      await stream(page, whole([sample(0, { seen_share: 0.4, lost_events: 7 })], "silent"));
      await wall(page, base);
      await page.getByText("The recorder has stopped sending").waitFor();
      assert.match(await page.locator("figcaption").textContent(), /7 events lost.*of 40.0 % of the time/);
      await page.unroute(/api\/live/);
      await stream(page, said("recording", { recording: NAME, every_ns: 1e9 }));
      await wall(page, base);
      await page.getByText(/Waiting for the first sample|trying again/).waitFor();
      await page.unroute(/api\/live/);
      await page.route(/api\/live/, (route) =>
        route.fulfill({ status: 404, json: { error: "no samples are here" } }),
      );
      await wall(page, base);
      await page.getByText("no samples are here").waitFor();
    },
  ],
];

export const growing = [
  [
    "a growing recording is followed from the server's own stream to its end",
    async ({ page, program, mock }) => {
      if (mock) return;
      const folder = mkdtempSync(join(tmpdir(), "kvmscope-live-"));
      const root = join(folder, NAME);
      cpSync(join(fixtures, "nested-svm-toy"), root, { recursive: true });
      const write = (samples, ended) => {
        const file = { schema: "kvmscope-live/1", every_ns: 1e8, ended, samples };
        writeFileSync(join(root, "live.json.new"), JSON.stringify(file));
        renameSync(join(root, "live.json.new"), join(root, "live.json"));
      };
      // A recorder that does not write for five seconds counts as gone, so this one goes on writing what it has.
      let samples = [sample(0)];
      write(samples, false);
      const recorder = setInterval(() => write(samples, false), 100);
      const server = await start({ program, folder });
      try {
        await page.goto(server.base);
        await page.getByText("being recorded now").waitFor();
        await page.getByText("watch its gauges").click();
        await page.waitForSelector("svg.gauge");
        assert.equal(await exits(page), "exits: 1,000 per second");
        samples = [sample(0), sample(1)];
        await page.locator("svg.gauge[aria-label='exits: 1,001 per second']").waitFor();
        await page.getByText("live, a sample every 100 ms").waitFor();
        clearInterval(recorder);
        write([sample(1), sample(2)], true);
        await page.getByText("The recording has ended.").waitFor();
        assert.equal(await exits(page), "exits: 1,002 per second");
        await page.getByRole("button", { name: "Open the recording" }).click();
        await page.waitForSelector(".summary");
      } finally {
        clearInterval(recorder);
        server.child.kill();
        rmSync(folder, { recursive: true });
      }
    },
  ],
];
