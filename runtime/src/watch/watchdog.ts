import { systemClock, type Clock } from "../base/clock.js";

interface WatchdogOptions {
  readonly signal: AbortSignal;
  /** How long the stream may be quiet; asked anew whenever something arrives. */
  quietMs(): number;
  /** Checks a quiet stream; a rejection aborts the stream. */
  check(signal: AbortSignal): Promise<void>;
  readonly clock?: Clock | undefined;
}

/** Has a stream checked whenever it is quiet, and aborts it if the check fails. */
export function startWatchdog({ signal: outer, quietMs, check, clock = systemClock }: WatchdogOptions) {
  const failed = new AbortController();
  const ended = new AbortController();
  const signal = AbortSignal.any([outer, failed.signal]);
  let isChecking = false;
  let cancel = () => {};
  const wait = () => {
    cancel();
    cancel = clock.schedule(quietMs(), () => void checkNow());
  };
  const checkNow = async () => {
    const either = AbortSignal.any([signal, ended.signal]);
    isChecking = true;
    try {
      await check(either);
      isChecking = false;
      if (!either.aborted) wait();
    } catch (error) {
      if (!either.aborted) failed.abort(error);
    }
  };
  wait();
  return {
    /** Aborted when a check failed, and when the outer signal is. */
    signal,
    /** Why the check failed. */
    failure: (): unknown => failed.signal.reason,
    /** Takes that something arrived. */
    reset() {
      if (!isChecking) wait();
    },
    stop() {
      cancel();
      ended.abort(new Error("the stream has ended"));
    },
  };
}
