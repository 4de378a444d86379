/**
 * Whether the server answers at all. A request that reached nobody asks once more; while that fails too, the server is
 * silent, and it is asked again and again until it answers. What failed meanwhile is then asked for anew: `returned`.
 */
import { signal } from "@preact/signals";

export const SILENCE = "The server does not answer. Is `kvmscope serve` still running?";

/** Longer than anybody notices, and short enough that nobody reloads the page. */
const AGAIN_MS = 2000;

/** True while nobody answers. */
export const silent = signal(false);
/** How often the server has come back. Who failed while it was silent follows this. */
export const returned = signal(0);

let next: ReturnType<typeof setTimeout> | undefined;
let asking: Promise<boolean> | null = null;

/** Whether the server answers now; any answer will do. */
async function ask(): Promise<boolean> {
  clearTimeout(next);
  const answers = await fetch("api/recordings", { cache: "no-store" }).then(
    () => true,
    () => false,
  );
  if (answers && silent.peek()) {
    silent.value = false;
    returned.value++;
  } else if (!answers) {
    silent.value = true;
    next = setTimeout(() => void answering(), AGAIN_MS);
  }
  return answers;
}

/** Asks the server whether it is there; many who want to know are one question. */
export function answering(): Promise<boolean> {
  asking ??= ask().finally(() => {
    asking = null;
  });
  return asking;
}
