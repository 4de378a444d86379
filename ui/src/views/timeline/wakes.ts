/** Who woke the threads of lanes, as far as the lanes' answers tell: arrows between lanes, and what is said of one slice. */
import type { Slice, Slices, Timeline, Wake } from "../../data/types";
import type { Link } from "./arrows";
import { sliceAt } from "./found";

/** In the lane that is woken: half way there are often the words of a chain of the lane between. */
const LABEL = 0.75;

/** From each waker that has a lane to the lane of the thread that it woke, at the instant of the wake-up. */
export function wakeLinks(timeline: Timeline, stairs: Map<number, Slices>): Link[] {
  const end = (lane: number, ns: number) => {
    const slice = sliceAt(stairs.get(lane), ns);
    return { lane, ns, state: timeline.states[slice?.state ?? -1]?.name ?? "unknown" };
  };
  return [...stairs].flatMap(([lane, { wakes }]) =>
    (wakes ?? []).flatMap(({ by, woken_ns }) =>
      by === null || by.lane === null
        ? []
        : [
            {
              from: end(by.lane, woken_ns),
              to: end(lane, woken_ns),
              label: `woken by ${by.name}`,
              at: LABEL,
            },
          ],
    ),
  );
}

/** The wake-up that a slice is about: it is the wait that began with it, or what the thread did first after it. */
export function wakeOf({ from_ns }: Slice, wakes: Wake[] | undefined): Wake | null {
  return wakes?.find(({ woken_ns, ran_ns }) => ran_ns === from_ns || woken_ns === from_ns) ?? null;
}
