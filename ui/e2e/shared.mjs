// What all steps use: the recordings they open, and how they open them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

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

/** A page writes its address this often at most (ADDRESS_MS of state/store.ts): a timer of that length fires after the last write. */
const ADDRESS_MS = 60;

/** The address after all that was done so far. */
export const address = (page) =>
  page.evaluate((ms) => new Promise((done) => setTimeout(() => done(location.hash), ms)), ADDRESS_MS);

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
  await page.waitForTimeout(500);
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
