/** Which recording is which: every picture of two says so. */
import type { Recording } from "../../data/source";
import { duration } from "../../maths/format";

export interface Sides {
  before: Recording;
  after: Recording;
}

export function Names({ before, after }: Sides) {
  return (
    <p class="sides">
      {(
        [
          ["Before", before],
          ["After", after],
        ] as const
      ).map(([word, recording]) => (
        <span key={word}>
          <b>{word}</b> {recording.id}
          {recording.timeline && `, ${duration(lengthOf(recording))}`}
          {recording.report.recording.emulated && ", emulated: times are not real"}
        </span>
      ))}
    </p>
  );
}

/** From the first to the last event, in ns; 0 where nothing lasts. */
export function lengthOf({ timeline }: Recording): number {
  return timeline ? timeline.span.to_ns - timeline.span.from_ns : 0;
}
