/** Which reasons, details and states the words of a finding name: how evidence leads back to rows and instants. */
import type { Finding, Report, State } from "../data/types";
import { rowsOf, tableOf, text } from "./rows";

/** How sentences speak of states. */
const STATES: [RegExp, string][] = [
  [/pre-?empt|runnable|for a CPU|took the CPU/i, "preempted"],
  [/userspace|VMM/i, "userspace"],
  [/halt[- ]poll/i, "halt_poll"],
  [/wake-up/i, "wake_delay"],
  [/softirq/i, "softirq"],
];

/** Reasons of exits that `words` name, themselves or by a detail such as an MSR; in the order of their mention. */
export function reasonsIn(words: string, report: Report): string[] {
  const reasons = new Set(rowsOf(tableOf(report, "flow.exits")).map((row) => text(row, "reason")));
  const details = new Map(
    rowsOf(tableOf(report, "flow.exit_details")).map((row) => [text(row, "detail"), text(row, "reason")]),
  );
  const found = new Set<string>();
  for (const [word] of words.matchAll(/[A-Z][A-Z0-9_]+/g)) {
    const reason = reasons.has(word) ? word : details.get(word);
    if (reason) found.add(reason);
  }
  return [...found];
}

/** Names of states that `words` speak of. */
export function statesIn(words: string, states: State[]): string[] {
  const meant = STATES.filter(([phrase]) => phrase.test(words)).map(([, name]) => name);
  return meant.filter((name) => states.some((state) => state.name === name));
}

/** All that a finding says of what was seen. */
export function wordsOf(finding: Finding): string {
  return [finding.rule, finding.title, ...finding.evidence.map((evidence) => evidence.what)].join(" ");
}

/** The finding that would remove exits of `reason` of a VM. */
export function findingFor(report: Report, vm: string, reason: string): Finding | undefined {
  return report.sections
    .flatMap((section) => section.findings)
    .find(
      (finding) => finding.subject.startsWith(vm) && reasonsIn(wordsOf(finding), report).includes(reason),
    );
}
