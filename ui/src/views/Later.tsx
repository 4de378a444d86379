/** Views that are fetched once the page is at rest, or as soon as somebody opens them: the page is there before them. */
import type { FunctionComponent } from "preact";
import { answering, returned, silent } from "../data/silence";
import { Empty } from "./Figure";
import { useAnswer } from "./useAnswer";

/** Safari has no idle callback. */
const REST_MS = 1500;

function atRest(run: () => void): void {
  if ("requestIdleCallback" in globalThis) requestIdleCallback(run);
  else setTimeout(run, REST_MS);
}

/** A component that fetches another one: ahead, so that a server that is gone by then takes no view with it. */
export function later<P extends object>(load: () => Promise<FunctionComponent<P>>): FunctionComponent<P> {
  let fetched: Promise<FunctionComponent<P>> | null = null;
  const fetchIt = () => {
    // What failed is fetched again by who asks next.
    fetched ??= load().catch((error: unknown) => {
      fetched = null;
      throw error;
    });
    return fetched;
  };
  atRest(() => void fetchIt().catch(() => undefined));
  return function Later(props: P) {
    const { value: View, error } = useAnswer(async () => {
      try {
        return [await fetchIt()] as const;
      } catch (error) {
        // It may be there again by now.
        if (await answering()) return [await fetchIt()] as const;
        throw error;
      }
    }, [returned.value]);
    if (View) {
      const [Shown] = View;
      return <Shown {...props} />;
    }
    if (silent.value) {
      return (
        <Empty title="This view cannot be shown yet">
          The server does not answer. The view appears as soon as it does.
        </Empty>
      );
    }
    if (error) {
      return (
        <Empty title="This view cannot be shown">
          The server answers, but it does not have this view: it may have been started again in another
          version.{" "}
          <button type="button" onClick={() => location.reload()}>
            Reload the page
          </button>
        </Empty>
      );
    }
    return (
      <p class="loading" role="status">
        Reading …
      </p>
    );
  };
}
