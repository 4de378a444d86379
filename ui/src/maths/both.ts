/** Two recordings as one: their time as one tree with a width for each side, and which findings are gone, new or still there. */
import type { Finding, Report } from "../data/types";
import { findingsOf } from "./findings";
import { type Node, timeTree } from "./tree";

/** A part of the time of both sides, as shares of all vCPUs' time of each. */
export interface Pair {
  name: string;
  state: string;
  before: number;
  after: number;
  children: Pair[];
}

/** Level, state, reason, detail: VMs and vCPUs have other names in another recording, so their times are added up. */
export function pairTree(reports: [Report, Report], title: (state: string) => string): Pair {
  const root: Pair = { name: "all vCPUs", state: "", before: 0, after: 0, children: [] };
  for (const [i, report] of reports.entries()) {
    const side = i === 0 ? "before" : "after";
    const tree = timeTree(report, title);
    if (tree.size === 0) continue;
    root[side] = 1;
    for (const level of tree.children) add(root, level, side, tree.size);
  }
  order(root);
  return root;
}

function add(parent: Pair, node: Node, side: "before" | "after", whole: number): void {
  let found = parent.children.find(({ name }) => name === node.name);
  if (!found) {
    found = { name: node.name, state: node.state, before: 0, after: 0, children: [] };
    parent.children.push(found);
  }
  found[side] += node.size / whole;
  for (const inner of node.children) add(found, inner, side, whole);
}

/** One order for both sides, or no part would be found below itself. */
function order(pair: Pair): void {
  const most = ({ before, after }: Pair) => Math.max(before, after);
  pair.children.sort((a, b) => most(b) - most(a));
  pair.children.forEach(order);
}

export interface PlacedPair {
  pair: Pair;
  path: string[];
  depth: number;
  from: number;
  to: number;
}

/**
 * One side's parts, in shares of the wider of both sides at `focus`: the same width is the same share of the time on both.
 * Neighbours of which each is narrower than `least` are drawn as one that cannot be opened.
 */
export function sideOf(root: Pair, side: "before" | "after", focus: string[], least: number): PlacedPair[] {
  let top = root;
  const path: string[] = [];
  for (const name of focus) {
    const next = top.children.find((pair) => pair.name === name);
    if (!next) break;
    top = next;
    path.push(name);
  }
  const whole = Math.max(top.before, top.after, Number.MIN_VALUE);
  const out: PlacedPair[] = [];
  const walk = (pair: Pair, path: string[], depth: number, from: number) => {
    out.push({ pair, path, depth, from, to: from + pair[side] / whole });
    let at = from;
    let thin: Pair[] = [];
    const together = () => {
      const rest = thin.reduce((sum, inner) => sum + inner[side], 0) / whole;
      // Less than half a pixel is not seen by anyone.
      if (rest > 0 && rest >= least / 2) {
        const one = thin.length === 1 ? { ...thin[0]!, children: [] } : sumOf(thin);
        out.push({ pair: one, path: [...path, one.name], depth: depth + 1, from: at, to: at + rest });
      }
      at += rest;
      thin = [];
    };
    for (const inner of pair.children) {
      if (inner[side] / whole < least) thin.push(inner);
      else {
        together();
        walk(inner, [...path, inner.name], depth + 1, at);
        at += inner[side] / whole;
      }
    }
    together();
  };
  if (top[side] > 0 || least < 0) walk(top, path, 0, 0);
  return out;
}

/** Parts as one, with the look of the first. */
function sumOf(parts: Pair[]): Pair {
  const sum = (side: "before" | "after") => parts.reduce((sum, part) => sum + part[side], 0);
  const name = `${parts.length} parts: ${parts.map(({ name }) => name).join(", ")}`;
  return { name, state: parts[0]!.state, before: sum("before"), after: sum("after"), children: [] };
}

/** Findings of two recordings. */
export interface FindingsOfBoth {
  gone: Finding[];
  fresh: Finding[];
  /** As they are after. */
  stay: Finding[];
}

/** The same finding: of one rule, about the same subject, but for the number of a process in its name. */
export function findingsOfBoth(before: Report, after: Report): FindingsOfBoth {
  const key = ({ rule, subject }: Finding) => `${rule}@${subject.replace(/\d+/g, "#")}`;
  const left = findingsOf(before);
  const [fresh, stay]: [Finding[], Finding[]] = [[], []];
  for (const finding of findingsOf(after)) {
    const exact = left.findIndex(({ id }) => id === finding.id);
    const at = exact >= 0 ? exact : left.findIndex((old) => key(old) === key(finding));
    if (at < 0) fresh.push(finding);
    else {
      stay.push(finding);
      left.splice(at, 1);
    }
  }
  return { gone: left, fresh, stay };
}
