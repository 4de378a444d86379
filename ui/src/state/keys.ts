/** The keyboard: everything the pointer does. `?` shows these tables. */

import { around, clamp, pan, zoom } from "../maths/window";
import { endGesture, go, hash, helpOpen, recording, selected, show, shown, undo, whole } from "./store";
import { viewsOf } from "./views";

export const KEYS: [string, string][] = [
  ["w / s, + / -", "zoom in, zoom out"],
  ["a / d, ← / →", "move earlier, later"],
  ["Home / End", "to the start, to the end"],
  ["f", "show what is chosen; again: everything"],
  ["0", "show the whole recording"],
  ["u", "undo a zoom or a move, as Back does"],
  ["Enter, ↑ / ↓", "timeline: details of a slice; of the lane above, below"],
  [", / .", "details of the slice before, after"],
  ["[ / ]", "previous, next chain"],
  ["/", "find or filter"],
  ["1 to 9", "open a view"],
  ["t", "dark or light"],
  ["?", "this help"],
  ["Esc", "close, clear the filter, the choice and the mark, leave full screen"],
];

/** What the pointer does on the timeline and on the strip above each view. */
export const GESTURES: [string, string][] = [
  ["drag", "timeline: move; strip: choose a window"],
  ["wheel", "scroll the lanes"],
  ["ctrl-wheel, pinch", "zoom at the pointer"],
  ["shift-wheel", "move; so does a sideways wheel"],
  ["click", "details of the slice at this place"],
  ["double-click", "zoom to the chain there, then to the slice"],
  ["shift-drag", "choose an area: its shares and reasons"],
  ["hover", "the shares of time in this column"],
];

const length = () => shown.value.t1 - shown.value.t0;
const middle = () => (shown.value.t0 + shown.value.t1) / 2;

const ACTIONS: Record<string, () => void> = {
  w: () => show(zoom(shown.value, middle(), 0.6, whole.value)),
  s: () => show(zoom(shown.value, middle(), 1 / 0.6, whole.value)),
  a: () => show(pan(shown.value, -0.25, whole.value)),
  d: () => show(pan(shown.value, 0.25, whole.value)),
  "+": () => show(zoom(shown.value, middle(), 0.6, whole.value)),
  "=": () => show(zoom(shown.value, middle(), 0.6, whole.value)),
  "-": () => show(zoom(shown.value, middle(), 1 / 0.6, whole.value)),
  f: focus,
  "0": () => show(whole.value),
  u: undo,
  "[": () => void step(-1),
  "]": () => void step(1),
  "/": () => {
    const field = document.querySelector<HTMLInputElement>("input[type=search]");
    if (field) field.focus();
    else go({ view: "exits" });
  },
  t: () => go({ theme: document.documentElement.dataset.theme === "dark" ? "light" : "dark" }),
  "?": () => {
    helpOpen.value = !helpOpen.value;
  },
  Escape: () => {
    helpOpen.value = false;
    selected.value = null;
    go({ pick: null, area: null, q: null, mark: null, finding: null, wall: null });
  },
};

/** What the keys of a page do elsewhere, on the timeline they do in time. */
const ON_TIMELINE: Record<string, () => void> = {
  ArrowLeft: () => ACTIONS.a!(),
  ArrowRight: () => ACTIONS.d!(),
  Home: () => show({ t0: whole.value.t0, t1: whole.value.t0 + length() }),
  End: () => show({ t0: whole.value.t1 - length(), t1: whole.value.t1 }),
};

/** Shows what is chosen; where that is shown already, everything. */
function focus(): void {
  const wanted = selected.value && clamp(around(selected.value), whole.value);
  const { t0, t1 } = shown.value;
  endGesture();
  show(wanted && (wanted.t0 !== t0 || wanted.t1 !== t1) ? wanted : whole.value);
}

/** The chain before or after the open one, in time. */
async function step(by: 1 | -1): Promise<void> {
  if (!recording.value?.timeline) return;
  const open = Number(hash.value.chain ?? Number.NaN);
  if (!Number.isFinite(open)) {
    const first = (await recording.value.chains({ sort: "time", limit: 1 })).chains[0];
    if (first) go({ chain: first.id, view: "chains" });
    return;
  }
  try {
    const next = await recording.value.chain(open + by);
    go({ chain: next.id });
  } catch {
    // The first or the last chain has no neighbour: the open one stays.
  }
}

export function listen(): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target as HTMLElement;
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
    if (typing && event.key !== "Escape") return;
    if (typing) target.blur();
    const view = recording.value ? viewsOf(recording.value)[Number(event.key) - 1] : undefined;
    const onTimeline = hash.value.view === "timeline" && !target.closest?.(".table-box");
    const action = view
      ? () => go({ view: view.id }, true)
      : (ACTIONS[event.key] ?? (onTimeline ? ON_TIMELINE[event.key] : undefined));
    if (!action) return;
    event.preventDefault();
    action();
  });
}
