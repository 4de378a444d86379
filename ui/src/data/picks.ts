/** Which chains of a window stand for the others: median, p99 and the most expensive. */
import type { Window } from "../maths/window";
import type { Recording } from "./source";
import type { ChainInFull, Picks } from "./types";

/** Places of the quantiles among `total` chains, the most expensive first. */
export function placesOfPicks(total: number): { median: number; p99: number; worst: number } {
  const from = (share: number) => Math.max(0, total - Math.max(1, Math.ceil(share * total)));
  return { median: from(0.5), p99: from(0.99), worst: 0 };
}

/** The picks of a chain's reason inside a window; neighbours stay those of the whole recording. */
export async function picksWithin(recording: Recording, chain: ChainInFull, window: Window): Promise<Picks> {
  const nth = async (offset: number) =>
    recording.chains({ ...window, reason: chain.reason, sort: "cost", descending: true, offset, limit: 1 });
  const first = await nth(0);
  if (first.total === 0) return chain.picks;
  const places = placesOfPicks(first.total);
  const [median, p99] = await Promise.all([nth(places.median), nth(places.p99)]);
  return {
    ...chain.picks,
    median: median.chains[0]?.id ?? null,
    p99: p99.chains[0]?.id ?? null,
    worst: first.chains[0]?.id ?? null,
  };
}
