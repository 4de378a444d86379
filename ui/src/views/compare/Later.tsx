/** The pictures of two recordings, fetched once a second recording is open: most people open one. */
import type { ComponentProps } from "preact";
import { Empty } from "../Figure";
import { useAnswer } from "../useAnswer";
import type { Compared } from "./Compared";

export function Later(props: ComponentProps<typeof Compared>) {
  const { value, error } = useAnswer(() => import("./Compared"), []);
  if (error) return <Empty title="The comparison cannot be shown">{error}</Empty>;
  if (value) return <value.Compared {...props} />;
  return (
    <p class="loading" role="status">
      Reading …
    </p>
  );
}
