/** Chooses a slice or an area of the timeline: `pick` and `area` of the address. */
import { listOf } from "../data/lanes";
import type { Area, Pick } from "../maths/picked";
import { go, hash, selected } from "./store";

/** What the pointer chose last: it lies in view, for that is where the pointer is. */
let pointed: string | null = null;

export function pick({ lane, ns }: Pick, byPointer = false): void {
  const pick = `${lane}.${Math.max(0, Math.floor(ns))}`;
  pointed = byPointer ? pick : null;
  go({ pick, area: null });
}

/** Whether the pointer chose what is chosen. */
export function isPointed(): boolean {
  return pointed !== null && pointed === (hash.value.pick ?? hash.value.area);
}

/** An area is always chosen by the pointer. */
export function chooseArea({ window, lanes }: Area): void {
  const { t0, t1 } = { t0: Math.max(0, Math.round(window.t0)), t1: Math.round(window.t1) };
  pointed = t1 > t0 ? `${t0}.${t1}.${listOf(lanes)}` : null;
  go({ pick: null, area: pointed });
}

export function chooseNothing(): void {
  selected.value = null;
  go({ pick: null, area: null });
}
