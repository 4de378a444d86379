/** What a page of a server does besides: takes traces and pastes that are dropped onto it, and reads what its list shows of each. */
import { computed, effect } from "@preact/signals";
import { answering, returned } from "../data/silence";
import type { Source } from "../data/source";
import type { RecordingInfo } from "../data/types";
import { briefs, go, hash, listing, notice, recordings } from "./store";

export function serve(source: Source): void {
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    const file = event.dataTransfer?.files[0];
    if (file) void take(source, file);
  });
  followList(source);
}

/** Takes a dropped file to the server and opens it. */
export async function take(source: Source, file: File): Promise<void> {
  if (!source.upload) return;
  notice.value = `Sending ${file.name} …`;
  try {
    const id = await source.upload(file);
    listing.value = await source.recordings();
    go({ r: id }, true);
    notice.value = `${file.name} was uploaded.`;
  } catch (error) {
    notice.value = (error as Error).message;
  }
}

/** Reads the briefs of the list, one after another and only while the list is shown: each may take the server a second. */
function followList(source: Source): void {
  const shown = computed(() => !hash.value.r && !hash.value.live);
  let turn = 0;
  effect(() => {
    const mine = ++turn;
    // What was not read of a silent server is read once it is back.
    void returned.value;
    const list = shown.value ? (recordings.value ?? []) : [];
    void readBriefs(source, list, () => mine === turn);
  });
}

async function readBriefs(source: Source, list: RecordingInfo[], goesOn: () => boolean): Promise<void> {
  for (const { id, live, problem } of list) {
    if (!goesOn()) return;
    if (live || problem !== null || briefs.peek().get(id)) continue;
    // A recording that was removed since has none, and does not cost the others theirs.
    const brief = await source.brief!(id).catch(async () => ((await answering()) ? null : undefined));
    // Nobody answers: that is not said of each recording, and the list goes on once somebody does.
    if (brief === undefined) return;
    briefs.value = new Map(briefs.peek()).set(id, brief);
  }
}
