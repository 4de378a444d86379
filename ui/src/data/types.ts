/** What the server and a report file answer. Times are integer nanoseconds since the recording's first event. */

import type { TableName } from "./tables";

export type Cell = string | number | boolean | null;

export interface Column<Name extends string = string> {
  name: Name;
  unit: string;
  type: string;
  key: boolean;
}

/** A table with columns of these names. */
export interface Table<Name extends string = string> {
  columns: Column<Name>[];
  rows: Cell[][];
}

export interface Cost {
  value: number | null;
  unit: string;
  kind: "measured" | "modelled" | "published" | "none";
  low: number | null;
  high: number | null;
}

/** What evidence is about, by the names that tables and the timeline have for it. */
export type About =
  | { kind: "rows"; table: TableName; keys: Record<string, Cell> }
  | { kind: "reason"; reason: string }
  | { kind: "state"; state: string }
  | { kind: "thread"; tid: number }
  | { kind: "span"; from_ns: number; to_ns: number };

export interface Evidence {
  what: string;
  where: string;
  about: About[];
}

export interface Finding {
  id: string;
  /** 1 is the one to act on first, of those of all sections. */
  rank: number;
  rule: string;
  subject: string;
  severity: "info" | "low" | "medium" | "high";
  level: string;
  title: string;
  evidence: Evidence[];
  cost: Cost;
  /** What of the vCPUs' time its change would give back at most; a page of an older kvmscope has none. */
  gives_back?: { state: string; share: number; low: number; high: number; unit: string } | null;
  /** Ids of findings that it is the cause of. */
  explains: string[];
  why?: string;
  /** What `kvmscope apply` would change, typed; which kind is all that this page needs. */
  changes: { type: string }[];
  fix: string[];
  undo: string[];
  needs: string;
  source: string;
}

export interface Bar {
  label: string;
  value: number;
  note: string;
  hue: string;
}

export interface BarGroup {
  title: string;
  unit: string;
  total: number;
  bars: Bar[];
  /** The stretch of the recording that they are about; without one, all of it. */
  span?: { from_ns: number; to_ns: number } | null;
}

export interface Point {
  label: string;
  value: number;
  low: number | null;
  high: number | null;
  mark: Mark;
  source: string;
}

/** Where a number comes from. */
export type Mark = "measured" | "emulated" | "published" | "modelled";

export interface PointGroup {
  title: string;
  unit: string;
  points: Point[];
}

/** A machine under one placement: nodes, their cores, the CPUs of each. */
export interface Panel {
  title: string;
  nodes: { title: string; cores: CpuBox[][] }[];
  links: string[];
  /** Of the same order: from the box of the threads to that of their memory. */
  arrows?: { from: number | null; to: number | null }[];
}

export interface CpuBox {
  cpu: number;
  chips: string[];
  /** The colour of each; a page of an older kvmscope has none. */
  hues?: string[];
  contended: boolean;
}

export interface Axis {
  title: string;
  unit: string;
  logarithmic: boolean;
}

/** Curves on one pair of axes, the most important one first. */
export interface CurvesData {
  x: Axis;
  y: Axis;
  curves: Curve[];
  limits: { label: string; on: "x" | "y"; value: number; until?: number | null }[];
}

export interface Curve {
  label: string;
  form: "line" | "steps" | "points";
  /** Of single points: where they come from. */
  mark: Mark | null;
  /** Of steps: what is missing up to this value is shaded. */
  below?: number | null;
  points: [number, number][];
}

/** Stretches along an axis, a row each. */
export interface SpanGroup {
  title: string;
  x: Axis;
  rows: SpanRow[];
  limits: { label: string; value: number }[];
}

export interface SpanRow {
  label: string;
  value: string;
  note: string;
  /** Null: it has no end. */
  stretches: { from: number; to: number | null; what: string; hue: string }[];
  signs: { at: number; what: string; shape: Shape }[];
}

export type Shape = "dot" | "bar" | "cross" | Mark;

/** What a kind of stretch or of single value means; those of a shape have no hue. */
export interface Key {
  what: string;
  hue: string | null;
  shape: Shape | null;
}

/** Pairs of numbers, before and after, a row each. */
export interface DumbbellGroup {
  title: string;
  x: Axis;
  rows: Dumbbell[];
}

export interface Dumbbell {
  label: string;
  before: number;
  after: number;
  /** Where the number after may lie as well. */
  low: number | null;
  high: number | null;
  change: string;
  verdict: string;
  sure: Sure;
  mark: Mark;
  hue: string;
}

/** How sure a difference is. */
export type Sure = "changed" | "two runs" | "noise" | "void" | "unknown";

/** How often something had which length; each bin begins where the one before it ends. */
export interface HistogramData {
  x: Axis;
  counted: string;
  kinds: { label: string; hue: string }[];
  bins: { from: number; to: number; counts: number[] }[];
  limits: { label: string; value: number }[];
}

/** Rows of cells along an axis; null where nothing is known. */
export interface HeatData {
  x: Axis;
  from: number;
  to: number;
  what: string;
  unit: string;
  most: number;
  rows: { label: string; cells: (number | null)[] }[];
}

/** The way of packets across a boundary, from its first station to its last one. */
export interface FlowData {
  title: string;
  boundary: string;
  above: string;
  below: string;
  /** What the thickest line stands for. */
  most_bits_per_s: number;
  hops: Hop[];
}

export interface Hop {
  path: string;
  from: Stop;
  to: Stop;
  /** What forwards it above and below the boundary. */
  above: string | null;
  below: string | null;
  pps: number;
  bits_per_s: number;
  fullest: { resource: string; share: number } | null;
  fullness: "free" | "near" | "full";
  /** Of the boundary, by each of them. */
  crossings: number;
  /** So many hops in a row that are alike. */
  count: number;
}

export interface Stop {
  label: string;
  side: "above" | "below";
  share: number | null;
}

/** Machines inside each other, and their time. */
export interface LevelsData {
  columns: { title: string; about: string; storeys: Storey[] }[];
  ground: { level: string; kvm_share: number; vmm_share: number; to_vmm_per_s: number | null };
  time: TimePart[];
  most_per_s: number;
}

/** One level of a VM. */
export interface Storey {
  level: string;
  hue: string;
  share: number;
  exits_per_s: number | null;
  reflected_per_s: number | null;
  for_each: number | null;
}

export interface TimePart {
  label: string;
  hue: string;
  share: number;
}

export type Standing = "on" | "off" | "absent" | "unknown";

/** What each machine says of each of many things. */
export interface MatrixData {
  columns: string[];
  rows: { label: string; about: string; cells: (Standing | null)[]; findings: string[] }[];
}

/** A whole that is used up step by step. */
export interface Whole {
  title: string;
  steps: Step[];
}

export interface Step {
  label: string;
  hue: string;
  share: number;
  given_back: number;
  note: string;
  removed: { finding: string; rule: string; share: number }[];
}

/** Rates of one subject. */
export interface GaugeGroup {
  title: string;
  gauges: Gauge[];
}

export interface Gauge {
  label: string;
  /** The rate, and the part of it that each of several has. */
  all: Reading;
  each: Reading | null;
  ceiling: { pps: number; resource: string };
  published_pps: number[];
  /** The end of the bar. */
  end_pps: number;
}

export interface Reading {
  of: string;
  pps: number;
  bits_per_s: number;
}

/** A Section's picture as data; `drawing` says which it is. */
export type FigureData = { id: string; title: string; caption: string } & (
  | { drawing: "bars"; groups: BarGroup[] }
  | { drawing: "points"; scales: PointGroup[] }
  | ({ drawing: "histogram" } & HistogramData)
  | ({ drawing: "curves" } & CurvesData)
  | ({ drawing: "heat" } & HeatData)
  | { drawing: "topology"; panels: Panel[] }
  | { drawing: "flows"; flows: FlowData[] }
  | { drawing: "gauges"; dials: GaugeGroup[] }
  | { drawing: "spans"; spans: SpanGroup[]; keys: Key[] }
  | ({ drawing: "levels" } & LevelsData)
  | { drawing: "waterfall"; wholes: Whole[] }
  | ({ drawing: "matrix" } & MatrixData)
  | { drawing: "dumbbells"; dumbbells: DumbbellGroup[]; looks: { what: string; mark: Mark; sure: Sure }[] }
);

/** A slider where all values are numbers, else a choice. */
export interface Control {
  id: string;
  title: string;
  values: string[];
  /** The index of the value that the answer is for. */
  chosen: number;
}

export interface Section {
  id: string;
  question: string;
  about?: string[];
  summary: string;
  findings: Finding[];
  tables: Record<string, Table>;
  figures: FigureData[];
  /** What can be set, for an answer that is computed anew. */
  controls?: Control[];
  unknown: { what: string; amount: number; unit: string; text: string }[];
  next?: unknown;
}

export interface Report {
  schema: string;
  recording: {
    path: string;
    tool?: string | null;
    emulated: string | null;
    machines?: { id: string; level: number; name: string | null }[];
  };
  sections: Section[];
  problems: { text: string; count: number }[];
}

export interface RecordingInfo {
  id: string;
  title: string;
  created: string | null;
  emulated: string | null;
  levels: string[];
  bytes: number;
  /** How many recordings it holds, where it is a data set of them. */
  recordings?: number | null;
  /** It is being made right now. */
  live?: boolean;
  /** Why it cannot be opened. */
  problem: string | null;
}

/** What a folder holds. */
export interface Listing {
  recordings: RecordingInfo[];
  /** What is no recording, and why. */
  left_out: { path: string; why: string }[];
}

/** How far the reading of a recording is. */
export interface Progress {
  read_bytes: number;
  /** 0 where nothing is being read. */
  of_bytes: number;
  /** Which reading of a trace it is, from 1 on. */
  pass: number;
}

/** What the list shows of a recording beside its manifest. */
export interface Brief {
  /** Null where it has no vCPU. */
  duration_ns: number | null;
  findings: number;
  /** Its answer in a sentence. */
  answer: string;
  /** Where all vCPU time went; empty where it has no vCPU. */
  time: TimePart[];
  worst: { severity: Finding["severity"]; rule: string; title: string } | null;
  /** Which hosts of a data set were emulated, `8 of 10 hosts`. */
  emulated?: string | null;
  /** Why no question has an answer. */
  problem: string | null;
}

export interface State {
  name: string;
  title: string;
}

export type LaneKind = "vcpu" | "cpu" | "vhost" | "emulator" | "iothread" | "guest_vcpu" | "guest_cpu";

export interface Lane {
  id: number;
  /** What has this lane; lanes without a kind are vCPUs. */
  kind?: LaneKind;
  group: string;
  title: string;
  tid: number | null;
  slices: number;
  chains: number;
}

export interface Timeline {
  span: { from_ns: number; to_ns: number };
  states: State[];
  lanes: Lane[];
  markers: { lane: number | null; at_ns: number; label: string }[];
  /** What could not be drawn, and how far lanes may be off. */
  notes?: string[];
}

/** Lanes of the recorded machine's vCPUs: only lanes of one kind add up. */
export function vcpuLanes(timeline: Timeline | null): number[] {
  const lanes = timeline?.lanes.filter((lane) => (lane.kind ?? "vcpu") === "vcpu") ?? [];
  return lanes.map((lane) => lane.id);
}

/** The lanes that stand for the whole: those of vCPUs, without any those of the recorded machine's CPUs, else all there are. */
export function mainLanes(timeline: Timeline | null): number[] {
  const vcpus = vcpuLanes(timeline);
  if (vcpus.length > 0) return vcpus;
  const all = timeline?.lanes ?? [];
  const cpus = all.filter((lane) => lane.kind === "cpu");
  return (cpus.length > 0 ? cpus : all).map((lane) => lane.id);
}

export interface Slice {
  index: number;
  from_ns: number;
  to_ns: number;
  state: number;
  detail: string;
}

export interface Slices {
  slices: Slice[];
  left_out: number;
  /** The wake-ups of the lane's thread there; only a server has them. */
  wakes?: Wake[];
}

/** A thread was made ready, and later got a CPU. */
export interface Wake {
  woken_ns: number;
  ran_ns: number;
  /** Where it ran. */
  cpu: number | null;
  /** Null where the recording does not tell. */
  by: { kind: "task" | "interrupt"; name: string; lane: number | null } | null;
}

/** Slices of some state of which the same is known, added up. */
export interface ReasonSum {
  state: number;
  detail: string;
  slices: number;
  time_ns: number;
}

export interface Reasons {
  reasons: ReasonSum[];
  left_out: number;
}

export interface SliceOfLane extends Slice {
  lane: number;
}

/** What a search has found, and the nearest of it. */
export interface Found {
  count: number;
  /** Of those, how many begin before the place that was searched from. */
  earlier: number;
  /** And how many later. */
  later: number;
  before: SliceOfLane | null;
  after: SliceOfLane | null;
}

export interface SearchQuery {
  q: string;
  lanes: number[];
  /** From which instant on; with a lane, what begins there and then is neither before nor after. */
  at: number;
  lane?: number;
}

export interface Chain {
  id: number;
  lane: number;
  reason: string;
  from_ns: number;
  to_ns: number;
  exits: number;
  cost_ns: number | null;
  /** The first of its exits; `exits` may be more. */
  sequence: string[];
  /** L1 halted inside: it did other things before it went on with L2. */
  interrupted: boolean;
  /** Another L2 guest ran next, or the same one on another vCPU first. */
  migrated: boolean;
  /** The most frequent reason of its exits, all of them counted. */
  most: [string, number] | null;
}

/** Sums over all chains that begin in a window: what pictures of all chains are drawn from. */
export interface Aggregates {
  t0_ns: number;
  t1_ns: number;
  chains: number;
  /** Without an end, so without a cost. */
  censored: number;
  /** Closed, but interrupted or migrated. */
  disturbed: number;
  heat: {
    columns: number;
    rows: number;
    from_ns: number;
    to_ns: number;
    /** Cells with chains, row by row from below: place and how many. */
    cells: [number, number][];
  };
  /** Quantile and cost. */
  shares: [number, number][];
  slots: {
    back: number;
    chains: number[];
    /** Closed and not disturbed: exits and costs are theirs. */
    undisturbed: number[];
    exits: number[];
    p50_ns: (number | null)[];
    p99_ns: (number | null)[];
  };
  worst: { from_ns: number; to_ns: number } | null;
}

export interface Picks {
  median: number | null;
  p99: number | null;
  worst: number | null;
  next: number | null;
  previous: number | null;
}

export interface ChainInFull extends Chain {
  slices: Slice[];
  /** How many slices at its end are missing here. */
  left_out?: number;
  picks: Picks;
}

export interface ChainQuery {
  lane?: number;
  reason?: string;
  t0?: number;
  t1?: number;
  sort?: "time" | "cost" | "exits";
  descending?: boolean;
  offset?: number;
  limit?: number;
}

export interface ChainPage {
  chains: Chain[];
  total: number;
}

export interface EventPage {
  events: { time_ns: number; cpu: number; tid: number; name: string; fields: string }[];
  /** Null until the server has counted them. */
  total: number | null;
}
