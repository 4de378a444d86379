/** Opens the timeline around a stretch of it, with a mark where it begins, and says what lies there. */
import type { Pick } from "../maths/picked";
import { clamp, type Window } from "../maths/window";
import { groupsShowing } from "./groups";
import { go, notice, recording, whole } from "./store";

/** `pick`: the slice to be seen, where one is known; its lane is unfolded, and no filter hides it. */
export function openTimeline({ t0, t1 }: Window, words: string, pick?: Pick): void {
  const timeline = recording.value?.timeline;
  const rim = Math.max(50, (t1 - t0) * 0.4);
  const around = clamp({ t0: t0 - rim, t1: t1 + rim }, whole.value);
  const of = pick &&
    timeline && {
      pick: `${pick.lane}.${Math.max(0, Math.floor(pick.ns))}`,
      groups: groupsShowing(timeline, pick.lane),
      lane: null,
      lanes: null,
    };
  go({ view: "timeline", ...around, mark: Math.round(t0), pick: null, area: null, ...of }, true);
  notice.value = words;
  // Whoever pressed a link far down is at the top of what it leads to, with the keyboard as well.
  document.getElementById("main")?.focus({ preventScroll: true });
  scrollTo(0, 0);
}
