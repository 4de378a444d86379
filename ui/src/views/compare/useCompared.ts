/** What `kvmscope compare` answers of both recordings: asked for once, whichever views show it. */
import type { Recording } from "../../data/source";
import type { Report, Section } from "../../data/types";
import { type Answer, useAnswer } from "../useAnswer";

const asked = new WeakMap<Recording, Map<Recording, Promise<Report>>>();

function ask(before: Recording, after: Recording): Promise<Report> {
  const known = asked.get(before) ?? new Map<Recording, Promise<Report>>();
  asked.set(before, known);
  const report = known.get(after) ?? before.compared!(after.id);
  known.set(after, report);
  // What failed is asked for again: a file may be there by then.
  report.catch(() => known.delete(after));
  return report;
}

export function useCompared(before: Recording, after: Recording): Answer<Report> {
  return useAnswer(() => ask(before, after), [before, after]);
}

/** The section of a comparison. */
export function sectionOf(compared: Report | null): Section | null {
  return compared?.sections.find(({ id }) => id === "compare") ?? null;
}
