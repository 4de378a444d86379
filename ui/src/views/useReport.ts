/** The window that all views share, at rest, and the report of it. */
import { useEffect, useState } from "preact/hooks";
import type { Recording } from "../data/source";
import type { Report } from "../data/types";
import type { Window } from "../maths/window";
import { shown, zoomed } from "../state/store";
import { useAnswer } from "./useAnswer";

const REST_MS = 250;

/** The window once it has come to rest; null while the whole recording is shown. */
export function useWindow(): Window | null {
  const { t0, t1 } = shown.value;
  const [rest, setRest] = useState({ t0, t1 });
  useEffect(() => {
    const timer = setTimeout(() => setRest({ t0, t1 }), REST_MS);
    return () => clearTimeout(timer);
  }, [t0, t1]);
  return zoomed.value ? rest : null;
}

/** The report of the window, or of all where this source has no other; `note` says which, where that is not plain. */
export function useReport(recording: Recording): { report: Report; note: string; window: Window | null } {
  const window = useWindow();
  const { value, error, loading } = useAnswer(
    () => (window ? recording.reportOf(window.t0, window.t1) : Promise.resolve(null)),
    [recording, window?.t0, window?.t1],
  );
  if (!window) return { report: recording.report, note: "", window };
  if (value) return { report: value, note: loading ? "Reading this window …" : "", window };
  const why = error
    ? `There are no numbers for this window (${error}); those below are of the whole recording.`
    : loading
      ? "Reading this window …"
      : "The numbers below are of the whole recording; a report file has none for a window.";
  return { report: recording.report, note: why, window: null };
}
