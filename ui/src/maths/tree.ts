/**
 * Where all time went, as a tree: VM, vCPU, level, state, reason, detail.
 *
 * States partition a vCPU's wall time exactly. Reasons are measured from exit to next entry, which also spans
 * interrupts and the VMM, so inside the state that handles them they share its width in proportion.
 */
import type { Report } from "../data/types";
import { lookOf } from "../draw/tokens";
import { keyOf } from "./bins";
import { number, type RowOf, rowsOf, tableOf, text } from "./rows";

export interface Node {
  name: string;
  /** State that decides the colour, or empty. */
  state: string;
  /** Its width: ns, or samples. */
  size: number;
  /** What is said of it beside its time. */
  note: string;
  children: Node[];
}

function child(parent: Node, name: string, state: string): Node {
  let found = parent.children.find((node) => node.name === name);
  if (!found) {
    found = { name, state, size: 0, note: "", children: [] };
    parent.children.push(found);
  }
  return found;
}

/** `title` gives a state's words. Guests' own traces have lanes inside the machine below and are left out. */
export function timeTree(report: Report, title: (state: string) => string): Node {
  const exits = rowsOf(tableOf(report, "flow.exits"));
  const details = rowsOf(tableOf(report, "flow.exit_details"));
  const root: Node = { name: "all", state: "", size: 0, note: "", children: [] };
  for (const row of rowsOf(tableOf(report, "flow.vcpus"))) {
    const vm = text(row, "vm");
    if (/^L\d+\//.test(vm)) continue;
    const path = [root, child(root, vm, "")];
    path.push(child(path[1]!, `vCPU ${text(row, "vcpu")}`, ""));
    for (const column of Object.keys(row) as (keyof typeof row)[]) {
      const ns = number(row, column);
      if (!column.endsWith("_ns") || column === "wall_ns" || ns === 0) continue;
      const state = column.slice(0, -3);
      const step = lookOf(state).step;
      const level = child(path[2]!, step, state);
      const leaf = child(level, title(state), state);
      leaf.size = ns;
      for (const node of [...path, level]) node.size += ns;
      const of = state.match(/^handling_(l\d|unknown_level)$/)?.[1];
      if (!of) continue;
      const name = of === "unknown_level" ? "L?" : of.toUpperCase();
      const mine = exits.filter(
        (exit) => text(exit, "vm") === vm && exit.vcpu === row.vcpu && text(exit, "level") === name,
      );
      const total = mine.reduce((sum, exit) => sum + number(exit, "total_ns"), 0);
      for (const exit of mine) {
        const reason = child(leaf, text(exit, "reason"), state);
        reason.size = (ns * number(exit, "total_ns")) / Math.max(1, total);
        reason.note = `${number(exit, "count")} exits, ${number(exit, "total_ns")} ns from exit to entry`;
        inside(reason, exit, details, state);
      }
    }
  }
  order(root);
  return root;
}

/** What an exit was about - which MSR, port, place in memory - shares its reason's width; the rest has no detail. */
function inside(
  reason: Node,
  exit: RowOf<"flow.exits">,
  details: RowOf<"flow.exit_details">[],
  state: string,
): void {
  const key = keyOf(exit);
  const mine = details.filter((it) => keyOf(it) === key);
  for (const it of mine) {
    const detail = child(reason, text(it, "detail"), state);
    detail.size = (reason.size * number(it, "total_ns")) / Math.max(1, number(exit, "total_ns"));
    detail.note = `${number(it, "count")} exits, ${number(it, "total_ns")} ns from exit to entry`;
  }
}

/** Samples of a profiler as a tree: VM, vCPU, level, state, whose code, function. A sample is 1 wide. */
export function sampleTree(report: Report, title: (state: string) => string): Node {
  const root: Node = { name: "all", state: "", size: 0, note: "", children: [] };
  for (const row of rowsOf(tableOf(report, "flow.profile"))) {
    const state = text(row, "state");
    const names = [
      text(row, "vm"),
      `vCPU ${text(row, "vcpu")}`,
      text(row, "level"),
      title(state),
      text(row, "mode"),
      text(row, "symbol"),
    ];
    let node = root;
    node.size += number(row, "samples");
    for (const [depth, name] of names.entries()) {
      node = child(node, name, depth < 2 ? "" : state);
      node.size += number(row, "samples");
    }
  }
  order(root);
  return root;
}

function order(node: Node): void {
  node.children.sort((a, b) => b.size - a.size);
  node.children.forEach(order);
}

export interface Placed {
  node: Node;
  path: string[];
  depth: number;
  from: number;
  to: number;
}

/** Nodes as rows of an icicle, `from` and `to` in shares of `focus`; what is narrower than `least` is left out. */
export function icicle(root: Node, focus: string[], least: number): Placed[] {
  let top = root;
  const path: string[] = [];
  for (const name of focus) {
    const next = top.children.find((node) => node.name === name);
    if (!next) break;
    top = next;
    path.push(name);
  }
  const out: Placed[] = [];
  const walk = (node: Node, path: string[], depth: number, from: number, to: number) => {
    if (to - from < least) return;
    out.push({ node, path, depth, from, to });
    let at = from;
    for (const inner of node.children) {
      const width = ((to - from) * inner.size) / Math.max(1, node.size);
      walk(inner, [...path, inner.name], depth + 1, at, at + width);
      at += width;
    }
  };
  walk(top, path, 0, 0, 1);
  return out;
}
