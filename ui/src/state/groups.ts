/** Groups of lanes that the address turns: those open that are folded by themselves, and the other way round. */
import { type Timeline, vcpuLanes } from "../data/types";
import { go, hash } from "./store";

export function turnedGroups(): Set<string> {
  return new Set((hash.value.groups ?? "").split("\t").filter(Boolean));
}

export function turnGroup(key: string): void {
  go({ groups: groupsWith(key) });
}

/** What the address says of groups once that of a lane is open. */
export function groupsShowing(timeline: Timeline, lane: number): string {
  const { group } = timeline.lanes.find(({ id }) => id === lane)!;
  const vcpus = vcpuLanes(timeline);
  // As the layout has it: without a vCPU all groups are open by themselves.
  const first = timeline.lanes.find((known) => known.group === group)!;
  const isOpen = vcpus.length === 0 || vcpus.includes(first.id);
  return isOpen === turnedGroups().has(group) ? groupsWith(group) : (hash.value.groups ?? "");
}

function groupsWith(turned: string): string {
  const all = turnedGroups();
  if (!all.delete(turned)) all.add(turned);
  return [...all].join("\t");
}
