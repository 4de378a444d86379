// Sums over invented chains, as the server's aggregates have them: of the window, in 200 by 36 cells and 600 slots.
const [COLUMNS, ROWS, SLOTS, BACK] = [200, 36, 600, 24];
const SHARES = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999];

export function aggregatesOf({ chains, timeline }, t0, t1) {
  const end = Math.min(t1, timeline.span.to_ns);
  const mine = chains.filter((chain) => chain.from_ns >= t0 && chain.from_ns < end);
  const rank = (costs, share) => costs[Math.max(1, Math.ceil(share * costs.length)) - 1] ?? null;
  const ordered = (some) => some.map((chain) => chain.cost_ns).sort((a, b) => a - b);
  const costs = ordered(mine);
  const [from_ns, to_ns] = [costs[0] ?? 1, (costs.at(-1) ?? 1) + 1];
  const place = (chain, width) => Math.floor(((chain.from_ns - t0) / (end - t0)) * width);
  const cells = new Map();
  const slots = Array.from({ length: SLOTS }, () => []);
  for (const chain of mine) {
    const row = Math.floor((Math.log(chain.cost_ns / from_ns) / Math.log(to_ns / from_ns)) * ROWS);
    const cell = row * COLUMNS + place(chain, COLUMNS);
    cells.set(cell, (cells.get(cell) ?? 0) + 1);
    slots[place(chain, SLOTS)].push(chain);
  }
  const recent = slots.map((_, i) => ordered(slots.slice(Math.max(0, i + 1 - BACK), i + 1).flat()));
  const worst = mine.find((chain) => chain.cost_ns === costs.at(-1));
  return {
    t0_ns: t0,
    t1_ns: end,
    chains: mine.length,
    censored: 0,
    disturbed: 0,
    heat: {
      columns: COLUMNS,
      rows: ROWS,
      from_ns,
      to_ns,
      cells: [...cells].sort(([a], [b]) => a - b),
      beyond: 0,
    },
    shares:
      costs.length > 0 ? [...SHARES.map((share) => [share, rank(costs, share)]), [1, costs.at(-1)]] : [],
    slots: {
      back: BACK,
      chains: slots.map((slot) => slot.length),
      closed: slots.map((slot) => slot.length),
      exits: slots.map((slot) => slot.reduce((sum, chain) => sum + chain.exits, 0)),
      p50_ns: recent.map((some) => rank(some, 0.5)),
      p99_ns: recent.map((some) => rank(some, 0.99)),
    },
    worst: worst ? { from_ns: worst.from_ns, to_ns: worst.to_ns } : null,
  };
}
