// The first page: how long recordings are, what is worst in them, and which of them cannot be read.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { start } from "./serve.mjs";
import { ask, LINUX, NESTED, open, param } from "./shared.mjs";

const fixtures = resolve(import.meta.dirname, "../../fixtures");

export const recordings = [
  [
    "the list has the length and the worst finding of each recording",
    async ({ page, base }) => {
      await open(page, base, "");
      const card = page.locator(".recordings a", { has: page.getByText(NESTED, { exact: true }) });
      const brief = await ask(base, NESTED, "brief");
      await card.getByText(`${brief.worst.severity}: ${brief.worst.title}`).waitFor();
      await card.getByText(`${(brief.duration_ns / 1e6).toFixed(1)} ms, recorded at L0`).waitFor();
      await page.waitForFunction(() => !document.body.textContent.includes("reading its findings"));
    },
  ],
  [
    "a list that cannot be read is named as such, and one brief that fails does not cost the others",
    async ({ page, base, expectErrors }) => {
      expectErrors();
      await page.route(/api\/recordings$/, (route) =>
        route.fulfill({ status: 500, json: { error: "the folder is gone" } }),
      );
      await page.goto(base);
      await page.getByText("The list of recordings cannot be read").waitFor();
      await page.getByText("the folder is gone").waitFor();
      assert.equal(await page.getByRole("button", { name: "All recordings" }).count(), 0);
      await page.unroute(/api\/recordings$/);
      await page.route(new RegExp(`${NESTED}/brief`), (route) => route.fulfill({ status: 404, json: {} }));
      await open(page, base, "");
      const failed = page.locator(".recordings a", { has: page.getByText(NESTED, { exact: true }) });
      await failed.getByText("no summary: open it").waitFor();
      await page.waitForFunction(() => !document.body.textContent.includes("reading its findings"));
    },
  ],
  [
    "recordings that cannot be read stand below the others, with the reason and what to do",
    async ({ page, program, mock }) => {
      if (mock) return;
      const folder = mkdtempSync(join(tmpdir(), "kvmscope-unreadable-"));
      cpSync(join(fixtures, "nested-svm-toy"), join(folder, "good"), { recursive: true });
      mkdirSync(join(folder, "newer"));
      writeFileSync(join(folder, "newer/recording.json"), '{"schema":"kvmscope-recording/9"}');
      writeFileSync(join(folder, "cut.kvmscope"), Buffer.from("28b52ffd", "hex"));
      const server = await start({ program, folder });
      try {
        await page.goto(server.base);
        await page.getByText("2 recordings cannot be read").waitFor();
        const newer = page.locator(".unreadable li", { hasText: "newer" });
        await newer.getByText(/schema is `kvmscope-recording\/9`/).waitFor();
        await newer.getByText("Correct its recording.json.").waitFor();
        await page
          .locator(".unreadable li", { hasText: "Copy the file again" })
          .getByText("cut.kvmscope")
          .first()
          .waitFor();
        assert.deepEqual(await page.locator(".recordings a strong").allTextContents(), ["good"]);
        await page.locator(".recordings a", { hasText: "good" }).click();
        await page.waitForSelector(".summary");
        const offered = page.getByLabel("Compare with").locator("option");
        assert.deepEqual(await offered.allTextContents(), ["compare with …"]);
      } finally {
        server.child.kill();
        rmSync(folder, { recursive: true });
      }
    },
  ],
  [
    "a recording whose trace turns out to be damaged stands below the others too",
    async ({ page, base }) => {
      const brief = await ask(base, NESTED, "brief");
      await page.route(new RegExp(`${NESTED}/brief`), (route) =>
        route.fulfill({
          json: {
            ...brief,
            duration_ns: null,
            findings: 0,
            answer: "",
            time: [],
            worst: null,
            problem: "it ends too early",
          },
        }),
      );
      await page.goto(base);
      const card = page.locator(".unreadable li", { hasText: NESTED });
      await card.getByText("it ends too early").waitFor();
      await card.getByText("Its trace is damaged").waitFor();
      // The bundled pastes have some of which nothing can be read, too.
      await page.getByText(/^\d+ recordings? cannot be read$/).waitFor();
      assert.equal(await page.locator(".recordings a strong", { hasText: NESTED }).count(), 0);
    },
  ],
  [
    "a server that goes away is told once on the list, which goes on when it is back",
    async ({ page, base, expectErrors }) => {
      expectErrors();
      // It ends after the first brief.
      let briefs = 0;
      let gone = false;
      await page.route(/\/api\//, (route) => {
        if (/brief$/.test(route.request().url()) && ++briefs === 2) gone = true;
        return gone ? route.abort() : route.continue();
      });
      await page.goto(base);
      await page.locator(".lost").waitFor();
      const said = await page.locator("#app").textContent();
      assert.equal(said.match(/does not answer/g).length, 1);
      assert.ok(!/no summary|reading its findings/.test(said), said);
      gone = false;
      await page.getByRole("button", { name: "Ask now" }).click();
      await page.locator(".lost").waitFor({ state: "detached" });
      const card = page.locator(".recordings a", { has: page.getByText(NESTED, { exact: true }) });
      await card.locator(".worst").waitFor();
    },
  ],
  [
    "a view that could not be fetched, and one whose numbers could not, are there once the server is back, without a reload",
    async ({ page, base, expectErrors }) => {
      expectErrors();
      // As when a server ends before the views were fetched ahead.
      const late = /\/Chains[.-]/;
      let isLate = true;
      let gone = false;
      await page.route(/./, (route) =>
        gone || (isLate && late.test(route.request().url())) ? route.abort() : route.continue(),
      );
      await open(page, base, `r=${NESTED}`);
      await page.waitForSelector(".summary");
      await page.evaluate(() => {
        globalThis.isSamePage = true;
      });
      gone = true;
      await page.keyboard.press("4");
      await page.getByText("The view appears as soon as it does.").waitFor();
      assert.equal(await page.locator(".lost").count(), 1);
      [gone, isLate] = [false, false];
      await page.getByRole("button", { name: "Ask now" }).click();
      await page.waitForSelector("svg.ladder");
      await page.locator(".lost").waitFor({ state: "detached" });
      gone = true;
      await page.keyboard.press("5");
      await page.locator(".lost").waitFor();
      // Nobody presses anything: it is asked again by itself.
      gone = false;
      await page.waitForSelector(".figure figcaption");
      await page.locator(".lost").waitFor({ state: "detached" });
      assert.ok(await page.evaluate(() => globalThis.isSamePage), "no reload");
    },
  ],
  [
    "opening a recording puts the keyboard on its heading, and an unknown view is corrected in the address",
    async ({ page, base }) => {
      await open(page, base, "");
      await page.locator(".recordings a", { has: page.getByText(NESTED, { exact: true }) }).focus();
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => document.activeElement?.tagName === "H1");
      assert.equal(await page.evaluate(() => document.activeElement.textContent), `Findings of ${NESTED}`);
      await open(page, base, `r=${NESTED}&view=zzz`);
      await page.waitForFunction(() => !location.hash.includes("zzz"));
      await page.waitForSelector(".summary");
      assert.equal(await param(page, "r"), NESTED);
      // The system's own colours take the ground of what is open away: it has a line around it.
      await page.emulateMedia({ forcedColors: "active" });
      const lines = await page.evaluate(() =>
        [...document.querySelectorAll("nav.views a")].map((it) => [
          it.getAttribute("aria-current"),
          getComputedStyle(it).outlineStyle,
        ]),
      );
      assert.deepEqual(
        lines.map(([, line]) => line),
        lines.map(([current]) => (current ? "solid" : "none")),
      );
    },
  ],
  [
    "views begin at their top, also where no strip stands above them",
    async ({ page, base }) => {
      for (const view of ["of-nesting", "sections"]) {
        await open(page, base, `r=hosts-intel&view=${view}`);
        await page.locator("main h2").first().waitFor();
        const above = await page.evaluate(() => {
          const [main, first] = ["main", "main h2"].map((it) =>
            document.querySelector(it).getBoundingClientRect(),
          );
          return first.top - main.top;
        });
        assert.ok(above < 30, `${above} pixels above the first heading of ${view}`);
      }
    },
  ],
  [
    "a recording that is read for long says how far that is",
    async ({ page, base }) => {
      let answer = { read_bytes: 0, of_bytes: 0, pass: 0 };
      let go;
      const may = new Promise((done) => {
        go = done;
      });
      await page.route("**/progress", (route) => route.fulfill({ json: answer }));
      await page.route("**/report", async (route) => {
        await may;
        await route.continue();
      });
      await page.goto(`${base}/#r=${LINUX}`);
      const waiting = page.getByText(/^Reading svm-linux, [\d.]+ [kM]B, for \d+ s …$/);
      await waiting.waitFor();
      const [, size] = (await waiting.textContent()).match(/^Reading svm-linux, (.+), for/);
      answer = { read_bytes: 43e6, of_bytes: 100e6, pass: 2 };
      // Of the file's size: two questions that read it at once are no file of twice that size.
      await page.getByText(`Reading svm-linux: 43 % of ${size}, pass 2 …`).waitFor();
      assert.equal(await page.locator("progress").getAttribute("value"), "0.43");
      const said = page.locator(".loading [role=status]");
      assert.equal(await said.textContent(), "Reading svm-linux …", "what is read out does not change");
      go();
      await page.waitForSelector(".summary");
      assert.equal(await page.locator(".loading").count(), 0);
    },
  ],
];
