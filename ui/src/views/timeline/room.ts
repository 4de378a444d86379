/** The height that the lanes may take, so that axis, legend and details are on the screen with them. */
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** What stands above and below the lanes. */
const AROUND = 330;
const DETAILS = 190;
const LEAST = 220;

export function useRoom(box: RefObject<HTMLElement | null>, details: boolean): number {
  const [, setTurn] = useState(0);
  useEffect(() => {
    const turn = () => setTurn((turn) => turn + 1);
    addEventListener("resize", turn);
    return () => removeEventListener("resize", turn);
  }, []);
  // A wide screen's page is scaled up; the box knows by how much.
  const it = box.current;
  const zoom = it && it.clientWidth > 0 ? it.getBoundingClientRect().width / it.clientWidth : 1;
  return Math.max(LEAST, innerHeight / zoom - AROUND - (details ? DETAILS : 0));
}
