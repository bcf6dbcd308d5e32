import { keyOf, type KubernetesObject, type StatusCondition } from "../../base/kubernetes-object.js";
import { writePrimary, type PrimaryWrite } from "../primary-write.js";
import { conditionTypesOf, statusConditionsOf, type StatusFacts } from "./status-conditions.js";

type WithConditions = KubernetesObject & { readonly status?: { readonly conditions?: readonly StatusCondition[] } };

interface ConditionsToWrite extends Pick<StatusFacts, "workflow" | "error" | "isCleanup" | "postponed"> {
  /** The state that was reconciled. */
  readonly primary: KubernetesObject;
  /** The names of the dependents. */
  readonly dependents: readonly string[];
}

/** Returns under which name a controller applies the conditions that it keeps: not the one of what the reconciler writes. */
export function conditionsManagerOf(fieldManager: string): string {
  return `${fieldManager}-conditions`;
}

/** Writes the conditions of a status that are not there yet, and takes away those that are over; tells whether anything was written. */
export async function writeConditions(
  write: PrimaryWrite,
  { primary, dependents, ...facts }: ConditionsToWrite,
): Promise<boolean> {
  const latest = write.target.cache.get(keyOf(primary.metadata))?.object as WithConditions | undefined;
  if (latest === undefined || latest.metadata.uid !== primary.metadata.uid) return false;
  // A reconciler that states the whole status may just have taken them away; since when they hold is known all the same.
  const before = latest.status?.conditions ?? (primary as WithConditions).status?.conditions ?? [];
  const { generation } = primary.metadata;
  const { workflow, error, isCleanup = false } = facts;
  const isSkipped = dependents.length > 0 && workflow === undefined && error === undefined && !isCleanup;
  // What was found of an earlier generation still says so; a failure is over.
  const last = before.find(({ type }) => type === "Ready");
  if (isSkipped && last !== undefined && last.reason !== "Failed") return false;
  const conditions = statusConditionsOf({ ...facts, isSkipped, before, generation, now: new Date() });
  const wanted = write.serverSideApply ? { conditions } : wholeStatus(latest, conditions, dependents);
  let isWritten = false;
  await writePrimary(write, { primary: latest, status: wanted }, (parts) => (isWritten = parts.wroteStatus === true));
  return isWritten;
}

// A patch leaves what it does not name, so what is over has to be missed.
function wholeStatus(
  { status }: WithConditions,
  conditions: readonly StatusCondition[],
  dependents: readonly string[],
): object {
  const own = new Set(conditionTypesOf(dependents));
  const before = status?.conditions ?? [];
  const kept = before.flatMap((each) =>
    own.has(each.type) ? conditions.filter(({ type }) => type === each.type) : [each],
  );
  const added = conditions.filter(({ type }) => !before.some((each) => each.type === type));
  return { ...status, conditions: [...kept, ...added] };
}
