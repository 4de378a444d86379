/**
 * Where all time went, as a tree: level, state, reason, detail, of all vCPUs together or below each VM and vCPU.
 *
 * States partition a vCPU's wall time exactly. Reasons are measured from exit to next entry, which also spans
 * interrupts and the VMM, so inside the state that handles them they share its width in proportion.
 */
import type { Report } from "../data/types";
import { STATE_NAMES, whoseOf } from "../draw/tokens";
import { keyOf } from "./bins";
import { number, type RowOf, rowsOf, tableOf, text } from "./rows";
import { witnessed, witnesses } from "./witness";

export interface Node {
  name: string;
  /** State that decides the colour, or empty. */
  state: string;
  /** Its width: ns, or samples. */
  size: number;
  /** Of a reason or a detail: its exits, and their time from exit to entry. */
  exits: number;
  exits_ns: number;
  children: Node[];
}

interface Options {
  /** `state`: all vCPUs together, as both sides of a comparison are; `vcpu`: each VM and vCPU apart. */
  by?: "state" | "vcpu";
  /** Whose record of the time, where several levels have one. */
  seenBy?: string | undefined;
}

/** Children by name: a host has hundreds of vCPUs, and a list would be searched for each of them. */
const named = new WeakMap<Node, Map<string, Node>>();

function fresh(name: string, state: string): Node {
  return { name, state, size: 0, exits: 0, exits_ns: 0, children: [] };
}

function child(parent: Node, name: string, state: string): Node {
  const known = named.get(parent) ?? new Map<string, Node>();
  named.set(parent, known);
  let found = known.get(name);
  if (!found) {
    found = fresh(name, state);
    known.set(name, found);
    parent.children.push(found);
  }
  return found;
}

/** Rows by a key, so that each is looked at once. */
function grouped<Of>(rows: Of[], key: (row: Of) => string): Map<string, Of[]> {
  const out = new Map<string, Of[]>();
  for (const row of rows) {
    const its = key(row);
    const known = out.get(its);
    if (known) known.push(row);
    else out.set(its, [row]);
  }
  return out;
}

type Exit = RowOf<"flow.exits">;

/** `title` gives a state's words. */
export function timeTree(
  report: Report,
  title: (state: string) => string,
  { by = "state", seenBy }: Options = {},
): Node {
  const lane = (row: RowOf<"flow.exits" | "flow.vcpus", "machine" | "vm" | "vcpu">) =>
    `${text(row, "machine")}\t${text(row, "vm")}\t${text(row, "vcpu")}`;
  const exits = grouped(
    rowsOf(tableOf(report, "flow.exits")),
    (exit) => `${lane(exit)}\t${text(exit, "level")}`,
  );
  const details = grouped(rowsOf(tableOf(report, "flow.exit_details")), keyOf);
  const all = rowsOf(tableOf(report, "flow.vcpus"));
  const isOutermost = !seenBy || seenBy === "L0" || !witnesses(report, all).includes(seenBy);
  const root = fresh("all", "");
  for (const row of witnessed(report, all, seenBy)) {
    const path = [root];
    if (by === "vcpu") {
      path.push(child(root, text(row, "vm"), ""));
      path.push(child(path[1]!, `vCPU ${text(row, "vcpu")}`, ""));
    }
    for (const column of Object.keys(row) as (keyof typeof row)[]) {
      const ns = number(row, column);
      if (!column.endsWith("_ns") || column === "wall_ns" || ns === 0) continue;
      const name = column.slice(0, -3);
      // What a guest's own KVM does is that guest's work.
      const ofGuest = `${name}_by_l1`;
      const state = !isOutermost && STATE_NAMES.includes(ofGuest) ? ofGuest : name;
      const level = child(path.at(-1)!, whoseOf(state), state);
      const leaf = child(level, title(state), state);
      for (const node of [...path, level, leaf]) node.size += ns;
      const of = name.match(/^handling_(l\d|unknown_level)$/)?.[1];
      if (!of) continue;
      const from = of === "unknown_level" ? "L?" : of.toUpperCase();
      reasons(leaf, ns, exits.get(`${lane(row)}\t${from}`) ?? [], details);
    }
  }
  order(root);
  return root;
}

/** One vCPU's exits share the time of the state that handles them; what each was about shares its reason's, and the rest has no detail. */
function reasons(
  leaf: Node,
  ns: number,
  exits: Exit[],
  details: Map<string, RowOf<"flow.exit_details">[]>,
): void {
  const total = exits.reduce((sum, exit) => sum + number(exit, "total_ns"), 0);
  for (const exit of exits) {
    const width = (ns * number(exit, "total_ns")) / Math.max(1, total);
    const reason = add(child(leaf, text(exit, "reason"), leaf.state), width, exit);
    for (const it of details.get(keyOf(exit)) ?? []) {
      const part = (width * number(it, "total_ns")) / Math.max(1, number(exit, "total_ns"));
      add(child(reason, text(it, "detail"), leaf.state), part, it);
    }
  }
}

function add(node: Node, size: number, row: RowOf<"flow.exits", "count" | "total_ns">): Node {
  node.size += size;
  node.exits += number(row, "count");
  node.exits_ns += number(row, "total_ns");
  return node;
}

/** Samples of a profiler as a tree: level, state, whose code, function, with `vcpu` below VM and vCPU. A sample is 1 wide. */
export function sampleTree(
  report: Report,
  title: (state: string) => string,
  { by = "state", seenBy }: Options = {},
): Node {
  const root = fresh("all", "");
  for (const row of witnessed(report, rowsOf(tableOf(report, "flow.profile")), seenBy)) {
    const state = text(row, "state");
    const lane = by === "vcpu" ? [text(row, "vm"), `vCPU ${text(row, "vcpu")}`] : [];
    const names = [...lane, text(row, "level"), title(state), text(row, "mode"), text(row, "symbol")];
    let node = root;
    node.size += number(row, "samples");
    for (const [depth, name] of names.entries()) {
      node = child(node, name, depth < lane.length ? "" : state);
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

/** The state, reason or function with the largest width in all of a tree, added up over the vCPUs that it lies below. */
export function largest(top: Node): { name: string; size: number } {
  const sums = new Map<string, number>();
  const walk = (node: Node) => {
    // A state that has reasons is one part; a reason that is open is as well, and its details are.
    const ends = node.children.length === 0 || (node !== top && node.children[0]!.exits > 0);
    if (ends) sums.set(node.name, (sums.get(node.name) ?? 0) + node.size);
    else node.children.forEach(walk);
  };
  walk(top);
  const [name, size] = [...sums].reduce((a, b) => (b[1] > a[1] ? b : a));
  return { name, size };
}

export interface Placed {
  node: Node;
  path: string[];
  depth: number;
  from: number;
  to: number;
  /** The names of all parts that are drawn as this one, because each alone is narrower than a pixel. */
  names: string[];
}

/**
 * Nodes as rows of an icicle, `from` and `to` in shares of `focus`. Neighbours of which each is narrower than `least` are
 * drawn as one, and so is what is below them: a row is as full as the time is.
 */
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
  const walk = (node: Node, names: string[], path: string[], depth: number, from: number, to: number) => {
    out.push({ node, path, depth, from, to, names });
    let at = from;
    const widthOf = (inner: Node) => ((to - from) * inner.size) / Math.max(1, node.size);
    const wide = node.children.filter((inner) => widthOf(inner) >= least);
    for (const inner of wide) {
      const end = at + widthOf(inner);
      walk(inner, [inner.name], [...path, inner.name], depth + 1, at, end);
      at = end;
    }
    const thin = node.children.filter((inner) => widthOf(inner) < least);
    const rest = thin.reduce((sum, inner) => sum + widthOf(inner), 0);
    // Less than half a pixel is not seen by anyone.
    if (rest < least / 2 || rest === 0) return;
    const one = together(thin);
    walk(
      one,
      thin.map(({ name }) => name),
      [...path, one.name],
      depth + 1,
      at,
      at + rest,
    );
  };
  walk(top, [top.name], path, 0, 0, 1);
  return out;
}

/** Parts as one that has the look of the largest, and below it what is below all of them. */
function together(parts: Node[]): Node {
  if (parts.length === 1) return parts[0]!;
  const one = fresh(`${parts.length} parts`, parts[0]!.state);
  const merge = (into: Node, from: Node) => {
    into.size += from.size;
    into.exits += from.exits;
    into.exits_ns += from.exits_ns;
    for (const inner of from.children) merge(child(into, inner.name, inner.state), inner);
  };
  for (const part of parts) {
    one.size += part.size;
    for (const inner of part.children) merge(child(one, inner.name, inner.state), inner);
  }
  order(one);
  return one;
}
