/** All chains of a recording or of a window of it, page by page, up to a bound that the views name. */
import type { Recording } from "../data/source";
import type { Chain } from "../data/types";
import type { Window } from "../maths/window";
import { type Answer, useAnswer } from "./useAnswer";

const PAGE = 1000;
export const MOST_CHAINS = 20_000;

export async function allChains(
  recording: Recording,
  window: Window | null,
): Promise<{ chains: Chain[]; total: number }> {
  const chains: Chain[] = [];
  let total = 0;
  do {
    const page = await recording.chains({ ...window, sort: "time", offset: chains.length, limit: PAGE });
    total = page.total;
    if (page.chains.length === 0) break;
    chains.push(...page.chains);
  } while (chains.length < Math.min(total, MOST_CHAINS));
  return { chains, total };
}

export function useChains(
  recording: Recording,
  window: Window | null,
): Answer<{ chains: Chain[]; total: number }> {
  return useAnswer(() => allChains(recording, window), [recording, window?.t0, window?.t1]);
}
