/** A question to the source: loading, failed or answered. A newer question forgets the older one's answer. */
import { useEffect, useState } from "preact/hooks";

export interface Answer<T> {
  value: T | null;
  error: string | null;
  loading: boolean;
}

export function useAnswer<T>(ask: () => Promise<T>, keys: unknown[]): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ value: null, error: null, loading: true });
  useEffect(() => {
    let current = true;
    setAnswer((before) => ({ ...before, loading: true, error: null }));
    ask().then(
      (value) => current && setAnswer({ value, error: null, loading: false }),
      (error: Error) => current && setAnswer({ value: null, error: error.message, loading: false }),
    );
    return () => {
      current = false;
    };
  }, keys);
  return answer;
}
