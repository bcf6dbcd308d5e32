import { randomUUID } from "node:crypto";
import type { ObjectRef } from "../../base/kubernetes-object.js";
import { instanceName } from "../instance-name.js";

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
  /** What happens when the leadership is lost: the process ends with 1, or the operator starts again as a candidate. Default: `exit`. */
  readonly onLoss?: "exit" | "standby" | undefined;
}

/** Settings that are complete. */
export type LeaseTerms = ReturnType<typeof durationsOf> & { readonly ref: Required<ObjectRef> };

/** Attempts come up to this part later than the period, so that candidates do not all come at once (client-go's JitterFactor). */
export const JITTER = 0.2;

/** Throws a TypeError for settings that cannot work, with the reason. */
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
      "leader election needs the namespace of its Lease: state leaderElection.namespace, as the connection names none",
    );
  return { ref: { name, namespace }, ...durationsOf(settings) };
}

/** Returns how long the leader writes after its last renewal. */
export function renewDeadlineOf(settings: LeaderElectionSettings): number {
  return durationsOf(settings).renewDeadlineMs;
}

/** Returns a new identity: the name of the pod, and what tells this process, and this term, from every other. */
export function createIdentity(env: NodeJS.ProcessEnv = process.env): string {
  return `${instanceName(env)}_${randomUUID()}`;
}

function durationsOf(settings: LeaderElectionSettings) {
  // The defaults are those of controller-runtime and client-go.
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = settings;
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
}

function refuse(reason: string): never {
  throw new TypeError(`leaderElection: ${reason}`);
}
