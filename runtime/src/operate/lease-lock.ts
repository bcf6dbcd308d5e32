// The Lease by which replicas agree on their leader (coordination.k8s.io/v1), as LeaseLock of client-go: settings, identities, specs and requests.
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { type KubernetesObject, type ObjectRef, builtinKindOf, microTimeOf } from "../base/kubernetes-object.js";
import { type Clock, withDeadline } from "../base/wait.js";
import type { ApiClient } from "../client/api-client.js";

export interface LeaseSpec {
  /** The leader; absent or empty if there is none. */
  readonly holderIdentity?: string | null;
  readonly leaseDurationSeconds?: number | null;
  /** When the holder became the leader (`metav1.MicroTime`). */
  readonly acquireTime?: string | null;
  readonly renewTime?: string | null;
  /** How often the leader has changed. */
  readonly leaseTransitions?: number | null;
}

export interface Lease extends KubernetesObject {
  readonly spec?: LeaseSpec;
}

export const LEASE = builtinKindOf<Lease>({ group: "coordination.k8s.io", kind: "Lease", plural: "leases" });

/** The annotation with the primaries whose functions blocked the event loop, for the next leader. */
export const SUSPECTS = "gen-operator.dev/suspects";

/** What an operator stores in its Lease for the next leader. */
export interface LeaseNotes {
  /** Returns the notes to store; undefined for none. */
  write(): string | undefined;
  /** Called with the notes of a Lease that was read. */
  read(text: string | undefined, isLeading: boolean): void;
}

function withNotes(metadata: KubernetesObject["metadata"], notes: LeaseNotes | undefined) {
  if (notes === undefined) return metadata;
  const { [SUSPECTS]: before, ...others } = metadata.annotations ?? {};
  const text = notes.write();
  if (text === before) return metadata;
  return { ...metadata, annotations: text === undefined ? others : { ...others, [SUSPECTS]: text } };
}

/** Returns the identity of the leader; undefined if there is none. */
export function holderOf(lease: Lease | undefined): string | undefined {
  return lease?.spec?.holderIdentity || undefined;
}

/** Returns the fencing token: a number that grows with every new leader, so that the writes of a former leader can be rejected. */
export function termOf(lease: Lease): number {
  return lease.spec?.leaseTransitions ?? 0;
}

// The field is an int32. A Lease that has reached the maximum can still be held.
const MAX_TRANSITIONS = 2 ** 31 - 1;

/** Returns the spec with which a replica acquires or renews the Lease; `seenTerm` is the highest term that it has seen. */
export function acquiredSpec(
  spec: LeaseSpec | undefined,
  { identity, durationMs, now, seenTerm = -1 }: { identity: string; durationMs: number; now: Date; seenTerm?: number },
): LeaseSpec {
  // A new Lease has had no leader.
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

/** Returns the spec with which the leader releases the Lease, so that candidates need not wait for its expiry (client-go's ReleaseOnCancel). */
export function releasedSpec(spec: LeaseSpec | undefined, now: Date): LeaseSpec {
  const time = microTimeOf(now);
  return { ...spec, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: time, renewTime: time };
}

/** Returns the duration of a Lease in milliseconds; `ownMs` if its spec has none. */
export function durationOf(lease: Lease, ownMs: number): number {
  const seconds = lease.spec?.leaseDurationSeconds;
  return typeof seconds === "number" && seconds > 0 ? seconds * 1000 : ownMs;
}

const LEASE_TARGET = { definition: LEASE };

/** A client that does not retry: the elector repeats a failed attempt in time. */
export type LeaseClient = Pick<ApiClient, "get" | "create" | "update" | "watch">;

interface LeaseLockOptions {
  readonly client: LeaseClient;
  readonly terms: LeaseTerms;
  /** Kept in the Lease: written with each renewal, and read with each change. Default: nothing is kept */
  readonly notes?: LeaseNotes | undefined;
  readonly clock: Clock;
  /** Aborted when the candidacy ends: only a release is sent after that. */
  readonly ending: AbortSignal;
}

/** Reads, writes and watches one Lease. The timeout of a request is at most half of the renew deadline, which leaves time for a second attempt. */
export class LeaseLock {
  readonly #options: LeaseLockOptions;

  constructor(options: LeaseLockOptions) {
    this.#options = options;
  }

  /** Reads the Lease, for `leftMs` at most; undefined if there is none. */
  read(leftMs = Infinity): Promise<Lease | undefined> {
    const { client, terms } = this.#options;
    return this.#bounded(leftMs, (signal) => client.get(LEASE_TARGET, terms.ref, { signal }));
  }

  /** Updates the Lease that was read, or creates it, for `leftMs` at most. Fails with a conflict if another client has changed it since. */
  write(read: Lease | undefined, spec: LeaseSpec, leftMs: number): Promise<Lease> {
    const { client, terms, notes } = this.#options;
    return this.#bounded(leftMs, (signal) =>
      read === undefined
        ? client.create(LEASE_TARGET, { metadata: withNotes(terms.ref, notes), spec }, { signal })
        : client.update(LEASE_TARGET, { metadata: withNotes(read.metadata, notes), spec }, { signal }),
    );
  }

  /** Yields the Lease after each change since a version, undefined for its deletion, until the signal is aborted or the watch ends. */
  async *changes(resourceVersion: string | undefined, signal: AbortSignal): AsyncGenerator<Lease | undefined, void> {
    const { client, terms } = this.#options;
    const { name, namespace } = terms.ref;
    const selection = { namespace, fieldSelector: `metadata.name=${name}`, resourceVersion, signal };
    for await (const { type, object } of client.watch<Lease>(LEASE_TARGET, selection))
      if (type !== "BOOKMARK" && object.metadata.name === name) yield type === "DELETED" ? undefined : object;
  }

  #bounded<Answer>(leftMs: number, send: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const { terms, clock, ending } = this.#options;
    const timeoutMs = Math.min(leftMs, terms.renewDeadlineMs / 2);
    // A release is sent although the candidacy has ended.
    return withDeadline(send, { timeoutMs, clock }, ending.aborted ? [] : [ending]);
  }
}

/** How replicas of an operator agree on the one that writes. */
export interface LeaderElectionSettings {
  /** The name of the Lease. Replicas and versions of one operator need the same. Default: that of the first controller, or the first of its former names, with `-leader`. */
  readonly name?: string | undefined;
  /** The namespace of the Lease. Default: the one of the pod, or of the kubeconfig's context. */
  readonly namespace?: string | undefined;
  /** How long the others wait after the last renewal that they have seen, in whole seconds. Default: 15,000 ms. */
  readonly leaseDurationMs?: number | undefined;
  /** How long the leader writes after the last renewal that succeeded was sent. Default: 10,000 ms. */
  readonly renewDeadlineMs?: number | undefined;
  /** The time between two attempts to renew or to acquire. Default: 2,000 ms. */
  readonly retryPeriodMs?: number | undefined;
  /** What happens when leadership is lost: the process ends with 1, or the operator starts again as a candidate. Default: `exit`. */
  readonly onLoss?: "exit" | "standby" | undefined;
}

/** Complete settings. */
export type LeaseTerms = ReturnType<typeof durationsOf> & { readonly ref: Required<ObjectRef> };

/** Attempts are delayed by up to this part of the period, so that candidates do not all come at once (client-go's JitterFactor). */
export const JITTER = 0.2;

/** Throws a TypeError for contradictory settings. */
export function checkLeaderElection(settings: LeaderElectionSettings): void {
  const { name, namespace } = settings;
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = durationsOf(settings);
  const durations = { leaseDuration: leaseDurationMs, renewDeadline: renewDeadlineMs, retryPeriod: retryPeriodMs };
  for (const [setting, value] of Object.entries(durations))
    if (!Number.isFinite(value) || value <= 0) refuse(`${setting} is ${value} ms, and has to be above 0`);
  if (leaseDurationMs % 1000 !== 0)
    refuse(`leaseDuration is ${leaseDurationMs} ms, but a Lease counts in whole seconds`);
  if (leaseDurationMs <= renewDeadlineMs)
    refuse(
      `leaseDuration (${leaseDurationMs} ms) has to be above renewDeadline (${renewDeadlineMs} ms): ` +
        "otherwise another replica begins to write before this one has stopped",
    );
  if (renewDeadlineMs <= retryPeriodMs * (1 + JITTER))
    refuse(
      `renewDeadline (${renewDeadlineMs} ms) has to be above ${1 + JITTER} times retryPeriod (${retryPeriodMs} ms): ` +
        "otherwise the time is up before the first renewal",
    );
  if (name !== undefined && !/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name))
    refuse(`name is "${name}", and has to be one of a Kubernetes object: lower-case letters, digits, "-" and "."`);
  if (namespace !== undefined && !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace))
    refuse(`namespace is "${namespace}", and has to be the name of a namespace: lower-case letters, digits and "-"`);
}

/** Completes settings; throws if no namespace is known for the Lease. */
export function leaseTermsOf(
  settings: LeaderElectionSettings,
  { controller, namespace: own }: { readonly controller: string; readonly namespace?: string | undefined },
): LeaseTerms {
  const prefix = controller
    .toLowerCase()
    .replace(/[^-a-z0-9.]/g, "-")
    .slice(0, 200);
  const { name = `${prefix}-leader`, namespace = own } = settings;
  if (namespace === undefined)
    throw new Error(
      "leader election needs the namespace of its Lease: set leaderElection.namespace, because the connection has no namespace",
    );
  return { ref: { name, namespace }, ...durationsOf(settings) };
}

/** Returns a new identity: the name of the pod and a random UUID. */
export function createIdentity(env: NodeJS.ProcessEnv = process.env): string {
  return `${instanceName(env)}_${randomUUID()}`;
}

/** Completes the durations of settings. */
export function durationsOf(settings: LeaderElectionSettings) {
  // The defaults are those of controller-runtime and client-go.
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = settings;
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
}

function refuse(reason: string): never {
  throw new TypeError(`leaderElection: ${reason}`);
}

/** Returns the name of this replica: that of its pod, which is also the name of its host. */
export function instanceName(env: NodeJS.ProcessEnv = process.env): string {
  return env["POD_NAME"] || hostname();
}
