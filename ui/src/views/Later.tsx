/** Views that are fetched once somebody opens them: most people open few. */
import type { FunctionComponent } from "preact";
import { Empty } from "./Figure";
import { useAnswer } from "./useAnswer";

/** A component that fetches another one the first time that it is shown. */
export function later<P extends object>(load: () => Promise<FunctionComponent<P>>): FunctionComponent<P> {
  let fetched: Promise<FunctionComponent<P>> | null = null;
  return function Later(props: P) {
    fetched ??= load();
    const { value: View, error } = useAnswer(async () => [await fetched!] as const, []);
    if (error) return <Empty title="This view cannot be shown">{error}</Empty>;
    if (View) {
      const [Shown] = View;
      return <Shown {...props} />;
    }
    return (
      <p class="loading" role="status">
        Reading …
      </p>
    );
  };
}
