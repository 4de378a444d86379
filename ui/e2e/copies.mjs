// What one takes along: true vectors of what is drawn on a canvas, and the numbers behind it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { settled } from "./settled.mjs";
import { ask, LINUX, NESTED, open, SHADOWED } from "./shared.mjs";

/** Presses a copy button with the clipboard out of reach, as in many browsers: a file comes instead. */
async function file(page, name) {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name }).click(),
  ]);
  return readFileSync(await download.path());
}

const noClipboard = () => {
  if (navigator.clipboard) navigator.clipboard.write = () => Promise.reject(new Error("not here"));
};

export const copies = [
  [
    "copies of the timeline and of the heat map are vectors, PNG and CSV come along",
    async ({ page, base }) => {
      await page.addInitScript(noClipboard);
      await open(page, base, `r=${LINUX}&view=timeline`);
      await page.waitForSelector("canvas[data-drawn]:not([data-drawn='0'])");
      await settled(page);
      const svg = String(await file(page, "Save Where was each vCPU? as SVG"));
      assert.match(svg, /preempted [\d.]+ %/, "the legend comes along");
      assert.match(svg, /^<svg .*<path d="M\d+ [\d.]+h1v[\d.]+h-1z.* fill="url\(#pat-guest_l2\)"/s);
      assert.ok(!svg.includes("<image") && !svg.includes("var(--"), "nothing but vectors and colours");
      assert.match(svg, />vCPU 0</);
      const wellFormed = await page.evaluate(
        (text) =>
          new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror") === null,
        svg,
      );
      assert.ok(wellFormed);
      const png = await file(page, "Save Where was each vCPU? as PNG");
      assert.deepEqual([...png.subarray(1, 4)], [...Buffer.from("PNG")]);
      assert.ok(png.length > 20_000, `${png.length} B are no picture`);
      assert.match(String(await file(page, "Save Where was each vCPU? as CSV")), /^state,time_ns\r\n/);
      await open(page, base, `r=${LINUX}&view=costs`);
      const heat = String(await file(page, "Save Does the cost of a chain change over time? as SVG"));
      assert.ok(!heat.includes("<image") && heat.split("<rect").length > 100);
    },
  ],
  [
    "a copy of curves says which is which",
    async ({ page, base, mock }) => {
      if (mock) return; // It has no plans.
      const { sections } = await ask(base, "plan-chain", "report");
      const { title, curves } = sections
        .flatMap(({ figures }) => figures)
        .find(({ drawing }) => drawing === "curves");
      await open(page, base, "r=plan-chain&view=sections");
      const svg = String(await file(page, `Save ${title} as SVG`));
      for (const { label } of curves) assert.ok(svg.includes(`>${label}`), `no entry for ${label}`);
    },
  ],
  [
    "a copy of a figure with several groups has them all",
    async ({ page, base }) => {
      await page.addInitScript(noClipboard);
      const { sections } = await ask(base, NESTED, "report");
      const figures = sections.find(({ id }) => id === "latency").figures;
      const { title, groups } = figures.find(({ id }) => id === "moments");
      assert.ok(groups.length > 1, "one group would show nothing");
      await open(page, base, `r=${NESTED}&view=sections`);
      const svg = String(await file(page, `Save ${title} as SVG`));
      const told = await page.evaluate((text) => {
        const copy = new DOMParser().parseFromString(text, "image/svg+xml");
        // The frame has the picture, which has a drawing for each group.
        const picture = copy.querySelector("svg > svg");
        const own = (name) => [...picture.children].filter(({ tagName }) => tagName === name);
        return {
          headings: own("text").map(({ textContent }) => textContent),
          ends: own("svg").map(
            (part) => Number(part.getAttribute("y")) + Number(part.getAttribute("height")),
          ),
          height: Number(picture.getAttribute("height")),
          frame: [...copy.documentElement.children].map(({ textContent }) => textContent),
        };
      }, svg);
      assert.deepEqual(
        told.headings.slice(0, groups.length),
        groups.map((group) => group.title),
      );
      assert.equal(told.ends.length, groups.length);
      assert.equal(told.ends.at(-1), told.height);
      assert.ok(told.frame.includes(title), "a picture says what it shows,");
      assert.ok(
        told.frame.some((line) => line.startsWith(`${NESTED}, 0 s to `)),
        "of which recording and when,",
      );
      assert.ok(
        told.frame.includes("Emulated (Bochs): times are not real"),
        "and whether its times are real",
      );
    },
  ],
  [
    "a copy of both timelines is vectors with the names of both recordings and their vCPUs",
    async ({ page, base }) => {
      await page.addInitScript(noClipboard);
      await open(page, base, `r=${NESTED}&b=${SHADOWED}&view=timeline`);
      await page.waitForSelector("canvas[data-drawn=After]");
      const title = "Where was each vCPU, before and after?";
      const svg = String(await file(page, `Save ${title} as SVG`));
      assert.ok(!svg.includes("<image") && !svg.includes("var(--"), "nothing but vectors and colours");
      const words = await page.evaluate((text) => {
        const copy = new DOMParser().parseFromString(text, "image/svg+xml");
        return [...copy.querySelectorAll("text, parsererror")].map(({ textContent }) => textContent);
      }, svg);
      for (const expected of [
        title,
        `Before: ${NESTED}`,
        `After: ${SHADOWED}`,
        `${SHADOWED} ends after 189.9 ms.`,
        "vCPU 0",
        "Emulated (Bochs): times are not real",
      ])
        assert.ok(words.includes(expected), `${expected} in ${words.join(" | ")}`);
      assert.ok(words.some((line) => line.startsWith(`before: ${NESTED}, after: ${SHADOWED}`)));
      assert.ok(
        words.some((line) => /^preempted [\d.]+ % → [\d.]+ %$/.test(line)),
        "the legend comes along",
      );
      assert.ok(svg.match(/<path d="M\d+ [\d.]+h1v/g).length >= 8, "states of both");
      const png = await file(page, `Save ${title} as PNG`);
      assert.ok(png.length > 20_000, `${png.length} B are no picture`);
    },
  ],
];
