// Lanes under the hand: they stay where they are, say what is there, and are found, unfolded, filtered and sorted.
import assert from "node:assert/strict";
import { settled } from "./settled.mjs";
import { address, ask, LINUX, open, param } from "./shared.mjs";

export const CANVAS = ".lane-canvas .above";

export async function timeline(page, base, hash) {
  await open(page, base, `${hash}&view=timeline`);
  await page.waitForSelector("canvas[data-drawn]:not([data-drawn='0'])");
  return page.locator(CANVAS).boundingBox();
}

export const close = (a, b, by) => assert.ok(Math.abs(a - b) <= by, `${a} is near ${b}`);

export const onLanes = [
  [
    "two clicks zoom where they point, on every lane and at every height, however slow they are: nothing moves in between",
    async ({ page, base }) => {
      const lanesAt = () =>
        page.evaluate(() =>
          [...document.querySelectorAll(".lane-names li")].map((it) => {
            const { top, height } = it.getBoundingClientRect();
            return { title: it.querySelector("strong")?.textContent ?? null, top, height };
          }),
        );
      const { lanes } = await ask(base, LINUX, "timeline");
      const all = [
        ["vCPU 0", 0.1],
        ["vCPU 0", 0.9],
        ["vCPU 1", 0.1],
        ["vCPU 1", 0.5],
        ["vCPU 1", 0.95],
      ];
      for (const [height, groups, places] of [
        [800, "", all],
        [560, "", all],
        // The lower edge of the box runs through this lane.
        [560, encodeURIComponent("host CPUs"), [["CPU 0", 0.3]]],
      ]) {
        await page.setViewportSize({ width: 1280, height });
        for (const [title, share] of places) {
          const box = await timeline(page, base, `r=${LINUX}&groups=${groups}`);
          if (groups) {
            await page.evaluate(() => document.querySelector(".lane-box").scrollTo(0, 1e6));
            const name = page.locator(".lane-names li", { has: page.locator(`strong:text-is("${title}")`) });
            const { y, height } = await name.boundingBox();
            const by = y + height / 2 - (box.y + box.height);
            await page.evaluate((by) => document.querySelector(".lane-box").scrollBy(0, by), by);
          }
          await settled(page);
          const before = await lanesAt();
          const row = before.find((it) => it.title === title);
          assert.equal(
            row.top + row.height > box.y + box.height,
            groups !== "",
            `${title} is cut by the edge`,
          );
          const [x, y] = [box.x + box.width * 0.4, row.top + row.height * share];
          await page.mouse.move(x, y);
          await page.mouse.down();
          await page.mouse.up();
          // So much later that the details are there: a hand may take its time.
          await page.locator(".details dl").waitFor();
          await settled(page);
          assert.deepEqual(await lanesAt(), before, `lanes after the first click on ${title}`);
          const picked = await param(page, "pick");
          const [lane, at] = picked.split(".").map(Number);
          assert.equal(lanes.find(({ id }) => id === lane).title, title);
          await page.mouse.down({ clickCount: 2 });
          await page.mouse.up({ clickCount: 2 });
          await page.waitForFunction(() => location.hash.includes("t0="));
          const [t0, t1] = [Number(await param(page, "t0")), Number(await param(page, "t1"))];
          assert.ok(t0 <= at && at <= t1, `${at} is shown from ${t0} to ${t1}`);
          assert.equal(await param(page, "pick"), picked);
        }
      }
    },
  ],
  [
    "lanes that are unfolded come into view, below the mean that was there before",
    async ({ page, base }) => {
      await page.setViewportSize({ width: 1280, height: 600 });
      await timeline(page, base, `r=${LINUX}`);
      await settled(page);
      const group = page.locator(".lane-names .group", { hasText: "host CPUs" });
      await group.getByRole("button").click();
      await page.locator(".lane-names strong", { hasText: /^CPU 1$/ }).waitFor();
      await settled(page);
      const box = await page.locator(".lane-box").boundingBox();
      for (const name of ["CPU 0", "CPU 1"]) {
        const row = page.locator(".lane-names li", { has: page.locator(`strong:text-is("${name}")`) });
        const { y, height } = await row.boundingBox();
        assert.ok(y > box.y && y + height <= box.y + box.height, `${name} is in view`);
      }
      const { y } = await group.boundingBox();
      assert.ok(y > box.y, "the group's name is in view");
      // The mean is still told where it was drawn.
      await page.mouse.move(box.x + 600, y + 8);
      await page.locator(".tip", { hasText: "host CPUs (2), mean" }).waitFor();
    },
  ],
  [
    "what is said at the pointer follows what keys move below it, and lies on no name of a lane",
    async ({ page, base }) => {
      const box = await timeline(page, base, `r=${LINUX}&t0=1000000000&t1=1100000000`);
      await settled(page);
      await page.mouse.move(box.x + box.width * 0.55, box.y + 80);
      const first = page.locator(".tip div").first();
      await first.waitFor();
      const said = await first.textContent();
      await page.keyboard.press("d");
      await page.keyboard.press("d");
      await page.waitForFunction((said) => document.querySelector(".tip div")?.textContent !== said, said);
      await settled(page);
      const from = Number((await first.textContent()).match(/from ([\d.]+) s/)[1]) * 1e9;
      const [t0, t1] = [Number(await param(page, "t0")), Number(await param(page, "t1"))];
      close(from, t0 + 0.55 * (t1 - t0), (t1 - t0) / 50);
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 800 });
        await settled(page);
        const now = await page.locator(CANVAS).boundingBox();
        await page.mouse.move(now.x + now.width * 0.52, now.y + 80);
        await first.waitFor();
        const tip = await page.locator(".tip").boundingBox();
        assert.ok(tip.x >= now.x && tip.x + tip.width <= now.x + now.width + 1, `at ${width} pixels`);
      }
    },
  ],
  [
    "a filter without a match says so and a new word to find forgets what was said of the last one",
    async ({ page, base }) => {
      await timeline(page, base, `r=${LINUX}`);
      await page.getByLabel(/^Find slices/).fill("msr");
      await page.getByLabel(/^Find slices/).press("Enter");
      const said = page.locator(".search [role=status]");
      await said.getByText(/^1 of/).waitFor();
      await page.getByLabel(/^Find slices/).fill("cpuid");
      assert.equal(await said.textContent(), "");
      await page.getByLabel("Filter lanes by words").fill("zzz");
      await page.locator("figcaption", { hasText: /^No lane matches "zzz"\.$/ }).waitFor();
      assert.equal(await page.locator(".legend li").count(), 0);
      await page.getByRole("button", { name: "Show all lanes" }).click();
      await page.locator(".lane-names strong").first().waitFor();
    },
  ],
  [
    "the lanes are two keys from the top of the page, and the ring around them runs through no name",
    async ({ page, base }) => {
      await timeline(page, base, `r=${LINUX}`);
      await page.keyboard.press("Tab");
      await page.keyboard.press("Tab");
      await page.getByRole("link", { name: "Skip to the lanes" }).waitFor();
      await page.keyboard.press("Enter");
      assert.equal(await page.evaluate(() => document.activeElement.className), "above");
      await page.keyboard.press("Enter");
      await page.locator(".details dl").waitFor();
      // What a slice is, is read out; that of the next one as well.
      const spoken = page.locator(".details-room > [role=status]");
      await spoken.getByText("vCPU 0").waitFor();
      const first = await spoken.textContent();
      await page.keyboard.press(".");
      await page.waitForFunction(
        (first) => document.querySelector(".details-room > [role=status]").textContent !== first,
        first,
      );
      await settled(page);
      const title = await page.locator(".details h3").textContent();
      assert.ok(
        (await spoken.textContent()).startsWith(title.trim()),
        `${title}: ${await spoken.textContent()}`,
      );
      const ring = await page.evaluate(() =>
        [".lane-box", ".lane-canvas .above"].map(
          (it) => getComputedStyle(document.querySelector(it)).outlineStyle,
        ),
      );
      assert.deepEqual(ring, ["solid", "none"]);
    },
  ],
  [
    "lanes are filtered, pinned and sorted, and the address keeps it",
    async ({ page, base }) => {
      const groups = encodeURIComponent("host CPUs");
      await page.setViewportSize({ width: 1280, height: 1200 });
      await timeline(page, base, `r=${LINUX}&groups=${groups}`);
      const names = () => page.locator(".lane-names strong").allTextContents();
      assert.deepEqual((await names()).slice(0, 4), ["vCPU 0", "vCPU 1", "CPU 0", "CPU 1"]);
      const row = page.locator(".lane-names li", { hasText: "CPU 1" }).last();
      await row.hover();
      await row.getByRole("button", { name: /^Pin CPU 1/ }).click();
      assert.equal((await names())[0], "CPU 1");
      await page.getByLabel("Filter lanes by words").fill("vcpu 1 170");
      await page.waitForFunction(() => document.querySelectorAll(".lane-names strong").length === 1);
      assert.deepEqual(await names(), ["vCPU 1"]);
      await page.getByLabel("Filter lanes by words").fill("");
      await page.getByLabel("Order of lanes").selectOption("preempted");
      const { lanes, states } = await ask(base, LINUX, "timeline");
      const preempted = states.findIndex((state) => state.name === "preempted");
      const each = await ask(base, LINUX, "states?lanes=0-1");
      const [a, b] = each.lanes.map(({ time_ns }) => time_ns[preempted]);
      const expected = a >= b ? ["vCPU 0", "vCPU 1"] : ["vCPU 1", "vCPU 0"];
      await page.waitForFunction(
        (first) => document.querySelectorAll(".lane-names strong")[1]?.textContent === first,
        expected[0],
      );
      assert.deepEqual((await names()).slice(1, 3), expected);
      const kept = await address(page);
      assert.match(kept, /pin=\d+/);
      assert.match(kept, /order=preempted/);
      await page.reload();
      await page.waitForFunction(
        (title) => document.querySelector(".lane-names strong")?.textContent === title,
        lanes.find(({ id }) => kept.includes(`pin=${id}`)).title,
      );
    },
  ],
];
