/** What is open and what is shown: signals over the address, one cursor and one window for all views. */
import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { listOf } from "../data/lanes";
import { returned } from "../data/silence";
import type { Recording, Source } from "../data/source";
import { type Brief, type Listing, type RecordingInfo, vcpuLanes } from "../data/types";
import type { Theme } from "../draw/tokens";
import { clamp, type Window } from "../maths/window";
import { type Hash, numberOf, parseHash, patched, printHash } from "./hash";

export const hash = signal<Hash>(parseHash(location.hash));
const parts = new Map<string, ReadonlySignal<string | undefined>>();

/** One part of the address. Who reads it is drawn again when that part changes, and not with each letter in a filter. */
export function part(key: string): string | undefined {
  const known = parts.get(key) ?? computed(() => hash.value[key]);
  parts.set(key, known);
  return known.value;
}

export const listing = signal<Listing | null>(null);
export const recordings = computed(() => listing.value?.recordings ?? null);
/** What the list shows beside the manifests, as far as it has been read; null for what is not read for a list. */
export const briefs = signal<ReadonlyMap<string, Brief | null>>(new Map());
/** Why a recording cannot be read, as its manifest says or as who tried to read its trace found out. */
export function problemOf({ id, problem }: RecordingInfo): string | null {
  return problem ?? briefs.value.get(id)?.problem ?? null;
}
export const recording = signal<Recording | null>(null);
/** The second recording, for differences. */
export const other = signal<Recording | null>(null);
export const failure = signal<string | null>(null);
/** Why the second recording cannot be shown; the first is shown all the same. */
export const otherFailure = signal<string | null>(null);
export const helpOpen = signal(false);
/** Time under the pointer, shared by all views. */
export const cursor = signal<number | null>(null);
/** The stretch of time that is chosen on the timeline: a slice or an area. */
export const selected = signal<Window | null>(null);
/** What was just done, said aloud by a live region. */
export const notice = signal("");

/** Browsers refuse more than 200 changes of the address in 10 s; a hand that drags makes more. */
const ADDRESS_MS = 60;
let written = Number.NEGATIVE_INFINITY;
let toWrite: ReturnType<typeof setTimeout> | undefined;

function write(push: boolean, zoom = false): void {
  clearTimeout(toWrite);
  toWrite = undefined;
  written = performance.now();
  const address = `${location.pathname}${location.search}${printHash(hash.value)}`;
  const state = push ? { zoom } : history.state;
  history[push ? "pushState" : "replaceState"](state, "", address);
}

/** Puts a patch into the address; `push` makes it a step of the browser's history, and `zoom` one that can be undone by key. */
export function go(patch: Parameters<typeof patched>[1], push = false, zoom = false): void {
  // A step keeps what was there before it, as it was last.
  if (push && toWrite !== undefined) write(false);
  hash.value = patched(hash.value, patch);
  const wait = ADDRESS_MS - (performance.now() - written);
  if (push || wait <= 0) write(push, zoom);
  else toWrite ??= setTimeout(() => write(false), wait);
}

export const whole = computed<Window>(() => {
  const span = recording.value?.timeline?.span;
  return span ? { t0: span.from_ns, t1: Math.max(span.from_ns + 1, span.to_ns) } : { t0: 0, t1: 1 };
});

const from = computed(() => numberOf(hash.value, "t0"));
const to = computed(() => numberOf(hash.value, "t1"));

export const shown = computed<Window>(() => {
  const [t0, t1] = [from.value, to.value];
  return t0 !== null && t1 !== null && t1 > t0 ? clamp({ t0, t1 }, whole.value) : whole.value;
});

export const zoomed = computed(() => shown.value.t0 > whole.value.t0 || shown.value.t1 < whole.value.t1);

/** Changes that follow each other sooner are one gesture. */
const GESTURE_MS = 600;
let lastShown = Number.NEGATIVE_INFINITY;

/** Shows a window; a gesture is one step of the browser's history, however many windows it passes through. */
export function show(window: Window): void {
  const next = clamp(window, whole.value);
  if (next.t0 === shown.value.t0 && next.t1 === shown.value.t1) return;
  const all = next.t0 <= whole.value.t0 && next.t1 >= whole.value.t1;
  const now = performance.now();
  go(all ? { t0: null, t1: null } : { t0: next.t0, t1: next.t1 }, now - lastShown > GESTURE_MS, true);
  lastShown = now;
}

/** The next window is a step of its own, however soon it comes. */
export function endGesture(): void {
  lastShown = Number.NEGATIVE_INFINITY;
  if (toWrite !== undefined) write(false);
}

/** Back to the window before the last gesture, where there was one since this view was opened. */
export function undo(): void {
  if (!history.state?.zoom) {
    notice.value = "Nothing to undo.";
    return;
  }
  endGesture();
  history.back();
}

/** Opens the timeline around a stretch of it, with a mark where it begins, and says what lies there; `lanes`: what is chosen then. */
export function openTimeline({ t0, t1 }: Window, words: string, lanes: number[] = []): void {
  const rim = Math.max(50, (t1 - t0) * 0.4);
  const around = clamp({ t0: t0 - rim, t1: t1 + rim }, whole.value);
  const area =
    lanes.length > 0 ? { area: `${t0}.${t1}.${listOf(lanes)}`, lane: null, lanes: null } : { area: null };
  go({ view: "timeline", ...around, mark: Math.round(t0), pick: null, ...area, ...unfolded(lanes) }, true);
  notice.value = words;
  // Whoever pressed a link far down is at the top of what it leads to, with the keyboard as well.
  document.getElementById("main")?.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** CPUs that explain vCPUs are folded by themselves. */
function unfolded(lanes: number[]): { groups?: string } {
  const { timeline } = recording.value!;
  const first = timeline?.lanes.find(({ id, kind }) => id === lanes[0] && kind !== "vcpu");
  if (!first || vcpuLanes(timeline).length === 0) return {};
  const turned = (hash.value.groups ?? "").split("\t").filter((key) => key && key !== first.group);
  return { groups: [...turned, first.group].join("\t") };
}

const systemDark = matchMedia("(prefers-color-scheme: dark)");
const system = signal<Theme>(systemDark.matches ? "dark" : "light");
systemDark.addEventListener("change", () => {
  system.value = systemDark.matches ? "dark" : "light";
});
/** Paper is light. */
const printing = signal(false);
addEventListener("beforeprint", () => {
  printing.value = true;
});
addEventListener("afterprint", () => {
  printing.value = false;
});
export const theme = computed<Theme>(() => {
  if (printing.value) return "light";
  const asked = hash.value.theme;
  return asked === "dark" || asked === "light" ? asked : system.value;
});

/** Follows the address: opens what it names. */
export function start(source: Source): void {
  addEventListener("hashchange", () => {
    hash.value = parseHash(location.hash);
  });
  addEventListener("popstate", () => {
    // What was about to be written belongs to the step that was left.
    clearTimeout(toWrite);
    toWrite = undefined;
    endGesture();
    hash.value = parseHash(location.hash);
  });
  // What was said of one view is not said of the next.
  effect(() => {
    for (const key of ["r", "view"]) part(key);
    notice.value = "";
  });
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
  effect(() => {
    // What a silent server did not give is asked for again once it is back.
    if (returned.value > 0 && recordings.peek()) return;
    source.recordings().then(
      (list) => {
        if (!recordings.peek() && !hash.peek().r) failure.value = null;
        listing.value = list;
        if (source.inlined && list.recordings[0]) go({ r: list.recordings[0].id });
      },
      (error: Error) => {
        failure.value = error.message;
      },
    );
  });
  const wanted = computed(() => hash.value.r);
  const second = computed(() => hash.value.b);
  follow(source, () => wanted.value, recording, failure);
  follow(source, () => second.value, other, otherFailure);
}

function follow(
  source: Source,
  wanted: () => string | undefined,
  into: typeof recording,
  failed: typeof failure,
): void {
  let turn = 0;
  // Counts how often a server came back that had failed to give it.
  const again = signal(0);
  effect(() => {
    if (returned.value > 0 && failed.peek()) again.value = returned.value;
  });
  effect(() => {
    const id = wanted();
    const mine = ++turn;
    void again.value;
    into.value = null;
    failed.value = null;
    if (!id) return;
    source.open(id).then(
      (opened) => {
        if (mine === turn) into.value = opened;
      },
      (error: Error) => {
        if (mine === turn) failed.value = error.message;
      },
    );
  });
}
