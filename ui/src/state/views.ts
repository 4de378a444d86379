/** The views of a recording, in the order of their number keys: those that have something to show. */
import type { Recording } from "../data/source";
import { type Report, vcpuLanes } from "../data/types";
import { tableOf } from "../maths/rows";

export interface View {
  id: string;
  title: string;
}

/** Views that are known by name; others are a section each. */
const KNOWN = [
  { id: "findings", title: "Findings" },
  { id: "timeline", title: "Timeline" },
  { id: "exits", title: "Exits" },
  { id: "chains", title: "Chains" },
  { id: "costs", title: "Costs" },
  { id: "flame", title: "Flame" },
  { id: "multiplication", title: "Multiplication" },
  { id: "gauges", title: "Gauges" },
  { id: "sections", title: "All numbers" },
] as const;

/** Stands before them where a second recording is open; it has no number key, so that the others keep theirs. */
export const COMPARED: View = { id: "compared", title: "Compared" };

export type ViewId = (typeof KNOWN)[number]["id"];

/** Of the view that shows one section: its id behind this. */
const OF_SECTION = "of-";

/** What it takes for a view to have something to show. */
const HAS: Record<ViewId, (recording: Recording) => boolean> = {
  findings: () => true,
  timeline: (recording) => recording.timeline !== null,
  exits: ({ report }) => has(report, "flow.exits"),
  chains: ({ report }) => has(report, "flow.chains"),
  costs: ({ report }) => has(report, "flow.exits"),
  flame: (recording) => hasVcpus(recording) || has(recording.report, "flow.profile"),
  multiplication: ({ report }) => has(report, "flow.chains"),
  gauges: (recording) => hasVcpus(recording) || has(recording.report, "datapath.samples"),
  sections: () => true,
};

function hasVcpus({ timeline }: Recording): boolean {
  return vcpuLanes(timeline).length > 0;
}

function has(report: Report, table: Parameters<typeof tableOf>[1]): boolean {
  return (tableOf(report, table)?.rows.length ?? 0) > 0;
}

/** Views of a recording: the known ones, and one for each question beside that of the time. */
export function viewsOf(recording: Recording): View[] {
  const known = KNOWN.filter(({ id }) => HAS[id](recording));
  const own = recording.report.sections
    .filter(({ id, figures, tables }) => id !== "flow" && figures.length + Object.keys(tables).length > 0)
    .map(({ id }) => ({ id: OF_SECTION + id, title: id.charAt(0).toUpperCase() + id.slice(1) }));
  return [...known.slice(0, -1), ...own, known.at(-1)!];
}

/** The section that a view shows alone. */
export function sectionOf(view: string): string | null {
  return view.startsWith(OF_SECTION) ? view.slice(OF_SECTION.length) : null;
}

/** Whether a view of this name can be open: another name in an address is a slip, or of another recording. */
export function isView(recording: Recording, id: string, compared: boolean): boolean {
  if (id === COMPARED.id) return compared;
  return [...viewsOf(recording), ...KNOWN].some((view) => view.id === id);
}

/** What a view is called, also where the recording has none to show. */
export function titleOfView(recording: Recording, id: string): string {
  return [...viewsOf(recording), ...KNOWN].find((view) => view.id === id)?.title ?? "Findings";
}
