// Hosts with many vCPUs: one request for all lanes, a canvas no larger than its box, tables with the rows on screen alone.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { timeline } from "./lanes.mjs";
import { start } from "./serve.mjs";
import { settled } from "./settled.mjs";
import { open } from "./shared.mjs";

const VCPUS = 64;
const MANY = 256;
/** What a letter in a filter may draw anew, in rows: what is on the screen twice, before and after, with some beyond its edges. */
const MOST_ROWS = 200;

/** A server of a host with many vCPUs, made by the generator beside the program. */
async function served(program, work, vcpus = VCPUS) {
  const generate = join(dirname(program), "generate");
  if (!existsSync(generate)) {
    console.log(`      left out: no ${generate}; cargo build -p kvmscope-generate`);
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), "kvmscope-wide-"));
  execFileSync(generate, ["--vcpus", String(vcpus), "--huge", "8MB", "-o", join(folder, "wide.dat")]);
  const server = await start({ program, folder });
  try {
    await work(server.base.replace(/\/$/, ""));
  } finally {
    server.child.kill();
    rmSync(folder, { recursive: true });
  }
}

export const wide = [
  [
    "64 vCPUs: one request for all lanes on screen, and a canvas as large as what is seen",
    async ({ page, program, mock }) => {
      if (mock) return;
      await served(program, async (base) => {
        const asked = [];
        page.on("request", (request) => asked.push(request.url()));
        await timeline(page, base, "r=wide.dat");
        await settled(page);
        const of = (what) => asked.filter((url) => url.includes(`/${what}?`));
        assert.equal(of("tile").length, 2, `one for the strip, one for the lanes: ${of("tile").join(" ")}`);
        assert.equal(of("states").length, 1);
        const high = await page.evaluate(() => {
          const [canvas, box] = [".lane-canvas canvas", ".lane-box"].map((it) => document.querySelector(it));
          return { canvas: canvas.height, box: box.clientHeight, all: box.scrollHeight };
        });
        assert.equal(high.canvas, high.box);
        assert.ok(high.all > 3 * high.box, `${high.all} px of lanes in a box of ${high.box}`);
        const { lanes } = await (await fetch(`${base}/api/recordings/wide.dat/timeline`)).json();
        const names = await page.locator(".lane-names strong").count();
        assert.ok(names > 2 && names < VCPUS / 2, `${names} names`);
        // Deep enough for staircases, of the busiest lane too: their slices are one request as well.
        asked.length = 0;
        const deep = Math.max(...lanes.filter(({ kind }) => kind === "vcpu").map(({ slices }) => slices));
        const { span } = await (await fetch(`${base}/api/recordings/wide.dat/timeline`)).json();
        const long = Math.round(((span.to_ns - span.from_ns) / deep) * 100);
        const middle = Math.round((span.from_ns + span.to_ns) / 2);
        await timeline(page, base, `r=wide.dat&t0=${middle}&t1=${middle + long}`);
        await page.waitForSelector(".step");
        assert.equal(of("slices").length, 1);
        const [stepped, drawn] = await page.evaluate(() =>
          [".lane-names .stepped", ".lane-names li:not(.group)"].map(
            (it) => document.querySelectorAll(it).length,
          ),
        );
        assert.equal(stepped, drawn, "all lanes in view are drawn alike");
        // The axis stays where it is while the lanes scroll.
        await page.evaluate(() => document.querySelector(".lane-box").scrollTo(0, 3000));
        await settled(page);
        const sticky = await page.evaluate(() => {
          const [canvas, box] = [".lane-canvas canvas", ".lane-box"].map((it) =>
            document.querySelector(it).getBoundingClientRect(),
          );
          return canvas.top - box.top;
        });
        assert.equal(sticky, 0);
        assert.notEqual(await page.locator(".lane-names strong").first().textContent(), null);
      });
    },
  ],
  [
    "a move of the pointer draws no lane again",
    async ({ page, program, mock }) => {
      if (mock) return;
      await served(program, async (base) => {
        const box = await timeline(page, base, "r=wide.dat");
        await settled(page);
        const draws = () => page.evaluate(() => performance.getEntriesByName("timeline")[0]?.startTime);
        const before = await draws();
        for (let i = 0; i < 20; i++) await page.mouse.move(box.x + 200 + 9 * i, box.y + 64 + i);
        await page.locator(".tip").waitFor();
        assert.equal(await draws(), before);
      });
    },
  ],
  [
    "a long table has only rows on screen in the document, and finds all by its filter",
    async ({ page, program, mock }) => {
      if (mock) return;
      await served(program, async (base) => {
        await open(page, base, "r=wide.dat&view=exits");
        const report = await (await fetch(`${base}/api/recordings/wide.dat/report`)).json();
        const { columns, rows } = report.sections[0].tables.exits;
        assert.ok(rows.length > 300, `${rows.length} rows`);
        const shown = () => page.locator("tbody tr:not(.gap)").count();
        assert.ok((await shown()) < 100, `${await shown()} rows in the document`);
        await page.evaluate(() => document.querySelector(".table-box").scrollTo(0, 1e7));
        const at = (name) => columns.findIndex((column) => column.name === name);
        const least = rows.toSorted((a, b) => a[at("total_ns")] - b[at("total_ns")])[0];
        await page.waitForFunction(
          (reason) => [...document.querySelectorAll("td b")].at(-1)?.textContent === reason,
          least[at("reason")],
        );
        const vcpu = rows.filter((row) => row[at("reason")] === "CPUID");
        await page.getByLabel("Filter rows").fill("reason:cpuid");
        await page.waitForFunction(
          (count) =>
            document.querySelector(".table-box table").ariaRowCount === count ||
            document.querySelectorAll("tbody tr:not(.gap)").length === Number(count) - 1,
          String(vcpu.length + 1),
        );
      });
    },
  ],
  [
    "a letter in the filter of a table of 1,500 rows draws only rows on screen",
    async ({ page, program, mock }) => {
      if (mock) return;
      const work = async (base) => {
        // A debug build reads 256 vCPUs for long.
        page.setDefaultTimeout(120_000);
        await open(page, base, "r=wide.dat&view=exits");
        const field = page.getByLabel("Filter rows");
        await page.waitForLoadState("networkidle");
        await field.focus();
        await page.evaluate(() => {
          globalThis.drawn = new Set();
          const note = (list) => {
            for (const { target, addedNodes } of list)
              for (const node of [target, ...addedNodes]) {
                const element = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
                const row = element?.closest("tr");
                if (row) globalThis.drawn.add(row);
              }
          };
          const all = { childList: true, characterData: true, attributes: true, subtree: true };
          new MutationObserver(note).observe(document.body, all);
        });
        const rows = [];
        for (const letter of "l1 cpuid 0 m") {
          await page.keyboard.type(letter);
          await settled(page);
          rows.push(
            await page.evaluate(() => {
              const count = globalThis.drawn.size;
              globalThis.drawn.clear();
              return count;
            }),
          );
        }
        assert.equal(await field.inputValue(), "l1 cpuid 0 m");
        assert.ok(Math.max(...rows) > 0 && Math.max(...rows) < MOST_ROWS, `rows: ${rows.join(" ")}`);
      };
      await served(program, work, MANY);
    },
  ],
  [
    "answers are compressed, short ones are not",
    async ({ base, mock }) => {
      if (mock) return;
      const how = { headers: { "accept-encoding": "gzip" } };
      const long = await fetch(`${base}/api/recordings/svm-linux/report`, how);
      assert.equal(long.headers.get("content-encoding"), "gzip");
      const short = await fetch(`${base}/api/recordings/svm-linux/states?lane=0`, how);
      assert.equal(short.headers.get("content-encoding"), null);
    },
  ],
];
