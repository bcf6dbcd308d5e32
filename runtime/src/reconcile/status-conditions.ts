// Conditions in the status of a primary: `Ready`, for `kubectl wait`, and one for each dependent that keeps the primary from becoming ready.
import { describePostponed } from "../apply/write.js";
import type { PostponedWrite } from "../base/activity.js";
import { type Schema, type StatusCondition, type WithConditions, timestampOf } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { PAUSED } from "../base/primary-link.js";
import { type DependentOutcome, type WorkflowResult, isSettled } from "../workflow/run.js";

/** The outcome of a reconcile, as far as it affects conditions. */
interface ReconciledFacts {
  /** Absent if the workflow did not run. */
  readonly workflow?: WorkflowResult | undefined;
  /** The error of a failed reconcile. */
  readonly error?: unknown;
  /** Whether the primary is being deleted, so that it cannot be ready. */
  readonly isCleanup?: boolean;
  /** Whether the primary is paused. An additional condition reports it, and the other conditions stay. */
  readonly isPaused?: boolean;
  /** Writes that are part of write loops, sent or postponed. May contain an object twice. */
  readonly postponed?: readonly PostponedWrite[] | undefined;
}

/** The inputs from which conditions are computed. */
export interface StatusFacts extends ReconciledFacts {
  /** Whether the reconciler did not invoke its explicit workflow. */
  readonly isSkipped?: boolean;
  /** The current conditions of the status. */
  readonly before: readonly StatusCondition[];
  /** The generation that was reconciled. */
  readonly generation: number | undefined;
  readonly now: Date;
  /** Default: types without a prefix */
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

// In order of precedence: `Ready` gets the first reason that any dependent has.
const REASONS: readonly Reason[] = ["Failed", "WriteLoop", "NotReady", "Deleting", "Waiting", "DependencyNotReady"];

const PAUSED_FINDING: Finding = {
  status: "True",
  reason: "Paused",
  message: `the annotation ${PAUSED} is "true", so nothing is written for this object`,
};
const LONGEST_MESSAGE = 1024;

/** Returns the conditions for a status. Other conditions of the same controller have to be removed. */
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

/**
 * Reports whether `status.conditions` of a kind is a list map with the key `type`, as in built-in kinds, so that several field managers can own
 * items.
 */
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
  if (workflow?.isReady === false) return { reason: "Deleting", message: "waiting for objects to be deleted" };
  return { status: "True", reason: "Ready", message: "everything is as desired" };
}

// The error message contains the name of the dependent already.
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
      // Deleted as intended.
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
  // The API server replaces an unpaired surrogate, so the message would differ on every reconcile.
  return `${message.slice(0, LONGEST_MESSAGE - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** The outcome of a reconcile, and the condition settings of its controller. */
export interface ConditionFacts extends ReconciledFacts {
  readonly types: ConditionTypes;
  /** Whether the workflow has dependents. */
  readonly hasDependents: boolean;
}

/** Returns the conditions after a reconcile of this primary; undefined if the current ones are still correct. */
export function conditionsAfter(
  { metadata: { generation } }: WithConditions,
  before: readonly StatusCondition[],
  facts: ConditionFacts,
): StatusCondition[] | undefined {
  const { types, hasDependents, workflow, error, isCleanup = false, isPaused = false } = facts;
  const isSkipped = !isPaused && hasDependents && workflow === undefined && error === undefined && !isCleanup;
  // Conditions of an earlier run stay, except for a failure.
  const last = before.find(({ type }) => type === types.ready);
  if (isSkipped && last !== undefined && last.reason !== "Failed") return undefined;
  // The conditions from before the pause are still current.
  const kept = isPaused ? before.filter(({ type }) => types.all.has(type) && type !== types.paused) : [];
  return [...kept, ...statusConditionsOf({ ...facts, isSkipped, before, generation, now: new Date() })];
}

/** The condition types that the runtime manages for a controller. */
export interface ConditionTypes {
  readonly ready: string;
  readonly paused: string;
  /** Returns the type for a dependent: `DeploymentReady` for "deployment". */
  of(dependent: string): string;
  /** All types. */
  readonly all: ReadonlySet<string>;
}

/** Returns the condition types for a workflow with these dependents, with a common prefix. */
export function conditionTypesOf(dependents: readonly string[], prefix = ""): ConditionTypes {
  const of = (dependent: string) => `${prefix}${dependent.charAt(0).toUpperCase()}${dependent.slice(1)}Ready`;
  const [ready, paused] = [`${prefix}Ready`, `${prefix}Paused`];
  return { ready, paused, of, all: new Set([ready, paused, ...dependents.map(of)]) };
}
