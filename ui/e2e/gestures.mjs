// What hands know from other viewers of traces: details, areas, focus, history, wheel, pinch, search, arrows.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { CANVAS, close, onLanes, timeline } from "./lanes.mjs";
import { atOnce, rested, settled } from "./settled.mjs";
import { ask, LINUX, length, NESTED, param } from "./shared.mjs";

/** A chain of the recording and the timeline around it, as a staircase. */
async function aroundChain(page, base, more = "") {
  const { chains } = await ask(base, LINUX, "chains?limit=3");
  const chain = chains[1];
  const rim = chain.to_ns - chain.from_ns;
  const [t0, t1] = [Math.max(0, chain.from_ns - rim), chain.to_ns + rim];
  const box = await timeline(page, base, `r=${LINUX}&lane=${chain.lane}&t0=${t0}&t1=${t1}${more}`);
  await page.waitForSelector(".step");
  const x = (ns) => box.x + ((ns - t0) / (t1 - t0)) * box.width;
  return { chain, box, x, t0, t1 };
}

async function fingers(page) {
  const client = await page.context().newCDPSession(page);
  return (type, touchPoints) => client.send("Input.dispatchTouchEvent", { type, touchPoints });
}

export const gestures = [
  ...onLanes,
  [
    "a click shows the details of a slice below the timeline, with its chain and its neighbours",
    async ({ page, base }) => {
      const { chain, box, x } = await aroundChain(page, base);
      const at = Math.round((chain.from_ns + chain.to_ns) / 2);
      await page.mouse.click(x(at), box.y + 70);
      const panel = page.locator(".details");
      await panel.getByText("Length").waitFor();
      assert.equal(await param(page, "view"), "timeline");
      const [, lane, ns] = (await param(page, "pick")).match(/^(\d+)\.(\d+)$/);
      const { slices } = await ask(base, LINUX, `slices?lane=${lane}&t0=${ns}&t1=${Number(ns) + 1}`);
      const { states } = await ask(base, LINUX, "timeline");
      const slice = slices[0];
      const title = await panel.locator("h3").textContent();
      assert.ok(title.includes(states[slice.state].title), title);
      assert.match(await panel.textContent(), new RegExp(`${chain.reason}, ${chain.exits} exits? of L1`));
      assert.match(await panel.textContent(), /CPU ?CPU \d/);
      // The slice after it begins where this one ends.
      await page.keyboard.press(".");
      await page.waitForFunction((end) => location.hash.includes(`.${end}`), slice.to_ns);
      await panel.getByRole("button", { name: /of L1/ }).click();
      await page.waitForSelector("svg.ladder");
      assert.equal(await param(page, "chain"), String(chain.id));
    },
  ],
  [
    "Enter opens details by key, the arrow down those of the next lane, Escape closes them",
    async ({ page, base }) => {
      const { t0, t1 } = await aroundChain(page, base);
      await timeline(page, base, `r=${LINUX}&t0=${t0}&t1=${t1}`);
      await page.locator(CANVAS).focus();
      await page.keyboard.press("Enter");
      await page.locator(".details").getByText("Length").waitFor();
      assert.match(await param(page, "pick"), /^0\./);
      await page.keyboard.press("ArrowDown");
      await page.waitForFunction(() => /pick=1\./.test(location.hash));
      await page.keyboard.press("Escape");
      await page.waitForSelector(".details", { state: "detached" });
      assert.equal(await param(page, "pick"), null);
    },
  ],
  [
    "shift-drag chooses an area and keeps the window; its shares are those of the states",
    async ({ page, base }) => {
      const box = await timeline(page, base, `r=${LINUX}`);
      await page.keyboard.down("Shift");
      await page.mouse.move(box.x + 300, box.y + 60);
      await page.mouse.down();
      await page.mouse.move(box.x + 460, box.y + box.height - 20, { steps: 5 });
      await page.mouse.up();
      await page.keyboard.up("Shift");
      assert.equal(await param(page, "t0"), null, "the window stays");
      const panel = page.locator(".details");
      await panel.getByText("Share").first().waitFor();
      const [t0, t1, list] = (await param(page, "area")).split(".");
      const { lanes } = await ask(base, LINUX, `states?lanes=${list}&t0=${t0}&t1=${t1}`);
      assert.ok(lanes.length >= 2, `several lanes: ${list}`);
      const { states } = await ask(base, LINUX, "timeline");
      const sums = states.map((_, s) => lanes.reduce((sum, { time_ns }) => sum + time_ns[s], 0));
      const total = sums.reduce((a, b) => a + b, 0);
      const most = sums.indexOf(Math.max(...sums));
      const first = await panel.locator("tbody tr").first().textContent();
      const expected = `${((100 * sums[most]) / total).toFixed(1)} %`;
      assert.ok(first.includes(states[most].title) && first.includes(expected), `${first}: ${expected}`);
      const { reasons } = await ask(base, LINUX, `reasons?lanes=${list}&t0=${t0}&t1=${t1}`);
      assert.equal(await panel.locator("tbody b").first().textContent(), reasons[0].detail);
    },
  ],
  [
    "f shows what is chosen, f again and 0 everything, and Back goes through the windows",
    async ({ page, base }) => {
      const [t0, t1] = [1_000_000_000, 1_100_000_000];
      await timeline(page, base, `r=${LINUX}&area=${t0}.${t1}.0`);
      await page.locator(".details").getByText("Share").first().waitFor();
      await page.keyboard.press("f");
      close(await length(page), 1.2 * (t1 - t0), 2);
      await page.keyboard.press("f");
      assert.equal(await param(page, "t0"), null);
      await rested(page);
      const box = await page.locator(CANVAS).boundingBox();
      await page.mouse.move(box.x + 400, box.y + 60);
      await page.keyboard.down("Control");
      await atOnce(page, async () => {
        for (let i = 0; i < 12; i++) await page.mouse.wheel(0, -60);
        await settled(page);
      });
      await page.keyboard.up("Control");
      await rested(page);
      const once = await length(page);
      await atOnce(page, async () => {
        for (let i = 0; i < 4; i++) await page.keyboard.press("w");
        await settled(page);
      });
      assert.ok((await length(page)) < once);
      // One step for a gesture, not one for each of its windows.
      await page.goBack();
      await settled(page);
      assert.equal(await length(page), once);
      await page.keyboard.press("u");
      await page.waitForFunction(() => !location.hash.includes("t0="));
      await page.keyboard.press("w");
      await page.keyboard.press("0");
      await page.waitForFunction(() => !location.hash.includes("t0="));
      // What is undone is a zoom, and never a view.
      await page.keyboard.press("3");
      await page.keyboard.press("2");
      await page.keyboard.press("u");
      await page.getByText("Nothing to undo.").waitFor();
      assert.equal(await param(page, "view"), "timeline");
    },
  ],
  [
    "the wheel scrolls, with ctrl it zooms at the pointer, with shift it moves",
    async ({ page, base }) => {
      const groups = encodeURIComponent("host CPUs\tL1 (own trace)");
      await page.setViewportSize({ width: 1280, height: 560 });
      const box = await timeline(page, base, `r=${LINUX}&groups=${groups}`);
      const scrolled = () => page.evaluate(() => document.querySelector(".lane-box").scrollTop);
      await page.mouse.move(box.x + box.width / 4, box.y + 60);
      await page.mouse.wheel(0, 120);
      await page.waitForFunction(() => document.querySelector(".lane-box").scrollTop > 0);
      assert.equal(await param(page, "t0"), null, "the window stays");
      const top = await scrolled();
      await page.keyboard.down("Control");
      await page.mouse.wheel(0, -500);
      await page.keyboard.up("Control");
      await page.waitForFunction(() => location.hash.includes("t0="));
      assert.equal(await scrolled(), top);
      const { span } = await ask(base, LINUX, "timeline");
      const [t0, long] = [Number(await param(page, "t0")), await length(page)];
      close(t0 + long / 4, span.from_ns + (span.to_ns - span.from_ns) / 4, long / 100);
      await page.keyboard.down("Shift");
      await page.mouse.wheel(0, 200);
      await page.keyboard.up("Shift");
      await settled(page);
      assert.ok(Number(await param(page, "t0")) > t0);
      close(await length(page), long, 1);
    },
  ],
  [
    "two fingers zoom, and what is between them stays there",
    async ({ page, base }) => {
      const box = await timeline(page, base, `r=${LINUX}&t0=1000000000&t1=2000000000`);
      const [y, middle] = [box.y + 80, box.x + box.width / 2];
      const at = (apart) => [
        { x: middle - apart, y, id: 0 },
        { x: middle + apart, y, id: 1 },
      ];
      const touch = await fingers(page);
      await touch("touchStart", [at(60)[0]]);
      await touch("touchStart", at(60));
      for (const apart of [80, 110, 140, 180]) await touch("touchMove", at(apart));
      await touch("touchEnd", []);
      await settled(page);
      close(await length(page), 1e9 / 3, 2e6);
      close((Number(await param(page, "t0")) + Number(await param(page, "t1"))) / 2, 1.5e9, 2e6);
    },
  ],
  [
    "a double click shows the chain, another one the slice in it",
    async ({ page, base }) => {
      const { chain, box, x, t0, t1 } = await aroundChain(page, base);
      const at = chain.from_ns + (chain.to_ns - chain.from_ns) * 0.4;
      await page.mouse.dblclick(x(at), box.y + 70);
      await page.waitForFunction((before) => !location.hash.includes(`t0=${before}`), t0);
      await settled(page);
      close(await length(page), 1.2 * (chain.to_ns - chain.from_ns), 2);
      const [from, long] = [Number(await param(page, "t0")), await length(page)];
      await page.mouse.dblclick(box.x + ((at - from) / long) * box.width, box.y + 70);
      await page.waitForFunction((before) => !location.hash.includes(`t0=${before}`), from);
      await settled(page);
      assert.ok((await length(page)) < long / 2 && t1 > t0);
    },
  ],
  [
    "zoomed out, the pointer tells the shares of its column as the tile has them",
    async ({ page, base }) => {
      const box = await timeline(page, base, `r=${LINUX}&lane=0`);
      const x = Math.round(box.width * 0.6);
      await page.mouse.move(box.x + x + 0.5, box.y + 60);
      const tip = page.locator(".tip");
      await tip.waitFor();
      const lines = await tip.locator("div").allTextContents();
      assert.match(lines[0], /vCPU 0, .* from /);
      const { span, states } = await ask(base, LINUX, "timeline");
      // A tile's pixel is the power of two of nanoseconds below a pixel of the screen.
      const pixel = 2 ** Math.floor(Math.log2((span.to_ns - span.from_ns) / Math.floor(box.width)));
      const t0 = Math.floor((((x + 0.5) / box.width) * (span.to_ns - span.from_ns)) / pixel) * pixel;
      const t1 = t0 + pixel;
      const { time_ns } = await ask(base, LINUX, `states?lane=0&t0=${t0}&t1=${t1}`);
      const most = time_ns.indexOf(Math.max(...time_ns));
      const said = lines.slice(1).find((line) => line.endsWith(` ${states[most].title}`));
      assert.ok(said, `${states[most].title} in ${lines}`);
      close(Number.parseFloat(said), (100 * time_ns[most]) / pixel, 0.3);
    },
  ],
  [
    "arrows, Home, End, + and - move and zoom, and Help lists keys and mouse",
    async ({ page, base }) => {
      await timeline(page, base, `r=${LINUX}&t0=1000000000&t1=1100000000`);
      const t0 = async () => {
        await settled(page);
        return Number(await param(page, "t0"));
      };
      await page.keyboard.press("ArrowRight");
      assert.ok((await t0()) > 1_000_000_000);
      await page.keyboard.press("Home");
      const { span } = await ask(base, LINUX, "timeline");
      assert.equal(await t0(), span.from_ns);
      await page.keyboard.press("End");
      await settled(page);
      assert.equal(Number(await param(page, "t1")), span.to_ns);
      await page.keyboard.press("+");
      await settled(page);
      close(await length(page), 60_000_000, 2);
      await page.keyboard.press("-");
      await settled(page);
      close(await length(page), 100_000_000, 2);
      await page.keyboard.press("?");
      const help = await page.locator("dialog").textContent();
      for (const word of ["Home / End", "ctrl-wheel", "shift-drag", "double-click"])
        assert.ok(help.includes(word), word);
      // It begins at its top, and no key touches what it does.
      assert.equal(await page.evaluate(() => document.querySelector("dialog").scrollTop), 0);
      const apart = await page.evaluate(() =>
        [...document.querySelectorAll("dialog dl > div")].map(
          (row) =>
            row.querySelector("dd").getBoundingClientRect().left -
            row.querySelector("kbd").getBoundingClientRect().right,
        ),
      );
      assert.ok(Math.min(...apart) >= 8, `${Math.min(...apart)} pixels`);
    },
  ],
  [
    "a search goes from hit to hit through all lanes that are shown, and counts them",
    async ({ page, base }) => {
      await timeline(page, base, `r=${LINUX}`);
      const field = page.getByLabel(/^Find slices/);
      await field.fill("HLT");
      const answer = await ask(base, LINUX, "search?q=hlt&lanes=0-1");
      assert.ok(answer.count > 2, "the fixture has halts");
      await field.press("Enter");
      await page
        .locator(".search")
        .getByText(`1 of ${answer.count.toLocaleString("en-US")}`)
        .waitFor();
      assert.equal(await param(page, "pick"), `${answer.after.lane}.${answer.after.from_ns}`);
      await field.press("Enter");
      await page.locator(".search").getByText(/^2 of/).waitFor();
      await field.press("Shift+Enter");
      await page.locator(".search").getByText(/^1 of/).waitFor();
      await field.fill("no such reason");
      await field.press("Enter");
      await page.locator(".search").getByText("none").waitFor();
    },
  ],
  [
    "the trace is saved without a network, and a tab of Perfetto that fails says how",
    async ({ page, base }) => {
      await page.context().route(/ui\.perfetto\.dev/, (route) => route.abort());
      await timeline(page, base, `r=${LINUX}&t0=1000000000&t1=1200000000`);
      const [saved] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "Save trace" }).click(),
      ]);
      assert.equal(saved.suggestedFilename(), `${LINUX}.pftrace`);
      const served = await fetch(
        `${base}/api/recordings/${LINUX}/perfetto?t0=${await param(page, "t0")}&t1=${await param(page, "t1")}`,
      );
      assert.ok(readFileSync(await saved.path()).equals(Buffer.from(await served.arrayBuffer())));
      const [tab] = await Promise.all([
        page.context().waitForEvent("page"),
        page.getByRole("button", { name: /Perfetto/ }).click(),
      ]);
      await page.getByText("does not answer. Without a network, click 'Save trace'").waitFor();
      await tab.waitForFunction(() => document.body?.textContent.includes("Save trace"));
      await tab.close();
    },
  ],
  [
    "arrows lead to the task that took the CPU, and are drawn only when asked for",
    async ({ page, base }) => {
      const { states, lanes } = await ask(base, NESTED, "timeline");
      const preempted = states.findIndex((state) => state.name === "preempted");
      const { span } = await ask(base, NESTED, "timeline");
      const { slices } = await ask(
        base,
        NESTED,
        `slices?lane=0&t0=${span.from_ns}&t1=${span.to_ns}&limit=90000`,
      );
      const lost = slices.find(({ state, from_ns }) => state === preempted && from_ns > 2e7);
      const rim = lost.to_ns - lost.from_ns;
      const groups = encodeURIComponent("host CPUs");
      const box = await timeline(
        page,
        base,
        `r=${NESTED}&groups=${groups}&t0=${lost.from_ns - rim}&t1=${lost.to_ns + rim}`,
      );
      await page.waitForSelector(".step");
      await settled(page);
      const drawn = () =>
        page.evaluate(() => document.querySelector(".lane-canvas canvas").toDataURL().length);
      const before = await drawn();
      await page.getByRole("button", { name: "Arrows" }).click();
      await settled(page);
      assert.notEqual(await drawn(), before, "arrows are drawn");
      await page.mouse.click(box.x + box.width / 2, box.y + 80);
      const words = await page.locator(".details dl").textContent();
      assert.match(words, /Preempted by.+\(\d+\) for .+, on CPU \d/);
      assert.ok(lanes.length > 1);
    },
  ],
  [
    "an arrow leads from a thread to the one that it woke, and the details of the wait say who did, when and for how long",
    async ({ page, base }) => {
      const { span } = await ask(base, LINUX, "timeline");
      const all = await ask(base, LINUX, `slices?lanes=0,1&t0=${span.from_ns}&t1=${span.to_ns}&limit=50000`);
      const wakes = all.lanes.flatMap(({ lane, wakes }) => wakes.map((wake) => ({ lane, ...wake })));
      const one = wakes.find(({ by, woken_ns, ran_ns }) => [0, 1].includes(by?.lane) && ran_ns > woken_ns);
      const delay = one.ran_ns - one.woken_ns;
      const [t0, t1] = [one.woken_ns - 2 * delay, one.ran_ns + delay];
      const drawn = async () => {
        await timeline(page, base, `r=${LINUX}&t0=${t0}&t1=${t1}&arrows=1&pick=${one.lane}.${one.woken_ns}`);
        await page.waitForSelector(".step");
        await settled(page);
        return page.evaluate(() => document.querySelector(".lane-canvas canvas").toDataURL());
      };
      // Arrows of chains are there either way.
      await page.route("**/slices?*", async (route) => {
        const response = await route.fetch();
        const { lanes } = await response.json();
        const bare = lanes.map(({ wakes, ...lane }) => lane);
        await route.fulfill({ response, json: { lanes: bare } });
      });
      const before = await drawn();
      await page.unroute("**/slices?*");
      assert.notEqual(await drawn(), before, "an arrow is drawn");
      const woken = page.locator(".details dl > div", { hasText: "Woken" });
      const words = await woken.textContent();
      assert.match(words, /by qemu-system-x86 \(17[01]\) at .+, ran .+ later on CPU \d/);
      assert.ok(words.includes(one.by.name) && words.includes(`CPU ${one.cpu}`), words);
      // What it did first says the same; the waker is where it was just then.
      await page.keyboard.press(".");
      await page.waitForFunction((ran) => location.hash.includes(`.${ran}`), one.ran_ns);
      await page.locator(".details dl > div", { hasText: "Before" }).getByText("wake-up delay").waitFor();
      assert.equal(await woken.textContent(), words);
      await woken.getByRole("button").click();
      await page.waitForFunction(
        (pick) => location.hash.includes(`pick=${pick}`),
        `${one.by.lane}.${one.woken_ns}`,
      );
      const other = wakes.find(({ by }) => by !== null && by.lane === null);
      await timeline(page, base, `r=${LINUX}&pick=${other.lane}.${other.woken_ns}`);
      await woken.getByText(`by ${other.by.name} at`).waitFor();
      assert.equal(await woken.getByRole("button").count(), 0, "nobody to go to");
    },
  ],
  [
    "the marks of the axis have units that fit, and count from a base when zoomed in deep",
    async ({ page, base }) => {
      await timeline(page, base, `r=${LINUX}&t0=1234567890&t1=1234568890`);
      assert.match(await page.locator(".axis-base").textContent(), /^1\.23456\d s$/);
      await timeline(page, base, `r=${LINUX}&t0=0&t1=1000`);
      assert.equal((await page.locator(".axis-base").textContent()).trim(), "");
    },
  ],
];
