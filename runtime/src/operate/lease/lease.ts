// The Lease by which replicas agree on their leader (coordination.k8s.io/v1), and what a replica writes into it; without time and network.
import { microTimeOf } from "../../base/clock.js";
import type { KubernetesObject } from "../../base/kubernetes-object.js";
import { builtinKindOf } from "../../base/resource-definition.js";

/** What a Lease says. */
export interface LeaseSpec {
  /** Who leads; absent or empty if nobody does. */
  readonly holderIdentity?: string | null;
  readonly leaseDurationSeconds?: number | null;
  /** When the holder began to lead (`metav1.MicroTime`). */
  readonly acquireTime?: string | null;
  readonly renewTime?: string | null;
  /** How often the leader has changed. */
  readonly leaseTransitions?: number | null;
}

/** A Lease as the API server has it. */
export interface Lease extends KubernetesObject {
  readonly spec?: LeaseSpec;
}

/** The definition of Leases. */
export const LEASE = builtinKindOf<Lease>({ group: "coordination.k8s.io", kind: "Lease", plural: "leases" });

/** Keeps the primaries whose functions blocked the event loop, for the process after this one. */
export const SUSPECTS = "gen-operator.dev/suspects";

/** What an operator keeps in its Lease besides the leadership, for the next leader. */
export interface LeaseNotes {
  /** Returns what is to be kept; undefined for nothing. */
  write(): string | undefined;
  /** Takes what a Lease says. */
  read(text: string | undefined, isLeading: boolean): void;
}

/** Returns the metadata with which a Lease is written over. */
export function withNotes(metadata: KubernetesObject["metadata"], notes: LeaseNotes | undefined) {
  if (notes === undefined) return metadata;
  const { [SUSPECTS]: before, ...others } = metadata.annotations ?? {};
  const text = notes.write();
  if (text === before) return metadata;
  return { ...metadata, annotations: text === undefined ? others : { ...others, [SUSPECTS]: text } };
}

/** Returns who leads; undefined if nobody does. */
export function holderOf(lease: Lease | undefined): string | undefined {
  return lease?.spec?.holderIdentity || undefined;
}

/** Returns how often the leader has changed: a number that grows with every new leader, so that what a former one does can be told apart. */
export function termOf(lease: Lease): number {
  return lease.spec?.leaseTransitions ?? 0;
}

// The largest number of the field, an int32. A Lease that has reached it can still be held.
const MAX_TRANSITIONS = 2 ** 31 - 1;

/** Returns what a holder, or who becomes it, writes; `seenTerm` is the highest term that it has seen. */
export function acquired(
  spec: LeaseSpec | undefined,
  { identity, durationMs, now, seenTerm = -1 }: { identity: string; durationMs: number; now: Date; seenTerm?: number },
): LeaseSpec {
  // A Lease that is new has had no leader before.
  const before = spec === undefined ? -1 : (spec.leaseTransitions ?? 0);
  const isHolder = spec?.holderIdentity === identity;
  const time = microTimeOf(now);
  return {
    ...spec,
    holderIdentity: identity,
    leaseDurationSeconds: durationMs / 1000,
    acquireTime: isHolder ? (spec.acquireTime ?? time) : time,
    renewTime: time,
    leaseTransitions: Math.min(Math.max(before, seenTerm) + (isHolder ? 0 : 1), MAX_TRANSITIONS),
  };
}

/** Returns what a holder that leads no more writes: candidates need not wait (as client-go's ReleaseOnCancel). */
export function released(spec: LeaseSpec | undefined, now: Date): LeaseSpec {
  const time = microTimeOf(now);
  return { ...spec, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: time, renewTime: time };
}

/** How long the holder of a Lease may be silent, in milliseconds; `ownMs` if the Lease does not say. */
export function durationOf(lease: Lease, ownMs: number): number {
  const seconds = lease.spec?.leaseDurationSeconds;
  return typeof seconds === "number" && seconds > 0 ? seconds * 1000 : ownMs;
}
