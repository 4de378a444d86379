// Pictures of migrations: as many bars, signs and steps as the report has, and none where a value is not known.
import assert from "node:assert/strict";
import { ask, clean, open } from "./shared.mjs";

const MOVED = "migrate-tcg";
const TRACED = "migrate-logs";

const pictures = async (base, recording) => {
  const { sections } = await ask(base, recording, "report");
  return sections.find(({ id }) => id === "migration").figures;
};
const figureOf = (page, id) => page.locator(".figure", { has: page.locator(`[id="migration-${id}-title"]`) });

export const migration = [
  [
    "dark time of a traced migration has a bar for each piece, and none for what nobody measured",
    async ({ page, base }) => {
      const { spans, keys } = (await pictures(base, TRACED)).find(({ id }) => id === "dark");
      await open(page, base, `r=${TRACED}&view=sections`);
      const figure = figureOf(page, "dark");
      const pieces = spans.flatMap(({ rows }) => rows.flatMap((row) => row.stretches));
      assert.ok(pieces.length > 20, `${pieces.length} pieces`);
      assert.equal(await figure.locator(".picture rect").count(), pieces.length);
      assert.deepEqual(
        await figure.locator(".keys li").allTextContents(),
        keys.map(({ what }) => what),
      );
      assert.deepEqual(spans[0].rows.find(({ label }) => label === "the network").stretches, []);
      await figure.getByText("no packets were sent", { exact: true }).waitFor();
      await clean(page, base, `r=${TRACED}&view=sections`);
    },
  ],
  [
    "what was said has a dot for what was, a cross for the naive model, and lost work is shaded",
    async ({ page, base }) => {
      const figures = await pictures(base, MOVED);
      const { spans } = figures.find(({ id }) => id === "said");
      await open(page, base, `r=${MOVED}&view=sections`);
      const rows = spans.flatMap((group) => group.rows);
      const said = figureOf(page, "said");
      assert.equal(await said.locator(".picture rect").count(), rows.length);
      const signs = rows.flatMap((row) => row.signs);
      assert.equal(await said.locator(".picture path[transform]").count(), signs.length);
      assert.equal(await figureOf(page, "work").locator("path[fill-opacity]").count(), 1);
      const { curves, limits } = figures.find(({ id }) => id === "passes");
      assert.equal(await figureOf(page, "passes").locator("path title").count(), curves.length);
      await figureOf(page, "passes").getByText(limits[0].label).waitFor();
      await clean(page, base, `r=${MOVED}&view=sections`);
    },
  ],
];
