import type { Clock } from "../../base/clock.js";

interface PollLoopOptions {
  readonly clock: Clock;
  /** Whether the first poll comes at once. */
  readonly startsNow?: boolean;
  /** Returns the time from now to the next poll. */
  delayMs(): number;
  /** Polls; must not reject. `isEnded` returns whether the loop was ended meanwhile. */
  poll(isEnded: () => boolean): Promise<void>;
}

/** Polls again and again, each time a delay after the last poll ended; returns how to end that. */
export function startPollLoop({ clock, startsNow = false, delayMs, poll }: PollLoopOptions): () => void {
  let isEnded = false;
  let cancel = () => {};
  const wait = () => void (cancel = clock.schedule(delayMs(), () => void next()));
  const next = async () => {
    await poll(() => isEnded);
    if (!isEnded) wait();
  };
  if (startsNow) void next();
  else wait();
  return () => {
    isEnded = true;
    cancel();
  };
}
