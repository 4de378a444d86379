/** What must be said of a report before any of its times: that a machine was emulated. */
import type { Report } from "../data/types";
import { emulatorOf } from "./format";
import { rowsOf, tableOf, text } from "./rows";

/** Empty of real machines. Of a data set it is said how many of its hosts are none; by what, its table of hosts says of each. */
export function emulation(report: Report | undefined): string {
  if (!report) return "";
  const by = report.recording.emulated;
  if (by) return `Emulated (${emulatorOf(by)}): times are not real`;
  const hosts = rowsOf(tableOf(report, "fleet.hosts"));
  const emulated = hosts.filter((host) => text(host, "emulated")).length;
  return emulated > 0 ? `${emulated} of ${hosts.length} hosts emulated: times not real` : "";
}
