/**
 * The slices of lanes that are drawn as staircases: of all that need them in one request, once the window is at rest.
 * Lanes of one kind in view are drawn alike: one that has too many slices for a staircase makes shares of them all.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Recording } from "../../data/source";
import type { Tile } from "../../data/tile";
import type { LaneKind, Slices } from "../../data/types";
import { slicesIn } from "../../draw/lane";
import type { Window } from "../../maths/window";
import { kindOf, type LanePlace } from "./layout";
import { SETTLE_MS } from "./sums";

/** Slices are worth asking for once they are several pixels wide. */
export const STAIR_PIXELS = 3;
const MOST = 4000;
/** So much more on either side, for the hand that moves on. */
const RIM = 0.3;

interface Held {
  window: string;
  map: Map<number, Slices>;
}

export function useStairs(
  recording: Recording,
  tiles: Tile[],
  lanes: LanePlace[],
  window: Window,
  width: number,
  failed: (sentence: string) => void,
): Map<number, Slices> {
  const [held, setHeld] = useState<Held>({ window: "", map: new Map() });
  const { t0, t1 } = window;
  const name = `${t0}-${t1}`;
  const kinds = useMemo(
    () => new Map(recording.timeline?.lanes.map((lane) => [lane.id, kindOf(lane)])),
    [recording],
  );
  const { few, shares } = fewOf(lanes, kinds, (id) => fewIn(tiles, id, window, width));
  const here = held.window === name;
  const missing = few.filter((id) => !here || !held.map.has(id));
  const asked = useRef("");
  const isShares = (id: number) => shares.has(kinds.get(id)!);
  // What is drawn no more, in this window or because the window moved on, goes as soon as the new one is at rest.
  const stale = here ? [...held.map.keys()].some(isShares) : few.length === 0 && held.map.size > 0;
  const key = `${name} ${missing.join()} ${stale}`;
  useEffect(() => {
    if ((missing.length === 0 && !stale) || asked.current === key) return;
    let current = true;
    const timer = setTimeout(() => {
      asked.current = key;
      const rim = (t1 - t0) * RIM;
      recording.slices(missing, Math.max(0, t0 - rim), t1 + rim, MOST).then(
        (found) => {
          const whole = [...found].filter(
            ([, it]) => it.left_out === 0 || (it.slices.at(-1)?.to_ns ?? 0) >= t1,
          );
          if (current)
            setHeld((before) => ({
              window: name,
              map: new Map([
                ...(before.window === name ? [...before.map].filter(([id]) => !isShares(id)) : []),
                ...whole,
              ]),
            }));
        },
        (error: Error) => failed(error.message),
      );
    }, SETTLE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
      if (asked.current === key) asked.current = "";
    };
  }, [recording, key, stale]);
  return held.map;
}

/**
 * Which lanes become staircases, and the kinds of which one lane has too many slices for that.
 * `isFew` is undefined where a lane's tiles are on their way.
 */
export function fewOf(
  lanes: { id: number; deep: boolean }[],
  kinds: Map<number, LaneKind>,
  isFew: (id: number) => boolean | undefined,
): { few: number[]; shares: Set<LaneKind> } {
  const kindOf = ({ id }: { id: number }) => kinds.get(id)!;
  const shares = new Set(lanes.filter((lane) => !lane.deep || isFew(lane.id) === false).map(kindOf));
  const few = lanes.filter((lane) => !shares.has(kindOf(lane)) && isFew(lane.id));
  return { few: few.map(({ id }) => id), shares };
}

function fewIn(tiles: Tile[], lane: number, window: Window, width: number): boolean | undefined {
  if (!tiles.some((tile) => tile.lanes.some((has) => has.lane === lane))) return undefined;
  return slicesIn(tiles, lane, window.t0, window.t1) * STAIR_PIXELS < width;
}
