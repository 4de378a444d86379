/** What a page says while a server reads a recording for it. */
import type { Progress } from "../data/types";
import { bytes, roundDuration } from "./format";

/** What is read sooner needs no more than its name, in ms. */
export const SOON_MS = 1000;

/** How far the reading of `id` is, of so many bytes, after so many ms. */
export function readingWords(id: string, size: number, ms: number, progress: Progress | null): string {
  if (ms < SOON_MS) return `Reading ${id} …`;
  const share = shareOf(progress);
  if (progress && share !== null) {
    const again = progress.pass > 1 ? `, pass ${progress.pass}` : "";
    // Answers and timeline may be read at once: the size is the file's, not the sum of both.
    const all = bytes(size > 0 ? size : progress.of_bytes);
    return `Reading ${id}: ${Math.floor(100 * share)} % of ${all}${again} …`;
  }
  const all = size > 0 ? `, ${bytes(size)}` : "";
  return `Reading ${id}${all}, for ${roundDuration(Math.floor(ms / 1000) * 1e9)} …`;
}

/** The part that is read; null where that is unknown, as before the first byte and between two passes. */
export function shareOf(progress: Progress | null): number | null {
  return progress && progress.of_bytes > 0 ? progress.read_bytes / progress.of_bytes : null;
}
