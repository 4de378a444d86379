import { describe, expect, it } from "vitest";
import { bytesOfBase64, selectChains } from "./inlined";
import { picksWithin, placesOfPicks } from "./picks";
import type { Recording } from "./source";
import type { ChainInFull } from "./types";

const chain = (id: number, reason: string, from_ns: number, cost_ns: number | null) =>
  ({ id, lane: 0, reason, from_ns, to_ns: from_ns + 10, exits: id, cost_ns }) as ChainInFull;

describe("chains of a report file", () => {
  const all = [chain(0, "MSR", 0, 5), chain(1, "HLT", 20, null), chain(2, "MSR", 40, 9)];

  it("answer the server's query", () => {
    expect(selectChains(all, { sort: "cost", descending: true }).chains.map((it) => it.id)).toEqual([
      2, 0, 1,
    ]);
    expect(selectChains(all, { reason: "MSR", limit: 1 })).toMatchObject({ total: 2, chains: [{ id: 0 }] });
    expect(selectChains(all, { t0: 25, t1: 26 }).chains.map((it) => it.id)).toEqual([1]);
  });

  it("come from base64 byte by byte", () => {
    expect([...bytesOfBase64(" AP+A\n")]).toEqual([0, 255, 128]);
  });

  it("has picks of a window that are those of its own chains", async () => {
    expect(placesOfPicks(1)).toEqual({ median: 0, p99: 0, worst: 0 });
    expect(placesOfPicks(200)).toEqual({ median: 100, p99: 2, worst: 0 });
    const many = Array.from({ length: 300 }, (_, i) => chain(i, "MSR", i * 100, 1000 + ((i * 7) % 300)));
    const recording = { chains: async (asked: object) => selectChains(many, asked) } as unknown as Recording;
    const open = { ...many[0]!, picks: { median: 1, p99: 1, worst: 1, next: 8, previous: null } };
    const window = { t0: 10_000, t1: 20_000 };
    const picks = await picksWithin(recording, open, window);
    const inside = many.filter((it) => it.to_ns > window.t0 && it.from_ns < window.t1);
    const costs = inside.map((it) => it.cost_ns!).sort((a, b) => a - b);
    expect(many[picks.worst!]!.cost_ns).toBe(costs.at(-1));
    expect(many[picks.median!]!.cost_ns).toBe(costs[Math.ceil(costs.length / 2) - 1]);
    expect(picks.next).toBe(8);
  });
});
