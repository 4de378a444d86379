/** A span that the hand chooses by dragging along a picture, in shares of its width; a click chooses none. */
import { useState } from "preact/hooks";

/** Who moves the hand less than this has clicked. */
const CLICK_PIXELS = 4;

export interface Span {
  from: number;
  to: number;
}

interface Chosen {
  span(chosen: Span): void;
  click(event: PointerEvent): void;
}

/** `handlers` go on the element; `drag` is the span while it is being chosen, its ends in order. */
export function useBrush({ span, click }: Chosen) {
  const [drag, setDrag] = useState<Span | null>(null);
  const handlers = {
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0) return;
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
      const at = shareAlong(event);
      setDrag({ from: at, to: at });
    },
    onPointerMove: (event: PointerEvent) => {
      if (drag) setDrag({ from: drag.from, to: shareAlong(event) });
    },
    onPointerUp: (event: PointerEvent) => {
      if (!drag) return;
      setDrag(null);
      const chosen = ordered({ from: drag.from, to: shareAlong(event) });
      const wide = (chosen.to - chosen.from) * (event.currentTarget as Element).clientWidth;
      if (wide >= CLICK_PIXELS) span(chosen);
      else click(event);
    },
    onPointerCancel: () => setDrag(null),
  };
  return { drag: drag && ordered(drag), handlers };
}

/** Where along an element's width the pointer is. */
export function shareAlong(event: PointerEvent): number {
  const box = (event.currentTarget as Element).getBoundingClientRect();
  return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
}

function ordered({ from, to }: Span): Span {
  return { from: Math.min(from, to), to: Math.max(from, to) };
}
