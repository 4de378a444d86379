/** Chooses a slice or an area of the timeline: `pick` and `area` of the address. */
import { listOf } from "../data/lanes";
import type { Area, Pick } from "../maths/picked";
import { go, selected } from "./store";

export function pick({ lane, ns }: Pick): void {
  go({ pick: `${lane}.${Math.max(0, Math.floor(ns))}`, area: null });
}

export function chooseArea({ window, lanes }: Area): void {
  const { t0, t1 } = { t0: Math.max(0, Math.round(window.t0)), t1: Math.round(window.t1) };
  go({ pick: null, area: t1 > t0 ? `${t0}.${t1}.${listOf(lanes)}` : null });
}

export function chooseNothing(): void {
  selected.value = null;
  go({ pick: null, area: null });
}
