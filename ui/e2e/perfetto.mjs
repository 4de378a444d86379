// 'Open in Perfetto' against a page that speaks its protocol and stands in for it: nothing of the network is asked.
import assert from "node:assert/strict";
import { LINUX, open, param } from "./shared.mjs";

const STAND_IN = `<!doctype html><title>stand-in</title><script>
  window.pings = 0;
  addEventListener("message", (event) => {
    if (event.data === "PING") {
      // Deaf at first, as the real page is while it loads.
      if (++window.pings > 2) event.source.postMessage("PONG", event.origin);
    } else window.taken = event.data.perfetto;
  });
</script>`;

export const perfetto = [
  [
    "the shown window goes to Perfetto, byte for byte what the server makes of it",
    async ({ page, base }) => {
      const asked = [];
      await page.context().route(/ui\.perfetto\.dev/, (route) => {
        asked.push(route.request().url());
        return route.fulfill({ contentType: "text/html", body: STAND_IN });
      });
      await open(page, base, `r=${LINUX}&view=timeline&t0=1000000000&t1=1200000000`);
      const window = `t0=${await param(page, "t0")}&t1=${await param(page, "t1")}`;
      const [tab] = await Promise.all([
        page.context().waitForEvent("page"),
        page.getByRole("button", { name: /Perfetto/ }).click(),
      ]);
      await tab.waitForFunction(() => window.taken !== undefined);
      const taken = await tab.evaluate(() => ({
        bytes: [...new Uint8Array(window.taken.buffer)],
        title: window.taken.title,
      }));
      const served = await fetch(`${base}/api/recordings/${LINUX}/perfetto?${window}`);
      assert.ok(Buffer.from(taken.bytes).equals(Buffer.from(await served.arrayBuffer())));
      assert.equal(taken.title, `${LINUX}, 1.000000 s to 1.200000 s`);
      await page.getByText("Opened in Perfetto.").waitFor();
      assert.deepEqual(asked, ["https://ui.perfetto.dev/"]);
      await tab.close();
    },
  ],
  [
    "a tab of Perfetto that is closed too early is said",
    async ({ page, base }) => {
      await page
        .context()
        .route(/ui\.perfetto\.dev/, (route) => route.fulfill({ contentType: "text/html", body: "deaf" }));
      await open(page, base, `r=${LINUX}&view=timeline`);
      const [tab] = await Promise.all([
        page.context().waitForEvent("page"),
        page.getByRole("button", { name: /Perfetto/ }).click(),
      ]);
      await tab.close();
      await page.getByText("was closed before it was ready").waitFor();
    },
  ],
];
