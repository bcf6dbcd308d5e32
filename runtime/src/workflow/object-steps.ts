// What is done with one object: that of a dependent, or an item of a bulk dependent. When it is done is not decided here.
import type { PostponedWrite } from "../write/send/postponed-write.js";
import { conditionsOf, isMet, type ConditionRecord } from "./conditions/conditions.js";
import type { DependentDriver, DriverRun, FindRun, Live, Wanted } from "./dependents/driver.js";
import type { Step } from "./step.js";
import type { Conditions, DependentDefinition } from "./definition/workflow-definition.js";
import type { DependentOutcome } from "./workflow-result.js";

/** An object of a dependent in one run, and what is known of it so far; what succeeded is not done again when its step is. */
export interface Target {
  readonly definition: DependentDefinition;
  readonly driver: DependentDriver;
  /** The key, if it is an item of a bulk dependent. */
  readonly item?: string;
  readonly conditions: ConditionRecord;
  /** What `desired` returned. */
  desired?: { readonly object: unknown };
  wanted?: Wanted;
  written?: "created" | "updated" | "unchanged";
  /** Why the object is left as it is for now. */
  postponed?: PostponedWrite;
}

/** Creates the target of a dependent, or of one of its items. */
export function createTarget(definition: DependentDefinition, driver: DependentDriver, item?: string): Target {
  return item === undefined ? { definition, driver, conditions: {} } : { definition, driver, item, conditions: {} };
}

/** Returns the live object of a target. */
export function liveOf({ driver, item, wanted }: Target, run: FindRun): Live | undefined {
  return item === undefined || wanted !== undefined ? driver.find(run, wanted) : driver.findItems(run).get(item);
}

/** Asks a condition of a target, once in a run. */
export function ask(
  name: keyof Conditions,
  target: Target,
  { run, step }: { readonly run: DriverRun; readonly step: Step },
): Promise<boolean> | true {
  const { definition, driver, item, conditions } = target;
  if (definition[name] === undefined) return true;
  // Of the items of a bulk dependent there is no one object.
  const live = definition.bulk !== undefined && item === undefined ? undefined : liveOf(target, run)?.object;
  return isMet(name, { definition, client: driver.client, item, live }, { record: conditions, run, step });
}

/** Makes an object as its target wants it, if anything is to be written at all, and asks whether it is ready. */
export async function reconcileObject(target: Target, run: DriverRun, step: Step): Promise<DependentOutcome> {
  const { driver, definition, wanted, conditions } = target;
  const { signal } = step.context;
  signal.throwIfAborted();
  if (wanted !== undefined) {
    const written = target.written ?? (await step.write(() => driver.write(run, wanted, driver.find(run, wanted))));
    signal.throwIfAborted();
    if (written === "waiting")
      return { kind: "waiting", for: [], because: "the object is being deleted", ...conditionsOf(conditions) };
    if (written === "absent") return { kind: "waiting", for: [nameOf(target)], ...conditionsOf(conditions) };
    // What is there is left as it is, and nothing waits for it.
    if (typeof written === "object") target.postponed = written.postponed;
    target.written = typeof written === "object" ? "unchanged" : written;
  } else if (liveOf(target, run) === undefined) {
    return { kind: "waiting", for: [definition.name], ...conditionsOf(conditions) };
  }
  const isReady = await ask("readyPostcondition", target, { run, step });
  const postponed = target.postponed === undefined ? {} : { postponed: target.postponed };
  return { kind: target.written ?? "unchanged", isReady, ...postponed, ...conditionsOf(conditions) };
}

function nameOf({ definition, item }: Target): string {
  return item === undefined ? definition.name : `${definition.name}[${item}]`;
}

/** Returns the outcome of a deletion that failed: the object is left if the driver says so. Throws the error otherwise. */
export function releaseOrThrow({ driver, item, conditions }: Target, run: DriverRun, error: unknown): DependentOutcome {
  if (run.context.signal.aborted || driver.release?.(run, { error, item }) !== true) throw error;
  return { kind: "left", ...conditionsOf(conditions) };
}

/** How an object is deleted. */
export interface ObjectDeletion {
  readonly run: DriverRun;
  readonly step: Step;
  readonly because: string;
  /** The live object, if it need not be looked for. */
  readonly known?: Live;
}

/** Deletes an object if its driver may, and asks whether it is gone. */
export async function deleteObject(
  target: Target,
  { run, step, because, known }: ObjectDeletion,
): Promise<DependentOutcome> {
  const { driver, conditions } = target;
  const { remove: isRemoved } = driver.capabilities;
  const live = isRemoved ? (known ?? liveOf(target, run)) : undefined;
  step.context.signal.throwIfAborted();
  if (live !== undefined) await step.write(() => driver.remove(run, live));
  step.context.signal.throwIfAborted();
  const isGone = await ask("deletePostcondition", target, { run, step });
  if (!isRemoved && isGone) return { kind: "left", ...conditionsOf(conditions) };
  return { kind: "deleted", isGone, because, ...conditionsOf(conditions) };
}
