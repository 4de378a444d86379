/** The height that the lanes may take, so that axis, legend and details are on the screen with them. */
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** What stands above and below the lanes. */
const AROUND = 330;
/** Kept free for details, whether there are any or not: lanes that moved as they open would take the second click of two. */
const DETAILS = 190;
const LEAST = 220;

export function useRoom(box: RefObject<HTMLElement | null>): number {
  const [room, setRoom] = useState(innerHeight);
  // Not while drawing: to ask for a size then has the page laid out once more in each frame.
  useLayoutEffect(() => {
    const measure = () => {
      const it = box.current;
      // A wide screen's page is scaled up; the box knows by how much.
      const zoom = it && it.clientWidth > 0 ? it.getBoundingClientRect().width / it.clientWidth : 1;
      setRoom(innerHeight / zoom);
    };
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, [box]);
  return Math.max(LEAST, room - AROUND - DETAILS);
}
