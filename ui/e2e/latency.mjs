// Pictures of lost time: they draw what the report has, and a moment opens the timeline there.
import assert from "node:assert/strict";
import { ask, LINUX, NESTED, open, param } from "./shared.mjs";

const pictures = async (base) => {
  const { sections } = await ask(base, NESTED, "report");
  return sections.find(({ id }) => id === "latency").figures;
};

export const latency = [
  [
    "a worst moment of the pictures opens the timeline there",
    async ({ page, base }) => {
      const moments = (await pictures(base)).find(({ id }) => id === "moments");
      const { title, span } = moments.groups[0];
      await open(page, base, `r=${NESTED}&view=sections`);
      await page.getByRole("button", { name: `See it on the timeline: ${title}` }).click();
      await page.waitForFunction(() => location.hash.includes("mark="));
      assert.equal(await param(page, "view"), "timeline");
      assert.equal(Number(await param(page, "mark")), span.from_ns);
      const [t0, t1] = [Number(await param(page, "t0")), Number(await param(page, "t1"))];
      assert.ok(t0 <= span.from_ns && t1 >= span.to_ns, `${t0} to ${t1} has the whole moment`);
      assert.equal(await page.locator(".notice").textContent(), title);
    },
  ],
  [
    "pictures of lost time have all losses, and hatch what is not known",
    async ({ page, base }) => {
      const figures = await pictures(base);
      const of = (id) => figures.find((figure) => figure.id === id);
      await open(page, base, `r=${NESTED}&view=sections`);
      const figure = (id) => page.locator(".figure", { has: page.locator(`[id="latency-${id}-title"]`) });
      const titles = await figure("pauses").locator("rect title").allTextContents();
      const drawn = titles.map((title) => Number(title.match(/: ([\d,]+) losses/)[1].replaceAll(",", "")));
      const counted = of("pauses").bins.flatMap(({ counts }) => counts);
      const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
      assert.equal(sum(drawn), sum(counted));
      const [{ cells }] = of("over-time-L0").rows;
      const unknown = cells.filter((cell) => cell === null).length;
      assert.ok(unknown > 0 && unknown < cells.length, "some of the recording is not known");
      assert.equal(await figure("over-time-L0").locator("rect[fill='url(#pat-unknown)']").count(), unknown);
    },
  ],
  [
    "when vCPUs lost time: what L1 saw of the same time is not drawn, and no name lies on a cell, however long it is",
    async ({ page, base }) => {
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 800 });
        await open(page, base, `r=${LINUX}&view=of-latency`);
        const heading = page.getByRole("heading", { name: "When vCPUs lost time" });
        await heading.waitFor();
        assert.equal(await heading.count(), 1);
        const gaps = await page.evaluate(() => {
          const figure = document.querySelector('[aria-labelledby="latency-over-time-L0-title"]');
          return [...figure.querySelectorAll("svg.picture > g")]
            .filter((row) => row.querySelector("rect"))
            .map(
              (row) =>
                row.querySelector("rect").getBoundingClientRect().left -
                row.querySelector("text").getBoundingClientRect().right,
            );
        });
        assert.equal(gaps.length, 2);
        for (const gap of gaps) assert.ok(gap >= 0, `${width} px wide: ${gap} px between name and cell`);
      }
    },
  ],
];
