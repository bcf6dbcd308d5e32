// Until when an operator may write. Promise: no write leaves later than the renew deadline after the last successful renewal of the
// Lease was sent, by the monotonic clock, which no change of the date moves. Bytes that have left by then cannot be called back.
import { LeadershipError } from "../../base/errors.js";

/** A moment by both clocks of a machine, in milliseconds. */
export interface Moment {
  /** Never runs backwards, and may stand still while the machine is suspended. */
  readonly monotonicMs: number;
  /** The date, which somebody may change, and which goes on while the machine is suspended. */
  readonly wallMs: number;
}

const timeOfMachine = (): Moment => ({ monotonicMs: performance.now(), wallMs: Date.now() });

// Time servers slew a clock by 0.5 ms a second at most; more than this is a suspended machine, or somebody who sets the clock.
const MAX_DRIFT_MS = 1_000;

/** Says whether an operator may write now: asked synchronously right before the bytes of a write leave. */
export class WriteFence {
  /** Reads both clocks. */
  readonly now: () => Moment;
  #permit: { readonly since: Moment; readonly forMs: number; readonly onShut: (reason: string) => void } | undefined;
  #reason = "it has not become the leader";

  constructor(now = timeOfMachine) {
    this.now = now;
  }

  /** Opens the fence for a time since a moment; `onShut` is called once, when it is shut or found to be. */
  open(since: Moment, forMs: number, onShut: (reason: string) => void): void {
    this.#permit = { since, forMs, onShut };
  }

  /** Moves the end of the time that is left; a fence that was shut stays so. */
  extend(since: Moment, forMs: number): void {
    if (this.leftMs > 0) this.#permit = { ...this.#permit!, since, forMs };
  }

  shut(reason: string): void {
    const permit = this.#permit;
    this.#permit = undefined;
    this.#reason = reason;
    permit?.onShut(reason);
  }

  /** How long writes may leave from now on, in milliseconds; 0 if none may. */
  get leftMs(): number {
    if (this.#permit === undefined) return 0;
    const { since, forMs } = this.#permit;
    const now = this.now();
    const passedMs = now.monotonicMs - since.monotonicMs;
    const driftMs = Math.abs(now.wallMs - since.wallMs - passedMs);
    if (driftMs > MAX_DRIFT_MS)
      this.shut(
        `its clocks are ${Math.round(driftMs / 1000)} s apart since the last renewal: the machine was suspended, or the clock was set`,
      );
    else if (passedMs >= forMs) this.shut(`its Lease was not renewed for ${Math.round(passedMs)} ms`);
    else return forMs - passedMs;
    return 0;
  }

  /** Throws a LeadershipError unless a write may leave now. */
  check({ method, path }: { readonly method: string; readonly path: string }): void {
    if (this.leftMs > 0) return;
    throw new LeadershipError(
      `${method} ${path.replace(/\?.*$/, "")} was not sent, as this operator does not lead: ${this.#reason}`,
    );
  }
}
