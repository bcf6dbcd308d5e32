import type { Clock } from "../../base/clock.js";
import { withDeadline } from "../../base/promises.js";
import { LEASE, withNotes, type Lease, type LeaseSpec } from "./lease.js";
import type { ElectorOptions } from "./elector.js";

const defined = { definition: LEASE };

interface LeaseRequestsOptions extends Pick<ElectorOptions, "client" | "terms" | "notes"> {
  readonly clock: Clock;
  /** Aborted when the candidacy ends: only a release is sent after that. */
  readonly ending: AbortSignal;
}

/** Reads and writes one Lease. */
export type LeaseRequests = ReturnType<typeof createLeaseRequests>;

/** Creates the requests about a Lease; each takes half of the renew deadline at most, so that one that hangs leaves time for another. */
export function createLeaseRequests({ client, terms, notes, clock, ending }: LeaseRequestsOptions) {
  const { ref, renewDeadlineMs } = terms;
  const bounded = async <Answer>(leftMs: number, send: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> => {
    const timeoutMs = Math.min(leftMs, renewDeadlineMs / 2);
    // A release is sent although the candidacy has ended.
    return withDeadline(send, { timeoutMs, clock }, ending.aborted ? [] : [ending]);
  };
  return {
    /** Reads the Lease, for `leftMs` at most; undefined if there is none. */
    read: (leftMs = Infinity) => bounded(leftMs, (signal) => client.get(defined, ref, { signal })),
    /** Writes over the Lease as it was read, for `leftMs` at most; creates it if there was none. Fails if somebody has changed it since. */
    write: (read: Lease | undefined, spec: LeaseSpec, leftMs: number) =>
      bounded(leftMs, (signal) =>
        read === undefined
          ? client.create(defined, { metadata: withNotes(ref, notes), spec }, { signal })
          : client.update(defined, { metadata: withNotes(read.metadata, notes), spec }, { signal }),
      ),
    /** Yields what becomes of the Lease after a version, undefined for its deletion, until the signal is aborted or the watch ends. */
    async *changes(resourceVersion: string | undefined, signal: AbortSignal): AsyncGenerator<Lease | undefined, void> {
      const { name, namespace } = ref;
      const selection = { namespace, fieldSelector: `metadata.name=${name}`, resourceVersion, signal };
      for await (const { type, object } of client.watch<Lease>(defined, selection))
        if (type !== "BOOKMARK" && object.metadata.name === name) yield type === "DELETED" ? undefined : object;
    },
  };
}
