// What all steps use: the recordings they open, and how they open them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { settled } from "./settled.mjs";

export const NESTED = "nested-vmx-shadow-off-hog";
export const SHADOWED = "nested-vmx-shadow-on";
export const LINUX = "svm-linux";
export const VIEWS = [
  "findings",
  "timeline",
  "exits",
  "chains",
  "costs",
  "flame",
  "multiplication",
  "gauges",
  "sections",
];

/** The address after all that was done so far. */
export async function address(page) {
  await settled(page);
  return page.evaluate(() => location.hash);
}

export const param = async (page, key) => new URLSearchParams((await address(page)).slice(1)).get(key);

/** The length of the window that is shown. */
export const length = async (page) => Number(await param(page, "t1")) - Number(await param(page, "t0"));

export async function open(page, base, hash) {
  await page.goto("about:blank");
  await page.goto(`${base}/#${hash}`);
  await page.waitForSelector(".figure figcaption, .page, .recordings, .empty");
}

/** What the server answers for a recording. */
export const ask = async (base, id, path) => (await fetch(`${base}/api/recordings/${id}/${path}`)).json();

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** axe-core finds nothing there. */
export async function clean(page, base, hash) {
  await open(page, base, hash);
  await settled(page);
  await audited(page, hash);
}

/** axe-core finds nothing in what is open. */
export async function audited(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
  const said = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`,
  );
  assert.deepEqual(said, [], `axe-core on ${what}`);
}
