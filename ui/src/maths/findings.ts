/** The findings of all sections as one list. The program ranks them, so that every output has the same order. */
import type { Finding, Report } from "../data/types";
import { percent } from "./format";

/** A finding that no earlier one explains, and all that it explains, also by way of others. */
export interface Cause {
  finding: Finding;
  explained: Finding[];
}

/** All findings, the one to act on first at the front. */
export function findingsOf({ sections }: Report): Finding[] {
  return sections.flatMap(({ findings }) => findings).sort((a, b) => a.rank - b.rank);
}

/** The ends of what may come back: `6.0 % to 21.6 %`. */
export function between({ low, high }: NonNullable<Finding["gives_back"]>): string {
  return `${percent(low)} to ${percent(high)}`;
}

const MOST = 3;

/** The rule about a broken goal of the budget. */
const BROKEN = "LAT-GOAL";

/**
 * The few whose change gives most back: of vCPU time where a trace tells, else in the order of the list. After a breach of the budget, which
 * the page begins with, the list's order counts.
 */
export function bestOf(report: Report): Finding[] {
  const all = byCause(findingsOf(report))
    .map(({ finding }) => finding)
    .filter(({ severity }) => severity !== "info");
  const isBroken = all.some(({ rule }) => rule === BROKEN);
  const back = ({ gives_back }: Finding) => (isBroken ? 0 : (gives_back?.share ?? 0));
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

/** The end of a sentence: a point behind which a new one begins, and not that of `e.g.` or of `1.5`. */
const END = /(?<!\b(?:e\.g|i\.e|vs|no))[.!?]\s+(?=["'(]?[A-Z0-9])/;

/** The answer in one sentence, and all that a summary says beside it, by its paragraphs. */
export function answerOf(summary: string): { first: string; rest: string[] } {
  const [head = "", ...others] = summary.trim().split(/\n\n+/);
  const end = END.exec(head);
  if (!end) return { first: head, rest: others };
  const at = end.index + 1;
  return { first: head.slice(0, at), rest: [head.slice(at).trim(), ...others] };
}
