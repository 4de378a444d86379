/** The views in the order of their number keys. */
export const VIEWS = [
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
export const COMPARED = { id: "compared", title: "Compared" } as const;

export type ViewId = (typeof VIEWS)[number]["id"];
