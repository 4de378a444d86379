/**
 * What the hand does on the timeline.
 *
 * ```text
 * drag pans, shift-drag chooses an area, ctrl-wheel and two fingers zoom, shift-wheel and a sideways wheel pan
 * the wheel alone scrolls the lanes: that is the browser's own work
 * a click picks, two clicks zoom to what lies there
 * ```
 */
import { pan, type Window, zoom } from "../../maths/window";

/** A place on the lanes: time, and CSS pixels below the canvas's upper edge. */
export interface Place {
  ns: number;
  y: number;
}

export interface Wishes {
  window(): Window;
  whole(): Window;
  show(window: Window): void;
  /** While an area is chosen; `null` if that was given up. */
  brush(ends: [Place, Place] | null): void;
  chosen(ends: [Place, Place]): void;
  hover(place: Place | null): void;
  pick(place: Place): void;
  focus(place: Place): void;
  /** The hand has let go. */
  end(): void;
}

const CLICK_PIXELS = 4;
const WHEEL = 1.0015;
/** A wheel that counts lines, as Firefox's may. */
const LINE_PIXELS = 16;

interface Drag {
  x: number;
  start: Place;
  window: Window;
  brushing: boolean;
  moved: boolean;
}

export function attach(canvas: HTMLCanvasElement, wishes: Wishes): () => void {
  const stop = new AbortController();
  const fingers = new Map<number, { x: number; y: number }>();
  let drag: Drag | null = null;
  let pinch: { apart: number; at: number; window: Window } | null = null;

  const wide = () => canvas.getBoundingClientRect().width;
  const placeAt = (point: { x: number; y: number }, window = wishes.window()): Place => {
    const box = canvas.getBoundingClientRect();
    return {
      ns: window.t0 + ((point.x - box.left) / box.width) * (window.t1 - window.t0),
      // A page that is scaled up measures the pointer in larger steps than its elements.
      y: ((point.y - box.top) / box.height) * canvas.clientHeight,
    };
  };
  const spread = () => {
    const [a, b] = [...fingers.values()];
    return { apart: Math.max(8, Math.hypot(a!.x - b!.x, a!.y - b!.y)), x: (a!.x + b!.x) / 2, y: a!.y };
  };

  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event);
    if (fingers.size === 2) {
      const { apart, x, y } = spread();
      pinch = { apart, at: placeAt({ x, y }).ns, window: wishes.window() };
      drag = null;
      wishes.brush(null);
      return;
    }
    const window = wishes.window();
    drag = { x: event.clientX, start: placeAt(event), window, brushing: event.shiftKey, moved: false };
  };
  const move = (event: PointerEvent) => {
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, event);
    wishes.hover(placeAt(event));
    if (pinch && fingers.size >= 2) {
      const { apart, x } = spread();
      const box = canvas.getBoundingClientRect();
      const length = ((pinch.window.t1 - pinch.window.t0) * pinch.apart) / apart;
      // What was between the fingers stays between them, so that two fingers pan as well.
      const t0 = pinch.at - ((x - box.left) / box.width) * length;
      const next = { t0, t1: t0 + length };
      wishes.show(zoom(next, pinch.at, 1, wishes.whole()));
      return;
    }
    if (!drag) return;
    const far = Math.hypot(event.clientX - drag.x, drag.brushing ? placeAt(event).y - drag.start.y : 0);
    if (far >= CLICK_PIXELS) drag.moved = true;
    if (!drag.moved) return;
    if (drag.brushing) wishes.brush([drag.start, placeAt(event, drag.window)]);
    else wishes.show(pan(drag.window, (drag.x - event.clientX) / wide(), wishes.whole()));
  };
  const up = (event: PointerEvent) => {
    fingers.delete(event.pointerId);
    if (pinch) {
      if (fingers.size === 0) pinch = null;
      wishes.end();
      return;
    }
    if (!drag) return;
    const { brushing, moved, start, window } = drag;
    drag = null;
    if (!moved) wishes.pick(placeAt(event));
    else if (brushing) {
      wishes.chosen([start, placeAt(event, window)]);
      wishes.brush(null);
    } else wishes.end();
  };
  const cancel = (event: PointerEvent) => {
    fingers.delete(event.pointerId);
    if (fingers.size === 0) pinch = null;
    drag = null;
    wishes.brush(null);
    wishes.end();
  };
  const wheel = (event: WheelEvent) => {
    const scale = event.deltaMode === 1 ? LINE_PIXELS : 1;
    const [x, y] = [event.deltaX * scale, event.deltaY * scale];
    // A pinch on a touchpad comes as a wheel with ctrl.
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      wishes.show(zoom(wishes.window(), placeAt(event).ns, WHEEL ** y, wishes.whole()));
    } else if (event.shiftKey || Math.abs(x) > Math.abs(y)) {
      event.preventDefault();
      wishes.show(pan(wishes.window(), (x || y) / wide(), wishes.whole()));
    }
  };
  // Two fingers are ours, one that moves up or down scrolls.
  const touched = (event: TouchEvent) => {
    if (event.touches.length >= 2) event.preventDefault();
  };
  const { signal } = stop;
  const loud = { signal, passive: false };
  canvas.addEventListener("pointerdown", down, { signal });
  canvas.addEventListener("pointermove", move, { signal });
  canvas.addEventListener("pointerup", up, { signal });
  canvas.addEventListener("pointercancel", cancel, { signal });
  canvas.addEventListener("pointerleave", () => wishes.hover(null), { signal });
  canvas.addEventListener("dblclick", (event) => wishes.focus(placeAt(event)), { signal });
  canvas.addEventListener("wheel", wheel, loud);
  canvas.addEventListener("touchstart", touched, loud);
  canvas.addEventListener("touchmove", touched, loud);
  return () => stop.abort();
}
