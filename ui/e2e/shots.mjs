// Pictures of every view from a real server: light, dark, on a narrow screen and on a 4k wall.
//
// The documentation keeps all light ones and some of the others; `--shots=FOLDER` writes all of them, to be looked at.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { COUNTING, settled } from "./settled.mjs";
import { ask, LINUX, NESTED, open, SHADOWED } from "./shared.mjs";

const SIZES = {
  light: { width: 1180, height: 720 },
  dark: { width: 1180, height: 720 },
  narrow: { width: 360, height: 720 },
  "4k": { width: 3840, height: 2160 },
};

const SHOTS = [
  ["recordings", ""],
  ["findings", `r=${NESTED}`],
  ["timeline", `r=${LINUX}&view=timeline`],
  ["staircase", `r=${LINUX}&view=timeline&groups=host+CPUs`],
  ["exits", `r=${LINUX}&view=exits&q=vm:qemu-system-x86-170`],
  ["difference", `r=${NESTED}&view=exits&b=${SHADOWED}`],
  ["compared", `r=${NESTED}&view=compared&b=${SHADOWED}`],
  ["both-timelines", `r=${NESTED}&view=timeline&b=${SHADOWED}`],
  ["both-flames", `r=${NESTED}&view=flame&b=${SHADOWED}`],
  ["chains", `r=${NESTED}&view=chains&b=${SHADOWED}`],
  ["costs", `r=${LINUX}&view=costs`],
  ["flame", `r=${LINUX}&view=flame`],
  ["multiplication", `r=${LINUX}&view=multiplication`],
  ["gauges", `r=${LINUX}&view=gauges&at=0.55`],
  ["sections", `r=${LINUX}&view=sections`],
  ["plan", "r=plan-chain&view=sections"],
  ["migration", "r=migrate-logs&view=sections"],
];

/** What a picture is of, where that is not the top of the page. */
const OF = {
  plan: ".figure:has(.flow)",
  migration: ".figure",
  "both-timelines": "figure:has(.both-lanes)",
  "both-flames": "figure:has(.both-side)",
};

/** Those of the documentation, by view and kind. */
const KEPT = {
  dark: ["timeline", "staircase", "gauges", "difference", "compared"],
  narrow: ["timeline", "findings", "exits"],
  "4k": ["gauges"],
};

async function address(base, name, hash) {
  if (name !== "staircase") return hash;
  const { chains } = await ask(base, LINUX, "chains?limit=300");
  const chain = chains.at(-1);
  const rim = (chain.to_ns - chain.from_ns) * 0.6;
  return `${hash}&t0=${Math.round(chain.from_ns - rim)}&t1=${Math.round(chain.to_ns + rim)}`;
}

/** `all`: every view in every kind, else those of the documentation. */
export async function shoot(browser, base, folder, all) {
  mkdirSync(folder, { recursive: true });
  for (const [kind, viewport] of Object.entries(SIZES)) {
    const page = await browser.newPage({ viewport });
    await page.addInitScript(COUNTING);
    for (const [name, hash] of SHOTS) {
      if (!all && kind !== "light" && !KEPT[kind].includes(name)) continue;
      const theme = kind === "dark" ? "dark" : "light";
      await open(page, base, `${await address(base, name, hash)}&theme=${theme}`);
      await settled(page);
      // The first page asks for one recording's findings after another.
      await page.waitForFunction(() => !document.body.textContent.includes("reading its findings"));
      const file = kind === "light" ? `${name}.png` : `${name}-${kind}.png`;
      const part = OF[name] && page.locator(OF[name]).first();
      // As high as it is, so that the bar at the top covers nothing of it.
      if (part) await page.setViewportSize({ ...viewport, height: 3 * viewport.height });
      await (part ?? page).screenshot({ path: join(folder, file) });
      await page.setViewportSize(viewport);
    }
    await page.close();
  }
  console.log(`wrote the pictures in ${folder}`);
}
