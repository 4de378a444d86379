/** The slices of lanes that are drawn as staircases: of all that need them in one request, once the window is at rest. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Recording } from "../../data/source";
import type { Tile } from "../../data/tile";
import type { Slices } from "../../data/types";
import { slicesIn } from "../../draw/lane";
import type { Window } from "../../maths/window";
import type { LanePlace } from "./layout";
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
  const few = lanes.filter((lane) => lane.deep && mayBe(tiles, lane.id, window, width)).map(({ id }) => id);
  const here = held.window === name;
  const missing = few.filter((id) => !here || !held.map.has(id));
  const asked = useRef("");
  const key = `${name} ${missing.join()}`;
  // What lies in no window that is drawn any more goes as soon as the new one is at rest.
  const stale = !here && few.length === 0 && held.map.size > 0;
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
              map: new Map([...(before.window === name ? before.map : []), ...whole]),
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

function mayBe(tiles: Tile[], lane: number, window: Window, width: number): boolean {
  if (!tiles.some((tile) => tile.lanes.some((has) => has.lane === lane))) return false;
  return slicesIn(tiles, lane, window.t0, window.t1) * STAIR_PIXELS < width;
}
