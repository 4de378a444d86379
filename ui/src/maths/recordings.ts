/** In which order the list shows recordings, and which of them a filter keeps. */
import type { Brief, RecordingInfo } from "../data/types";

type Briefs = ReadonlyMap<string, Brief | null>;

interface Order {
  id: string;
  title: string;
  compare(a: RecordingInfo, b: RecordingInfo, briefs: Briefs): number;
}

const SEVERITIES = ["info", "low", "medium", "high"];

function severity({ id }: RecordingInfo, briefs: Briefs): number {
  return SEVERITIES.indexOf(briefs.get(id)?.worst?.severity ?? "");
}

function length({ id }: RecordingInfo, briefs: Briefs): number {
  return briefs.get(id)?.duration_ns ?? -1;
}

/** The first is how the server lists them. */
export const ORDERS: Order[] = [
  { id: "name", title: "by name", compare: () => 0 },
  { id: "worst", title: "worst first", compare: (a, b, briefs) => severity(b, briefs) - severity(a, briefs) },
  {
    id: "newest",
    title: "newest first",
    compare: (a, b) => (b.created ?? "").localeCompare(a.created ?? ""),
  },
  { id: "longest", title: "longest first", compare: (a, b, briefs) => length(b, briefs) - length(a, briefs) },
];

/** Those in which every word of the filter occurs: in the name, the levels, the answer or the worst finding. */
export function arranged(
  all: RecordingInfo[],
  briefs: Briefs,
  order: Order,
  filter: string,
): RecordingInfo[] {
  const wanted = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (info: RecordingInfo) => {
    const brief = briefs.get(info.id);
    const { rule = "", title = "", severity = "" } = brief?.worst ?? {};
    return [
      info.title,
      info.emulated ?? brief?.emulated ?? "",
      ...info.levels,
      brief?.answer ?? "",
      rule,
      title,
      severity,
    ]
      .join(" ")
      .toLowerCase();
  };
  const kept = all.filter((info) => {
    const own = text(info);
    return wanted.every((word) => own.includes(word));
  });
  return kept.sort((a, b) => order.compare(a, b, briefs));
}
