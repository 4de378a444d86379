/** Whose record is shown, where machines inside each other recorded the same time. */
import type { Report } from "../data/types";
import type { Row } from "../maths/rows";
import { witnesses } from "../maths/witness";
import { go, part } from "../state/store";

interface Props {
  report: Report;
  rows: Row<"machine">[];
}

/** The level in the address, where these rows have one of that name, else the outermost. */
export function seenBy({ report, rows }: Props): string | undefined {
  const all = witnesses(report, rows);
  return all.find((level) => level === part("by")) ?? all[0];
}

/** What an inner level cannot know. */
export function limitsOf({ report, rows }: Props): string {
  const [outermost] = witnesses(report, rows);
  const level = seenBy({ report, rows });
  return level === outermost ? "" : ` As ${level} saw it: the work of ${outermost} is inside.`;
}

export function SeenBy({ report, rows }: Props) {
  const all = witnesses(report, rows);
  if (all.length < 2) return null;
  const shown = seenBy({ report, rows });
  return (
    <fieldset class="seen-by">
      <legend>seen by</legend>
      {all.map((level, i) => (
        <button
          type="button"
          key={level}
          aria-pressed={level === shown}
          title={`The record of ${level}. Several levels recorded this time, and their records are not added up.`}
          onClick={() => go({ by: i === 0 ? null : level })}
        >
          {level}
        </button>
      ))}
    </fieldset>
  );
}
