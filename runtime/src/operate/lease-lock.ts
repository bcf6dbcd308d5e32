// The Lease for leader election (coordination.k8s.io/v1), like client-go's LeaseLock: settings, identities, specs, and requests.
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
  /** The number of leader changes. */
  readonly leaseTransitions?: number | null;
}

export interface Lease extends KubernetesObject {
  readonly spec?: LeaseSpec;
}

export const LEASE = builtinKindOf<Lease>({ group: "coordination.k8s.io", kind: "Lease", plural: "leases" });

/** The annotation that hands the primaries whose functions blocked the event loop to the next leader. */
export const SUSPECTS = "gen-operator.dev/suspects";

/** State that an operator stores in its Lease for the next leader. */
export interface LeaseNotes {
  /** Returns the state to store; undefined for none. */
  write(): string | undefined;
  /** Called with the state in a Lease that was read. */
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

/** Returns the fencing token: a number that increases with each new leader, so that writes of a former leader can be rejected. */
export function termOf(lease: Lease): number {
  return lease.spec?.leaseTransitions ?? 0;
}

// The field is an int32. A Lease with the maximum can still be acquired.
const MAX_TRANSITIONS = 2 ** 31 - 1;

/** Returns the spec to acquire or renew the Lease. `seenTerm` is the highest term that this replica has observed. */
export function acquiredSpec(
  spec: LeaseSpec | undefined,
  { identity, durationMs, now, seenTerm = -1 }: { identity: string; durationMs: number; now: Date; seenTerm?: number },
): LeaseSpec {
  // A new Lease has no previous leader.
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

/** Returns the spec to release the Lease, so that candidates do not wait until it expires (client-go's ReleaseOnCancel). */
export function releasedSpec(spec: LeaseSpec | undefined, now: Date): LeaseSpec {
  const time = microTimeOf(now);
  return { ...spec, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: time, renewTime: time };
}

/** Returns the duration of a Lease in milliseconds; `ownMs` if its spec does not set one. */
export function durationOf(lease: Lease, ownMs: number): number {
  const seconds = lease.spec?.leaseDurationSeconds;
  return typeof seconds === "number" && seconds > 0 ? seconds * 1000 : ownMs;
}

const LEASE_TARGET = { definition: LEASE };

/** A client without retries: the elector repeats failed attempts. */
export type LeaseClient = Pick<ApiClient, "get" | "create" | "update" | "watch">;

interface LeaseLockOptions {
  readonly client: LeaseClient;
  readonly terms: LeaseTerms;
  /** State stored in the Lease: written with each renewal, read after each change. Default: none */
  readonly notes?: LeaseNotes | undefined;
  readonly clock: Clock;
  /** Aborted when the candidacy ends; afterwards only a release is sent. */
  readonly ending: AbortSignal;
}

/** Reads, writes, and watches a Lease. Each request has a timeout of at most half the renew deadline, which leaves time for a second attempt. */
export class LeaseLock {
  readonly #options: LeaseLockOptions;

  constructor(options: LeaseLockOptions) {
    this.#options = options;
  }

  /** Reads the Lease within `leftMs`; undefined if it does not exist. */
  read(leftMs = Infinity): Promise<Lease | undefined> {
    const { client, terms } = this.#options;
    return this.#bounded(leftMs, (signal) => client.get(LEASE_TARGET, terms.ref, { signal }));
  }

  /**
   * Updates the Lease `read`, or creates it if that is undefined, within `leftMs`. Rejects with a conflict if another client has changed it since.
   */
  write(read: Lease | undefined, spec: LeaseSpec, leftMs: number): Promise<Lease> {
    const { client, terms, notes } = this.#options;
    return this.#bounded(leftMs, (signal) =>
      read === undefined
        ? client.create(LEASE_TARGET, { metadata: withNotes(terms.ref, notes), spec }, { signal })
        : client.update(LEASE_TARGET, { metadata: withNotes(read.metadata, notes), spec }, { signal }),
    );
  }

  /** Yields the Lease after each change since `resourceVersion`, and undefined for its deletion, until the signal is aborted or the watch ends. */
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
    // A release is sent after the candidacy has ended.
    return withDeadline(send, { timeoutMs, clock }, ending.aborted ? [] : [ending]);
  }
}

/** Settings of leader election, by which the replicas of an operator agree on the one that writes. */
export interface LeaderElectionSettings {
  /**
   * The name of the Lease. All replicas and versions of an operator must use the same. Default: the name of the first controller, or of its first
   * former name, with the suffix `-leader`
   */
  readonly name?: string | undefined;
  /** The namespace of the Lease. Default: the namespace of the Pod, or of the kubeconfig context */
  readonly namespace?: string | undefined;
  /**
   * How long standby replicas wait after the last renewal that they have observed before they acquire the Lease, in whole seconds. Default: 15,000 ms
   */
  readonly leaseDurationMs?: number | undefined;
  /** How long the leader continues to write after its last successful renewal was sent. Default: 10,000 ms */
  readonly renewDeadlineMs?: number | undefined;
  /** The time between attempts to acquire or renew the Lease. Default: 2,000 ms */
  readonly retryPeriodMs?: number | undefined;
  /** What to do when leadership is lost: `exit` ends the process with code 1, `standby` restarts the operator as a candidate. Default: `exit` */
  readonly onLoss?: "exit" | "standby" | undefined;
}

/** Settings with defaults applied. */
export type LeaseTerms = ReturnType<typeof durationsOf> & { readonly ref: Required<ObjectRef> };

/** Maximum random delay of an attempt, as a fraction of the period, so that candidates do not all try at once (client-go's JitterFactor). */
export const JITTER = 0.2;

/** Throws a TypeError if settings are invalid or contradict each other. */
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

/** Applies defaults. Throws if the namespace of the Lease is unknown. */
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

/** Returns a new identity: the name of the Pod and a random UUID. */
export function createIdentity(env: NodeJS.ProcessEnv = process.env): string {
  return `${instanceName(env)}_${randomUUID()}`;
}

/** Applies the defaults of the durations. */
export function durationsOf(settings: LeaderElectionSettings) {
  // Defaults of controller-runtime and client-go.
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = settings;
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
}

function refuse(reason: string): never {
  throw new TypeError(`leaderElection: ${reason}`);
}

/** Returns the name of this replica: `POD_NAME`, or the host name, which is the name of the Pod. */
export function instanceName(env: NodeJS.ProcessEnv = process.env): string {
  return env["POD_NAME"] || hostname();
}
