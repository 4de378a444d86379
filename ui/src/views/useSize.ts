/** The width that an element was given, in CSS pixels. */
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

export function useWidth(element: RefObject<HTMLElement | null>, first = 800): number {
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    const it = element.current;
    if (!it) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(200, Math.floor(it.clientWidth))));
    setWidth(Math.max(200, Math.floor(it.clientWidth)));
    observer.observe(it);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

/** The height of the window, in CSS pixels. */
export function useHeight(): number {
  const [height, setHeight] = useState(innerHeight);
  useLayoutEffect(() => {
    const resized = () => setHeight(innerHeight);
    addEventListener("resize", resized);
    return () => removeEventListener("resize", resized);
  }, []);
  return height;
}
