/** Text of a trace is no markup. */
export function escaped(text: string): string {
  return text.replace(
    /[&<>"]/g,
    (it) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[it] ?? it,
  );
}
