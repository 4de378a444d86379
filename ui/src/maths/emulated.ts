/** What must be said of a report before any of its times: that a machine was emulated. */
import type { Report } from "../data/types";
import { emulatorOf } from "./format";
import { rowsOf, tableOf, text } from "./rows";

/** Empty of real machines. Of a data set it is said how many of its hosts are none. */
export function emulation(report: Report | undefined): string {
  if (!report) return "";
  const by = report.recording.emulated;
  if (by) return `Emulated (${emulatorOf(by)}): times are not real`;
  const hosts = rowsOf(tableOf(report, "fleet.hosts"));
  const names = hosts.map((host) => text(host, "emulated")).filter(Boolean);
  if (names.length === 0) return "";
  const all = [...new Set(names.map(emulatorOf))].join(", ");
  return `Emulated (${all}): ${names.length} of ${hosts.length} hosts; their times are not real`;
}
