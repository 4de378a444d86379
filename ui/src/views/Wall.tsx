/** The button that gives the gauges the whole screen. `Esc` leaves it. */
import { useEffect } from "preact/hooks";
import { go, hash } from "../state/store";

export function Wall() {
  const wall = hash.value.wall === "1";
  useEffect(() => {
    const left = () => {
      if (!document.fullscreenElement) go({ wall: null });
    };
    document.addEventListener("fullscreenchange", left);
    return () => document.removeEventListener("fullscreenchange", left);
  }, []);
  return (
    <button
      type="button"
      aria-pressed={wall}
      onClick={() => {
        go({ wall: wall ? null : "1" });
        if (!wall) void document.documentElement.requestFullscreen?.().catch(() => undefined);
        else if (document.fullscreenElement) void document.exitFullscreen();
      }}
    >
      Full screen
    </button>
  );
}
