// Report files as the program writes them: figures that the page has already are shown as they stand there.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { audited } from "./shared.mjs";

const fixtures = resolve(import.meta.dirname, "../../fixtures");

/** Opens the report file of a fixture, at a view. */
async function opened({ page, program, command = "report" }, fixture, view, run) {
  const folder = mkdtempSync(join(tmpdir(), "kvmscope-still-"));
  try {
    const path = join(folder, "report.html");
    execFileSync(program, [command, join(fixtures, fixture), "--html", path], { stdio: "pipe" });
    await page.goto(`file://${path}#view=${view}`);
    await page.waitForSelector("html[data-kvmscope=mounted]");
    await run(path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Text and drawings of a figure of the static page, which is hidden, and of the dashboard. */
const told = (page) =>
  page.evaluate(() => {
    const inside = (from) => ({
      words: [...from.querySelectorAll("*")].flatMap((part) =>
        [...part.childNodes]
          .filter(({ nodeType }) => nodeType === Node.TEXT_NODE)
          .flatMap(({ data }) => data.split(/\s+/).filter(Boolean)),
      ),
      drawings: from.querySelectorAll("svg").length,
    });
    return [...document.querySelectorAll(".still")].map((still) => {
      const title = still.closest(".figure").querySelector("h2");
      const own = document.getElementById(title.id.replace(/-title$/, "")).cloneNode(true);
      for (const said of own.querySelectorAll(":scope > :is(h3, figcaption)")) said.remove();
      const shown = still.shadowRoot.querySelector("figure");
      return { title: title.textContent, own: inside(own), shown: inside(shown), high: shown.clientHeight };
    });
  });

export const still = [
  [
    "a report file shows the pictures of its page, and saves one with its frame, light and dark",
    async ({ page, program, mock }) => {
      if (mock) return; // It has no program that writes files.
      await page.addInitScript(() => {
        globalThis.refused = [];
        addEventListener("securitypolicyviolation", ({ violatedDirective }) =>
          refused.push(violatedDirective),
        );
      });
      await opened({ page, program }, "plan-chain", "sections", async () => {
        await page.waitForSelector(".still");
        const figures = await told(page);
        assert.ok(figures.length >= 3, `${figures.length} figures`);
        for (const { title, own, shown, high } of figures) {
          assert.deepEqual(shown, own, title);
          assert.ok(shown.drawings > 0 && high > 100, `${title} is ${high} pixels high`);
        }
        const [{ title, own }] = figures;
        const grounds = [];
        for (const theme of ["light", "dark"]) {
          // Against that of the system, which the page itself follows.
          await page.emulateMedia({ colorScheme: theme === "light" ? "dark" : "light" });
          await page.getByRole("button", { name: theme === "light" ? "Light" : "Dark", exact: true }).click();
          await page.waitForSelector(`html[data-theme=${theme}]`);
          const [download] = await Promise.all([
            page.waitForEvent("download"),
            page.getByRole("button", { name: `Save ${title} as SVG` }).click(),
          ]);
          const svg = readFileSync(await download.path(), "utf8");
          const saved = await page.evaluate((text) => {
            const copy = new DOMParser().parseFromString(text, "image/svg+xml");
            const picture = copy.querySelector("svg > svg");
            return {
              broken: copy.querySelector("parsererror")?.textContent ?? null,
              frame: [...copy.documentElement.children].map(({ textContent }) => textContent),
              words: [...picture.querySelectorAll("text")].map(({ textContent }) => textContent).join(" "),
              ground: copy.querySelector("rect").getAttribute("fill"),
              guest: copy.querySelector("#p-guest_l1 rect").getAttribute("fill"),
              ofTheme: getComputedStyle(document.documentElement).getPropertyValue("--state-guest_l1"),
              classes: copy.querySelectorAll("[class], [style]").length,
            };
          }, svg);
          assert.equal(saved.broken, null);
          assert.ok(saved.frame.includes(title), "the frame says what it is");
          assert.ok(
            saved.frame.some((line) => line.startsWith("plan-chain")),
            "and of which recording",
          );
          for (const word of own.words) assert.ok(saved.words.includes(word), `"${word}" is missing`);
          assert.ok(
            !svg.includes("var(--") && saved.classes === 0,
            "it looks like this without a style sheet",
          );
          const parts = saved.ofTheme.match(/[\da-f]{2}/g).map((part) => Number.parseInt(part, 16));
          assert.equal(saved.guest, `rgb(${parts.join(", ")})`, "its fills are of the theme");
          grounds.push(saved.ground);
          await audited(page, `a report file, ${theme}`);
        }
        assert.notEqual(grounds[0], grounds[1]);
      });
      assert.deepEqual(await page.evaluate(() => globalThis.refused), []);
    },
  ],
  [
    "a machine in a report file has a legend of what is drawn there",
    async ({ page, program, mock }) => {
      if (mock) return;
      for (const [fixture, isShared] of [
        ["seed-vhost", true],
        ["hosts-must-gather", false],
      ]) {
        await opened({ page, program, command: "check" }, fixture, "sections", async () => {
          const legend = await page.locator(".still", { has: page.locator(".machines") }).locator(".keys li");
          const entries = await legend.allTextContents();
          assert.deepEqual(entries, [
            "vCPU",
            "threads of a VMM",
            ...(isShared ? ["shared with a vCPU or a thread that polls"] : []),
          ]);
        });
      }
    },
  ],
  [
    "a finding that a picture in a report file names is opened from there, and a narrow screen has room for it",
    async ({ page, program, mock }) => {
      if (mock) return;
      await page.setViewportSize({ width: 390, height: 800 });
      await opened({ page, program }, "hosts-intel", "sections", async () => {
        const rule = page.locator(".still a.rule").first();
        const title = await rule.textContent();
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 390, `it is ${wide} pixels wide`);
        await rule.click();
        assert.equal(await page.locator(".finding.open .rule").textContent(), title);
      });
    },
  ],
];
