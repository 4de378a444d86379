/** The keyboard: everything the pointer does. `?` shows these tables. */
import { pan, zoom } from "../maths/window";
import { go, hash, helpOpen, recording, show, shown, whole } from "./store";
import { viewsOf } from "./views";

export const KEYS: [string, string][] = [
  ["w / s", "zoom in, zoom out"],
  ["a / d", "move earlier, later"],
  ["f", "show the whole recording"],
  ["[ / ]", "previous, next chain"],
  ["/", "filter"],
  ["1 to 9", "open a view"],
  ["t", "dark or light"],
  ["?", "this help"],
  ["Esc", "close, clear the filter and the mark, leave full screen"],
];

/** What the pointer does on the timeline and on the strip above each view. */
export const GESTURES: [string, string][] = [
  ["drag", "timeline: move; strip: choose a window"],
  ["wheel", "zoom at the pointer"],
  ["shift-drag", "choose a window on the timeline"],
  ["click", "open the chain at this place"],
];

const middle = () => (shown.value.t0 + shown.value.t1) / 2;

const ACTIONS: Record<string, () => void> = {
  w: () => show(zoom(shown.value, middle(), 0.6, whole.value)),
  s: () => show(zoom(shown.value, middle(), 1 / 0.6, whole.value)),
  a: () => show(pan(shown.value, -0.25, whole.value)),
  d: () => show(pan(shown.value, 0.25, whole.value)),
  f: () => show(whole.value),
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
    go({ q: null, mark: null, finding: null, wall: null });
  },
};

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
    const action = view ? () => go({ view: view.id }, true) : ACTIONS[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
