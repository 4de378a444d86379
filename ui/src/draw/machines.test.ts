import { expect, test } from "vitest";
import type { Panel } from "../data/types";
import { machines } from "./machines";

const cpu = (cpu: number, chips: string[] = [], contended = false) => ({
  cpu,
  chips,
  hues: chips.map(() => "guest_l1"),
  contended,
});
const panel: Panel = {
  title: "now",
  nodes: [
    { title: "node 0", cores: [[cpu(0, ["vcpu <0>", "8 vhost"], true), cpu(8)]] },
    { title: "node 1", cores: [[cpu(1)]] },
  ],
  links: ["web: emulator on node 1, memory on node 0", "the host: elsewhere"],
  arrows: [
    { from: 1, to: 0 },
    { from: null, to: 0 },
  ],
};

test("every CPU and chip is drawn, escaped, and an arrow leads where both of its ends are known", () => {
  const { inside, width, height } = machines([panel], 900);
  expect(inside.match(/fill="url\(#pat-guest_l1\)"/g)).toHaveLength(2);
  expect(inside).toContain("vcpu &lt;0&gt;");
  expect(inside.match(/stroke-width="2"/g)).toHaveLength(2);
  expect(inside).toContain("memory on node 0");
  expect(width).toBeLessThan(900);
  expect(height).toBeGreaterThan(100);
});

test("placements lie beside each other only where there is room", () => {
  const [narrow, roomy] = [600, 1200].map((room) => machines([panel, panel], room));
  expect(narrow!.height).toBeGreaterThan(1.5 * roomy!.height);
  expect(roomy!.width).toBeGreaterThan(1.5 * narrow!.width);
});
