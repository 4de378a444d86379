/** What the box of the lanes keeps in view: what was there when heights change, what was unfolded, and what was picked elsewhere. */
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { areaOf, pickOf } from "../../maths/picked";
import { isPointed } from "../../state/picked";
import { hash } from "../../state/store";
import { AXIS_HEIGHT, type Layout, RIM, revealed } from "./layout";

export function useInView(box: RefObject<HTMLDivElement | null>, place: Layout, height: number): void {
  const anchor = useRef<{ id: number; below: number; at: number } | null>(null);
  const before = useRef({ groups: hash.value.groups, folded: [] as string[] });
  const rows = [...place.groups.map((it) => ({ ...it, id: -1 - it.lanes[0]! })), ...place.lanes];
  const picked = pickOf(hash.value)?.lane ?? areaOf(hash.value)?.lanes[0];
  useLayoutEffect(() => {
    const it = box.current;
    if (!it) return;
    const kept = anchor.current;
    const row = kept && rows.find((row) => row.id === kept.id);
    if (kept && row && row.top !== kept.at && it.scrollTop > 0) it.scrollTop = row.top - kept.below;
    const { groups, folded } = before.current;
    if (groups !== hash.value.groups) {
      for (const group of place.groups.filter((it) => !it.folded && folded.includes(it.key)))
        it.scrollTop = revealed(group, place, { scrolled: it.scrollTop, height });
    }
    before.current = {
      groups: hash.value.groups,
      folded: place.groups.filter((it) => it.folded).map((it) => it.key),
    };
    const { scrollTop } = it;
    const first = rows.filter((row) => row.top >= scrollTop + AXIS_HEIGHT).sort((a, b) => a.top - b.top)[0];
    const looked = rows.find(
      (row) =>
        row.id === picked && row.top < scrollTop + height && row.top + row.height > scrollTop + AXIS_HEIGHT,
    );
    const next = looked ?? first;
    anchor.current = next ? { id: next.id, below: next.top - scrollTop, at: next.top } : null;
  });
  useEffect(() => {
    const it = box.current;
    const row = place.lanes.find((lane) => lane.id === picked);
    // What the pointer chose is where it points: to show all of its lane would move that from under the hand.
    if (!it || !row || isPointed()) return;
    if (row.top < it.scrollTop + AXIS_HEIGHT) it.scrollTop = row.top - AXIS_HEIGHT - RIM;
    else if (row.top + row.height > it.scrollTop + height) it.scrollTop = row.top + row.height - height + RIM;
  }, [picked, height]);
}
