// The pictures of the documentation, from a real server.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { LINUX, NESTED, open, SHADOWED } from "./shared.mjs";

const SHOTS = [
  ["findings", `r=${NESTED}&theme=light`],
  ["timeline", `r=${LINUX}&view=timeline&theme=light`],
  ["staircase", `r=${LINUX}&view=timeline&theme=light`],
  ["exits", `r=${NESTED}&view=exits&b=${SHADOWED}&theme=light`],
  ["chains", `r=${NESTED}&view=chains&b=${SHADOWED}&theme=light`],
  ["latency", `r=${LINUX}&view=latency&theme=light`],
  ["flame", `r=${LINUX}&view=flame&theme=light`],
  ["multiplication", `r=${LINUX}&view=flow&theme=light`],
  ["gauges", `r=${LINUX}&view=gauges&theme=dark&at=0.55`],
  ["sections", `r=${LINUX}&view=sections&theme=light`],
];

export async function shoot(browser, base, folder) {
  mkdirSync(folder, { recursive: true });
  const page = await browser.newPage({ viewport: { width: 1180, height: 720 } });
  for (const [name, hash] of SHOTS) {
    let at = hash;
    if (name === "staircase") {
      const { chains } = await (await fetch(`${base}/api/recordings/${LINUX}/chains?limit=300`)).json();
      const chain = chains.at(-1);
      const rim = (chain.to_ns - chain.from_ns) * 0.6;
      at = `r=${LINUX}&view=timeline&theme=light&t0=${Math.round(chain.from_ns - rim)}&t1=${Math.round(chain.to_ns + rim)}`;
    }
    await open(page, base, at);
    await page.waitForTimeout(900);
    await page.screenshot({ path: join(folder, `${name}.png`) });
    console.log(`wrote ${name}.png`);
  }
  await page.setViewportSize({ width: 360, height: 720 });
  await open(page, base, `r=${LINUX}&view=timeline&theme=dark`);
  await page.waitForTimeout(900);
  await page.screenshot({ path: join(folder, "narrow.png") });
  await page.close();
}
