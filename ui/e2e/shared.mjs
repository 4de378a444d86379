// What all steps use: the recordings they open, and how they open them.
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

export const param = (page, key) =>
  page.evaluate((key) => new URLSearchParams(location.hash.slice(1)).get(key), key);

/** The length of the window that is shown. */
export const length = async (page) => Number(await param(page, "t1")) - Number(await param(page, "t0"));

export async function open(page, base, hash) {
  await page.goto("about:blank");
  await page.goto(`${base}/#${hash}`);
  await page.waitForSelector(".figure figcaption, .page, .recordings, .empty");
}

/** What the server answers for a recording. */
export const ask = async (base, id, path) => (await fetch(`${base}/api/recordings/${id}/${path}`)).json();
