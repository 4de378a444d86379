/** What findings are about: evidence leads to rows, exits, states and threads by their names, never by its sentences. */
import type { TableName } from "../data/tables";
import type { About, Cell, Finding, Report } from "../data/types";
import { findingsOf } from "./findings";

type Rows = Extract<About, { kind: "rows" }>;

/** All that the evidence of a finding is about. */
export function aboutOf(finding: Finding): About[] {
  return finding.evidence.flatMap((evidence) => evidence.about);
}

/** Reasons of exits, each once, in the order of their mention. */
export function reasonsOf(about: About[]): string[] {
  return [...new Set(about.flatMap((one) => (one.kind === "reason" ? [one.reason] : [])))];
}

/** Names of states, each once. */
export function statesOf(about: About[]): string[] {
  return [...new Set(about.flatMap((one) => (one.kind === "state" ? [one.state] : [])))];
}

/** Threads, each once. */
export function threadsOf(about: About[]): number[] {
  return [...new Set(about.flatMap((one) => (one.kind === "thread" ? [one.tid] : [])))];
}

/** Whether a timeline can show some of it: a thread alone is a whole lane. */
export function hasInstant(about: About[]): boolean {
  return about.some(({ kind }) => kind === "reason" || kind === "state" || kind === "span");
}

/** The first table that evidence is about. */
export function rowsAbout(about: About[]): Rows | undefined {
  return about.find((one): one is Rows => one.kind === "rows");
}

/** Views that show a table better than the list of all tables does. */
const VIEWS: Partial<Record<TableName, string>> = {
  "flow.exits": "exits",
  "flow.exit_rates": "exits",
  "flow.chains": "chains",
  "flow.chain_exits": "chains",
  "flow.chain_sequences": "chains",
};

/** The address of rows, as a patch of the page's. */
export function addressOf({ table, keys }: Rows): Record<string, string> {
  const view = VIEWS[table];
  const q = filterOf(keys);
  if (view === "chains") return { view };
  if (!view) return { view: "sections", table, q };
  // A guest's own record stands behind its level; of all others the outermost one is shown.
  return { view, q, by: /^(L\d+)\//.exec(String(keys.vm ?? ""))?.[1] ?? "" };
}

/** A filter of rows: `level:L1 reason:VMREAD`. A cell with blanks in it is looked for by its words. */
export function filterOf(keys: Record<string, Cell>): string {
  return Object.entries(keys)
    .map(([name, cell]) => (/\s/.test(String(cell)) ? String(cell) : `${name}:${cell}`))
    .join(" ");
}

/** The first finding about exits of `reason` of a VM: about the VM as a whole, or with rows of it. */
export function findingFor(report: Report, vm: string, reason: string): Finding | undefined {
  const isOfVm = ({ subject, evidence }: Finding) =>
    subject === vm || evidence.some(({ about }) => rowsAbout(about)?.keys.vm === vm);
  return findingsOf(report).find(
    (finding) => reasonsOf(aboutOf(finding)).includes(reason) && isOfVm(finding),
  );
}
