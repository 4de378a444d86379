/** What the pointer does on the timeline: drag pans, shift-drag brushes, the wheel zooms, a click picks. */
import { pan, type Window, zoom } from "../../maths/window";

export interface Wishes {
  window(): Window;
  whole(): Window;
  show(window: Window): void;
  brush(window: Window | null): void;
  hover(ns: number | null, y: number): void;
  pick(ns: number, y: number): void;
}

const CLICK_PIXELS = 4;

export function attach(canvas: HTMLCanvasElement, wishes: Wishes): () => void {
  let from: { x: number; window: Window; brushing: boolean; moved: boolean } | null = null;
  const timeAt = (x: number, window = wishes.window()) => {
    const box = canvas.getBoundingClientRect();
    return window.t0 + ((x - box.left) / box.width) * (window.t1 - window.t0);
  };
  // A page that is scaled up measures the pointer in larger steps than its elements.
  const heightAt = (y: number) => {
    const box = canvas.getBoundingClientRect();
    return ((y - box.top) / box.height) * canvas.clientHeight;
  };
  const wide = () => canvas.getBoundingClientRect().width;
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    from = { x: event.clientX, window: wishes.window(), brushing: event.shiftKey, moved: false };
  };
  const span = (event: PointerEvent): Window => {
    const ends = [timeAt(from!.x, from!.window), timeAt(event.clientX, from!.window)].sort((a, b) => a - b);
    return { t0: ends[0]!, t1: ends[1]! };
  };
  const move = (event: PointerEvent) => {
    wishes.hover(timeAt(event.clientX), heightAt(event.clientY));
    if (!from) return;
    if (Math.abs(event.clientX - from.x) >= CLICK_PIXELS) from.moved = true;
    if (!from.moved) return;
    if (from.brushing) wishes.brush(span(event));
    else wishes.show(pan(from.window, (from.x - event.clientX) / wide(), wishes.whole()));
  };
  const up = (event: PointerEvent) => {
    if (!from) return;
    if (!from.moved) wishes.pick(timeAt(event.clientX), heightAt(event.clientY));
    else if (from.brushing) {
      wishes.show(span(event));
      wishes.brush(null);
    }
    from = null;
  };
  const leave = () => wishes.hover(null, 0);
  const wheel = (event: WheelEvent) => {
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      wishes.show(pan(wishes.window(), (event.deltaX || event.deltaY) / wide(), wishes.whole()));
      return;
    }
    event.preventDefault();
    wishes.show(zoom(wishes.window(), timeAt(event.clientX), 1.0015 ** event.deltaY, wishes.whole()));
  };
  canvas.addEventListener("pointerdown", down);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("wheel", wheel, { passive: false });
  return () => {
    canvas.removeEventListener("pointerdown", down);
    canvas.removeEventListener("pointermove", move);
    canvas.removeEventListener("pointerup", up);
    canvas.removeEventListener("pointerleave", leave);
    canvas.removeEventListener("wheel", wheel);
  };
}
