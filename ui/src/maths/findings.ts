/** The findings of all sections as one list. The program ranks them, so that every output has the same order. */
import type { Finding, Report } from "../data/types";

/** A finding that no earlier one explains, and all that it explains, also by way of others. */
export interface Cause {
  finding: Finding;
  explained: Finding[];
}

/** All findings, the one to act on first at the front. */
export function findingsOf({ sections }: Report): Finding[] {
  return sections.flatMap(({ findings }) => findings).sort((a, b) => a.rank - b.rank);
}

const MOST = 3;

/** The few whose change gives most back: of vCPU time where a trace tells, else in the order of the list. */
export function bestOf(report: Report): Finding[] {
  const all = byCause(findingsOf(report))
    .map(({ finding }) => finding)
    .filter(({ severity }) => severity !== "info");
  const back = ({ gives_back }: Finding) => gives_back?.share ?? 0;
  return all.sort((a, b) => back(b) - back(a) || a.rank - b.rank).slice(0, MOST);
}

/** The same with what a cause explains below it. */
export function byCause(findings: Finding[]): Cause[] {
  const causes: Cause[] = [];
  const below = new Map<string, Cause>();
  for (const finding of findings) {
    let cause = below.get(finding.id);
    if (cause) cause.explained.push(finding);
    else {
      cause = { finding, explained: [] };
      causes.push(cause);
    }
    for (const id of finding.explains) if (!below.has(id)) below.set(id, cause);
  }
  return causes;
}
