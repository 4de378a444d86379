/** Which controls are sliders, and what of them is set otherwise than in the report. */
import type { Control } from "../data/types";

/** Numbers have an order and fit on a slider, if there are some to choose from. */
export function isSlider(control: Control): boolean {
  return (
    control.values.length > 1 &&
    control.values.every((value) => value !== "" && Number.isFinite(Number(value)))
  );
}

/** What was chosen, without what the report has anyway and what no control can be. */
export function settings(controls: Control[], chosen: Record<string, string>): Record<string, string> {
  const changed = controls.flatMap((control) => {
    const value = chosen[control.id];
    const isNews = value !== undefined && value !== control.values[control.chosen];
    return isNews && control.values.includes(value) ? [[control.id, value] as const] : [];
  });
  return Object.fromEntries(changed);
}
