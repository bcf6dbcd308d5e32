// Conditions in the status of a primary: `Ready`, for `kubectl wait`, and one for each dependent that keeps the primary from being ready.
// They have a field manager of their own, so that the runtime and the reconciler keep each other's fields.
import { timestampOf } from "../../base/clock.js";
import { keyOf, type KubernetesObject, type StatusCondition } from "../../base/kubernetes-object.js";
import { messageOf } from "../../base/logger.js";
import { PAUSED } from "../../base/primary-link.js";
import type { Schema } from "../../base/resource-definition.js";
import { isSettled, type DependentOutcome, type WorkflowResult } from "../../workflow/workflow-result.js";
import type { PostponedWrite } from "../../base/activity.js";
import { patchBetween } from "../../write/send/plan.js";
import { describePostponed } from "../../write/send/postponed-write.js";
import { conditionTypesOf, type ConditionTypes } from "./condition-types.js";
import { writePrimary, type PrimaryWrite } from "../primary-write.js";

/** An object of a kind whose status has conditions. */
export type WithConditions = KubernetesObject & {
  readonly status?: { readonly conditions?: readonly StatusCondition[] };
};

/** The facts that the conditions are made of. */
export interface StatusFacts {
  /** The result of the workflow; absent if it did not run. */
  readonly workflow?: WorkflowResult | undefined;
  /** The error of a failed reconcile. */
  readonly error?: unknown;
  /** Whether the reconciler did not run its explicit workflow, so that nothing is known. */
  readonly isSkipped?: boolean;
  /** Whether the primary is being deleted, and cannot be ready. */
  readonly isCleanup?: boolean;
  /** Whether somebody has paused the primary: what was found before still stands, and one more condition says so. */
  readonly isPaused?: boolean;
  /** The writes for the primary that belong to a loop, made or postponed; an object may be there twice. */
  readonly postponed?: readonly PostponedWrite[] | undefined;
  /** The current conditions of the status. */
  readonly before: readonly StatusCondition[];
  /** The generation of the primary that was reconciled. */
  readonly generation: number | undefined;
  readonly now: Date;
  /** Default: those without a prefix */
  readonly types?: ConditionTypes | undefined;
}

type Reason =
  | ("Paused" | "WriteLoop" | "NotRun" | "Ready" | "Failed")
  | ("NotReady" | "DependencyNotReady" | "Deleting" | "Waiting");

interface Finding {
  /** Default: `False` */
  readonly status?: StatusCondition["status"];
  readonly reason: Reason;
  readonly message: string;
}

type NamedFinding = Finding & { readonly name: string };

// The reason of `Ready` is the first of these that a dependent has.
const REASONS: readonly Reason[] = ["Failed", "WriteLoop", "NotReady", "Deleting", "Waiting", "DependencyNotReady"];

const PAUSED_FINDING: Finding = {
  status: "True",
  reason: "Paused",
  message: `the annotation ${PAUSED} is "true", so nothing is written for this object`,
};
const LONGEST_MESSAGE = 1024;

/** Returns the conditions that a status should have. Others of the same dependents are over. */
export function statusConditionsOf(facts: StatusFacts): StatusCondition[] {
  const { workflow, postponed = [], before, generation, now, types = conditionTypesOf([]) } = facts;
  const outcomes = Object.entries(workflow?.dependents ?? {});
  const found = outcomes.flatMap(([name, outcome]) => {
    const finding = findingOf(name, outcome);
    return finding === undefined ? [] : [{ name, ...finding }];
  });
  const named = new Set(outcomes.flatMap(([, outcome]) => postponedIn(outcome)).map(idOf));
  const others = new Map(postponed.map((each) => [idOf(each), each]));
  const own = [...others].flatMap(([id, each]) => (named.has(id) ? [] : { name: each.object, ...loopFinding(each) }));
  const ready = readyOf([...found, ...own], facts);
  const condition = (type: string, { status = "False", reason, message }: Finding): StatusCondition => {
    const known = before.find((each) => each.type === type);
    return {
      type,
      status,
      reason,
      message: shortened(message),
      lastTransitionTime: known?.status === status ? known.lastTransitionTime : timestampOf(now),
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    };
  };
  if (facts.isPaused === true) return [condition(types.paused, PAUSED_FINDING)];
  return [condition(types.ready, ready), ...found.map((finding) => condition(types.of(finding.name), finding))];
}

/** Tells whether several writers can share the list of conditions in the status of a kind, as in Kubernetes' own kinds. */
export function hasSharedConditions(schema: Schema): boolean {
  const conditions = schema.properties?.["status"]?.properties?.["conditions"];
  const keys = conditions?.["x-kubernetes-list-map-keys"];
  return conditions?.["x-kubernetes-list-type"] === "map" && keys?.length === 1 && keys[0] === "type";
}

function readyOf(found: readonly NamedFinding[], { workflow, error, isCleanup, isSkipped }: StatusFacts): Finding {
  if (isSkipped) return { status: "Unknown", reason: "NotRun", message: "the reconciler did not run the workflow" };
  const reason = REASONS.find((each) => found.some((finding) => finding.reason === each));
  if (reason !== undefined) return { reason, message: found.map(textOf).join("; ") };
  if (error !== undefined) return { reason: "Failed", message: messageOf(error) };
  if (isCleanup) return { reason: "Deleting", message: "the primary is being deleted" };
  if (workflow?.isReady === false)
    return { reason: "Deleting", message: "objects that must not exist are still there" };
  return { status: "True", reason: "Ready", message: "everything is as desired" };
}

// The error of a dependent names the dependent already.
function textOf({ name, reason, message }: NamedFinding): string {
  return reason === "Failed" ? message : `${name}: ${message}`;
}

function findingOf(name: string, outcome: DependentOutcome): Finding | undefined {
  switch (outcome.kind) {
    case "created":
    case "updated":
    case "unchanged":
      if (outcome.postponed !== undefined) return loopFinding(outcome.postponed);
      if (isSettled(outcome)) return undefined;
      return itemFindingOf(name, outcome) ?? { reason: "NotReady", message: detailOf(outcome) };
    case "waiting":
      if (outcome.because !== undefined)
        return { reason: outcome.isHeld === true ? "Deleting" : "Waiting", message: outcome.because };
      if (outcome.for.length === 0) return itemFindingOf(name, outcome);
      // A read-only dependent without an object waits for itself.
      if (outcome.for.join() === name) return { reason: "NotReady", message: "does not exist yet" };
      return { reason: "DependencyNotReady", message: `waits for ${outcome.for.join(", ")}` };
    case "failed":
      return { reason: "Failed", message: messageOf(outcome.error) };
    case "deleted":
      // A dependent that is not wanted, and is gone, is as it should be.
      if (isSettled(outcome)) return undefined;
      return { reason: "Deleting", message: `is being deleted, because ${outcome.because}` };
    default:
      return undefined;
  }
}

function postponedIn(outcome: DependentOutcome): readonly PostponedWrite[] {
  const ofItems = Object.values(outcome.items ?? {}).flatMap(postponedIn);
  return "postponed" in outcome && outcome.postponed !== undefined ? [outcome.postponed, ...ofItems] : ofItems;
}

function idOf({ kind, object }: PostponedWrite): string {
  return `${kind} ${object}`;
}

function loopFinding(postponed: PostponedWrite): Finding {
  return { reason: "WriteLoop", message: describePostponed(postponed) };
}

function itemFindingOf(name: string, { items = {} }: DependentOutcome): Finding | undefined {
  const found = Object.entries(items).flatMap(([key, item]) => {
    const finding = findingOf(`${name}[${key}]`, item);
    return finding === undefined ? [] : [{ ...finding, message: `item "${key}": ${finding.message}` }];
  });
  const [first] = found;
  if (first === undefined || found.length === 1) return first;
  const others = `; ${found.length} of ${Object.keys(items).length} items are not ready`;
  return { ...first, message: `${first.message}${others}` };
}

function detailOf({ conditions }: DependentOutcome): string {
  const detail = conditions?.readyPostcondition?.detail;
  return typeof detail === "string" && detail !== "" ? detail : "its readyPostcondition is false";
}

function shortened(message: string): string {
  if (message.length <= LONGEST_MESSAGE) return message;
  // The API server would replace half a surrogate pair, and the message would differ each time.
  return `${message.slice(0, LONGEST_MESSAGE - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** Returns under which name a controller applies the conditions that it keeps: not the one of what the reconciler writes. */
export function conditionsManagerOf(fieldManager: string): string {
  return `${fieldManager}-conditions`;
}

/** What a reconcile tells of its primary. */
export type ReconcileFacts = Omit<StatusFacts, "isSkipped" | "before" | "generation" | "now"> & {
  readonly types: ConditionTypes;
  /** Whether the workflow has dependents. */
  readonly hasDependents: boolean;
};

/** Returns the conditions of the runtime after a reconcile; undefined if those that are there still stand. `primary` is in the state that was reconciled. */
function conditionsAfter(
  { metadata: { generation } }: WithConditions,
  before: readonly StatusCondition[],
  facts: ReconcileFacts,
): StatusCondition[] | undefined {
  const { types, hasDependents, workflow, error, isCleanup = false, isPaused = false } = facts;
  const isSkipped = !isPaused && hasDependents && workflow === undefined && error === undefined && !isCleanup;
  // What was found of an earlier generation still says so; a failure is over.
  const last = before.find(({ type }) => type === types.ready);
  if (isSkipped && last !== undefined && last.reason !== "Failed") return undefined;
  // What the runtime kept before it was paused is still the last that is known.
  const kept = isPaused ? before.filter(({ type }) => types.all.has(type) && type !== types.paused) : [];
  return [...kept, ...statusConditionsOf({ ...facts, isSkipped, before, generation, now: new Date() })];
}

/**
 * Writes the conditions of a status that are not there yet, and takes away those that are over; tells whether anything was written. `primary` is
 * in the state that was reconciled.
 */
export async function writeConditions(
  write: PrimaryWrite,
  primary: WithConditions,
  facts: ReconcileFacts,
): Promise<boolean> {
  const { metadata, status } = primary;
  const { types } = facts;
  const latest = write.target.cache.get(keyOf(metadata))?.object as WithConditions | undefined;
  if (latest === undefined || latest.metadata.uid !== metadata.uid) return false;
  // Somebody who states the whole status may just have taken them away; since when they hold is known all the same.
  const conditions = conditionsAfter(primary, latest.status?.conditions ?? status?.conditions ?? [], facts);
  if (conditions === undefined) return false;
  const wanted = write.serverSideApply ? { conditions } : wholeStatus(latest.status ?? {}, conditions, types);
  // A status that somebody else changes each time has another time each time.
  const statement = conditions.map(({ lastTransitionTime: _, ...rest }) => rest);
  const stated = { ...write, cause: { ...write.cause, statement } };
  let isWritten = false;
  await writePrimary(stated, { primary: latest, status: wanted }, (parts) => (isWritten = parts.wroteStatus === true));
  return isWritten;
}

/**
 * Returns a status that the reconciler states as a whole with the conditions that the runtime keeps, of which it need not know. If the status changes
 * anyway, these are the ones after the reconcile, so that both are one request; else they keep a request, and a write loop, of their own.
 */
export function withOwnConditions(
  status: NonNullable<WithConditions["status"]>,
  primary: WithConditions,
  facts: ReconcileFacts,
): object {
  const { types } = facts;
  const before = primary.status?.conditions ?? [];
  const own = before.filter(({ type }) => types.all.has(type));
  const asBefore = wholeStatus(status, own, types);
  const [, ...changes] = patchBetween(primary.metadata.uid, { status: primary.status }, { status: asBefore });
  if (changes.length === 0) return asBefore;
  return wholeStatus(status, conditionsAfter(primary, before, facts) ?? own, types);
}

// A patch leaves what it does not name, so what is over has to be missed.
function wholeStatus(
  status: NonNullable<WithConditions["status"]>,
  conditions: readonly StatusCondition[],
  types: ConditionTypes,
): object {
  const { conditions: before = [] } = status;
  if (before.length + conditions.length === 0) return status;
  const kept = before.flatMap((each) =>
    types.all.has(each.type) ? conditions.filter(({ type }) => type === each.type) : [each],
  );
  const added = conditions.filter(({ type }) => !before.some((each) => each.type === type));
  return { ...status, conditions: [...kept, ...added] };
}
