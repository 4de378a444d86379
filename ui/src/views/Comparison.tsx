/** Above a view: which recording this one is compared with. */
import { go, other, otherFailure, part } from "../state/store";

/** What became of the second recording; what it is compared in, the views say. */
export function Comparison() {
  const id = part("b");
  if (!id) return null;
  const note = otherFailure.value
    ? `${id} could not be opened, so nothing is compared: ${otherFailure.value}`
    : other.value
      ? `${part("r")} is compared with ${id}.`
      : `Reading ${id} …`;
  return (
    <p class="note" role="status">
      {note}{" "}
      <button type="button" onClick={() => go({ b: null, chain2: null })}>
        Close the comparison
      </button>
    </p>
  );
}
