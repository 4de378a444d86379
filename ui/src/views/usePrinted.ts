/** Canvases on paper. */
import { useEffect, useRef } from "preact/hooks";

/**
 * Draws at once before the page is printed, with what was rendered last: a browser that prints waits neither for a frame nor for an
 * effect, and would put the colours of the screen on paper. `theme` is light by then.
 */
export function usePrinted(draw: () => void): void {
  const last = useRef(draw);
  last.current = draw;
  useEffect(() => {
    const print = () => last.current();
    addEventListener("beforeprint", print);
    return () => removeEventListener("beforeprint", print);
  }, []);
}
