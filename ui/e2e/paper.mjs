// Paper is light, whatever the screen is: canvases too, which no style sheet reaches and for which no browser waits.
import assert from "node:assert/strict";
import { settled } from "./settled.mjs";
import { LINUX, NESTED, open, SHADOWED } from "./shared.mjs";

/** The colour of each canvas at its corner once the page is told that it is printed, in the same task; and how often one was erased. */
const printed = (selector) => {
  const { prototype } = CanvasRenderingContext2D;
  const { clearRect } = prototype;
  let erased = 0;
  prototype.clearRect = function (...args) {
    erased++;
    return clearRect.apply(this, args);
  };
  dispatchEvent(new Event("beforeprint"));
  prototype.clearRect = clearRect;
  const corners = [...document.querySelectorAll(selector)].map((canvas) => [
    ...canvas.getContext("2d").getImageData(0, 0, 1, 1).data,
  ]);
  return { corners, erased };
};

const sum = ([r, g, b]) => r + g + b;

export const paper = [
  [
    "a dark timeline is printed light, at once and with nothing erased, and is dark again afterwards",
    async ({ page, base }) => {
      await page.emulateMedia({ colorScheme: "dark" });
      await open(page, base, `r=${LINUX}&view=timeline&mark=1000000000`);
      await page.waitForSelector("canvas[data-drawn]:not([data-drawn='0'])");
      await settled(page);
      const corner = () =>
        page.evaluate(() => [
          ...document.querySelector("canvas[data-drawn]").getContext("2d").getImageData(0, 0, 1, 1).data,
        ]);
      assert.ok(sum(await corner()) < 150, "dark on the screen");
      const { corners, erased } = await page.evaluate(printed, ".lane-canvas canvas");
      assert.ok(sum(corners[0]) > 700 && corners[0][3] === 255, `the lanes: ${corners[0]}`);
      assert.equal(corners[1][3], 0, "what lies above them covers nothing");
      assert.equal(erased, 0, "erasing is printed too, and takes the lanes away");
      await page.evaluate(() => dispatchEvent(new Event("afterprint")));
      await page.waitForFunction(
        () =>
          document.querySelector("canvas[data-drawn]").getContext("2d").getImageData(0, 0, 1, 1).data[0] < 60,
      );
    },
  ],
  [
    "the heat map and both timelines are printed light as well",
    async ({ page, base }) => {
      await page.emulateMedia({ colorScheme: "dark" });
      await open(page, base, `r=${LINUX}&view=costs`);
      await page.waitForSelector(".heat canvas");
      await settled(page);
      const heat = await page.evaluate(printed, ".heat canvas");
      assert.ok(sum(heat.corners[0]) > 600, `the heat map: ${heat.corners[0]}`);
      await open(page, base, `r=${NESTED}&b=${SHADOWED}&view=timeline`);
      await page.waitForSelector("canvas[data-drawn=After]");
      const pixels = () =>
        page.evaluate(() => [
          ...document.querySelector("canvas[data-drawn=Before]").getContext("2d").getImageData(0, 0, 400, 1)
            .data,
        ]);
      const dark = await pixels();
      const both = await page.evaluate(printed, ".both-lanes canvas");
      assert.equal(both.corners.length, 2);
      assert.equal(both.erased, 0);
      assert.notDeepEqual(await pixels(), dark, "other colours than on the dark screen");
    },
  ],
  [
    "paper has the name of the recording and the view, and nothing to press",
    async ({ page, base }) => {
      await open(page, base, `r=${NESTED}&b=${SHADOWED}&view=timeline`);
      await page.waitForSelector("canvas[data-drawn=After]");
      await page.emulateMedia({ media: "print" });
      await page.locator(".printed", { hasText: `${NESTED} · Timeline` }).waitFor();
      for (const name of ["select", ".tools", ".lane-tools", ".note button"])
        assert.equal(await page.locator(`${name}:visible`).count(), 0, name);
    },
  ],
];
