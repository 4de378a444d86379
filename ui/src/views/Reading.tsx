/** What stands on the page while a server reads a recording: how far it is. */
import { useEffect, useState } from "preact/hooks";
import { server } from "../data/server";
import type { Progress } from "../data/types";
import { readingWords, SOON_MS, shareOf } from "../maths/reading";
import { recordings } from "../state/store";

const EVERY_MS = 400;

export function Reading({ id }: { id: string }) {
  const [{ ms, progress }, setNow] = useState<{ ms: number; progress: Progress | null }>({
    ms: 0,
    progress: null,
  });
  useEffect(() => {
    const since = performance.now();
    let timer: ReturnType<typeof setTimeout>;
    let isOver = false;
    const ask = async () => {
      // A server that does not say how far it is still reads.
      const progress = (await server.progress?.(id).catch(() => null)) ?? null;
      if (isOver) return;
      setNow({ ms: performance.now() - since, progress });
      timer = setTimeout(ask, EVERY_MS);
    };
    timer = setTimeout(ask, SOON_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [id]);
  const size = recordings.value?.find((known) => known.id === id)?.bytes ?? 0;
  const share = shareOf(progress);
  return (
    <div class="loading">
      {/* Said once: numbers that are read out twice a second are noise. */}
      <p class="hidden" role="status">
        Reading {id} …
      </p>
      <p aria-hidden="true">{readingWords(id, size, ms, progress)}</p>
      {share !== null && <progress aria-label={`Read of ${id}`} value={share} />}
    </div>
  );
}
