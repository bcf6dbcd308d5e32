// What is remembered of an object that is created once: it may be gone when somebody asks, as a Job with ttlSecondsAfterFinished is.
import { keyOf, type KubernetesObject, type StatusCondition } from "../../base/kubernetes-object.js";
import { userCalls } from "../../base/user-calls.js";
import type { KubernetesDependent } from "../definition/workflow-definition.js";
import type { Kept, RememberedState } from "./external-state.js";

/** The last run of an object that is created once. */
export interface OnceRun {
  /** The uid of the object. */
  readonly id: string;
  /** The value of `again` for which it was created, as JSON. */
  readonly again: string;
  /** Absent until it was ready, or a Job failed. */
  readonly result?: "ready" | "failed";
  readonly detail?: string;
}

/** Where runs are remembered. */
export type OnceMemory = Pick<RememberedState, "read" | "isKept" | "unprovenOf" | "lookUp" | "set">;

const MOST_DETAIL = 500;

/** Returns the value of `again` for a primary, as JSON: another value than that of the last run asks for another one. */
export async function againOf({ again, name }: KubernetesDependent, primary: KubernetesObject): Promise<string> {
  if (again === undefined) return "";
  const call = { what: `again of dependent "${name}"`, primary: keyOf(primary.metadata) };
  const value: unknown = await userCalls.track(call, () => again({ primary } as never));
  return value === undefined ? "" : JSON.stringify(value);
}

/** Returns how an object has ended; undefined if it may still become ready, as far as is known. A Job has ended also while it is being deleted. */
export function resultOf(live: KubernetesObject, isReady: boolean): Pick<OnceRun, "result" | "detail"> | undefined {
  if (isReady) return { result: "ready" };
  if (live.kind !== "Job") return undefined;
  const { conditions = [] } = (live as Conditioned).status ?? {};
  const find = (wanted: string) => conditions.find(({ type, status }) => type === wanted && status === "True");
  if (find("Complete") !== undefined) return { result: "ready" };
  const failure = find("Failed");
  if (failure === undefined) return undefined;
  const cause = failure.message || failure.reason;
  const detail = `Job ${keyOf(live.metadata)} failed${cause ? `: ${cause}` : ""}`;
  return { result: "failed", detail: detail.slice(0, MOST_DETAIL) };
}

type Conditioned = KubernetesObject & { readonly status?: { readonly conditions?: readonly StatusCondition[] } };

/** Returns the readiness of an object that is gone. */
export function readinessOf({ result, detail }: OnceRun): { readonly isReady: boolean; readonly detail?: string } {
  if (result === "ready") return { isReady: true };
  return {
    isReady: false,
    detail: detail ?? "the object was deleted before it was seen to be ready, and is not created again",
  };
}

/** Returns the error of a run that was recorded by somebody else, or is. */
export function unprovenRun(name: string, { place, proofPlace }: Kept): Error {
  return new Error(
    `whether the object of dependent "${name}" was created before is not known: ${place} was not written by this operator, as its proof (${proofPlace}) ` +
      "is missing or wrong; remove it, and the object is created",
  );
}
