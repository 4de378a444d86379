/** Above the lanes: turns arrows on and off, for which only a server has what they need. */
import { go, hash } from "../../state/store";

export function Arrows() {
  const on = hash.value.arrows === "1";
  return (
    <button
      type="button"
      aria-pressed={on}
      title="Zoomed in: from each exit of L2 to where L2 runs again and to L1's own record of it, from a preempted vCPU to the task that took its CPU, to a thread from the one that woke it"
      onClick={() => go({ arrows: on ? null : "1" })}
    >
      Arrows
    </button>
  );
}
