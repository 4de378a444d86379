/** The window of time that is shown, and what gestures make of it. All in nanoseconds, f64: exact for 104 days. */

export interface Window {
  t0: number;
  t1: number;
}

const SHORTEST_NS = 100;

/** Moves and shrinks a window until it lies in `whole`, integers at both ends. */
export function clamp(window: Window, whole: Window): Window {
  const most = Math.max(1, whole.t1 - whole.t0);
  const length = Math.min(most, Math.max(Math.min(SHORTEST_NS, most), Math.round(window.t1 - window.t0)));
  const t0 = Math.min(whole.t1 - length, Math.max(whole.t0, Math.round(window.t0)));
  return { t0, t1: t0 + length };
}

/** Scales by `factor` around `at`, which keeps its place on the screen. */
export function zoom(window: Window, at: number, factor: number, whole: Window): Window {
  const share = (at - window.t0) / (window.t1 - window.t0);
  const length = Math.max(Math.min(SHORTEST_NS, whole.t1 - whole.t0), (window.t1 - window.t0) * factor);
  return clamp({ t0: at - share * length, t1: at + (1 - share) * length }, whole);
}

/** Moves by a share of the window's length. */
export function pan(window: Window, share: number, whole: Window): Window {
  const by = (window.t1 - window.t0) * share;
  return clamp({ t0: window.t0 + by, t1: window.t1 + by }, whole);
}

/** With some room on either side. */
export function around({ t0, t1 }: Window, part = 0.1): Window {
  const rim = Math.max(1, (t1 - t0) * part);
  return { t0: t0 - rim, t1: t1 + rim };
}

/** The window that has an instant in its middle, where it does not have it anyway. */
export function showing(window: Window, ns: number, whole: Window): Window {
  if (ns >= window.t0 && ns < window.t1) return window;
  return pan(window, (ns - (window.t0 + window.t1) / 2) / (window.t1 - window.t0), whole);
}

/**
 * Round steps of an axis: 1, 2 or 5 times a power of ten, at most `most` of them, but never one alone: a single time says nothing of
 * how long anything is.
 */
export function ticks(window: Window, most: number): { step: number; at: number[] } {
  const least = (window.t1 - window.t0) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(least));
  const steps = [0.2, 0.5, 1, 2, 5, 10].map((factor) => Math.max(1, factor * power));
  const fitting = steps.findIndex((step, i) => i > 1 && step >= least);
  for (let i = fitting; ; i--) {
    const step = steps[i]!;
    const at = stepped(window, step);
    if (at.length > 1 || i === 0) return { step, at };
  }
}

function stepped({ t0, t1 }: Window, step: number): number[] {
  const at: number[] = [];
  for (let tick = Math.ceil(t0 / step) * step; tick <= t1; tick += step) at.push(tick);
  return at;
}
