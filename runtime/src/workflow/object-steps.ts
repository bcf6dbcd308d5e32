// What is done with one object: that of a dependent, or an item of a bulk dependent. When it is done is not decided here.
import {
  isKubernetes,
  type Condition,
  type ConditionArguments,
  type Conditions,
  type DependentDefinition,
} from "./definition/workflow-definition.js";
import {
  argumentsOf,
  type DependentDriver,
  type DriverRun,
  type FindRun,
  type Live,
  type Wanted,
  type WriteOutcome,
} from "./dependents/driver.js";
import type { Step } from "./step.js";
import type { ConditionResults, DependentOutcome } from "./workflow-result.js";

/** A run as one step sees it. */
export type StepRun = DriverRun & Step;

/** An object of a dependent in one run, and what is known of it so far; a retry does not repeat what succeeded. */
export interface Target {
  readonly definition: DependentDefinition;
  readonly driver: DependentDriver;
  /** The key, if it is an item of a bulk dependent. */
  readonly item?: string | undefined;
  readonly conditions: { -readonly [Name in keyof ConditionResults]: ConditionResults[Name] };
  desired?: { readonly object: unknown };
  wanted?: Wanted;
  written?: Exclude<WriteOutcome, "waiting" | "absent">;
}

function liveOf({ driver, item, wanted }: Target, run: FindRun): Live | undefined {
  return item === undefined || wanted !== undefined ? driver.find(run, wanted) : driver.findItems(run).get(item);
}

/** Tells whether a condition of a target holds. It is asked once in a run; an absent condition holds. */
export async function ask(name: keyof Conditions, target: Target, run: StepRun): Promise<boolean> {
  const { definition, driver, item, conditions } = target;
  const condition: Condition<never, never> | undefined = definition[name];
  if (condition === undefined) return true;
  const known = conditions[name];
  if (known !== undefined) return known.isMet;
  const dependent = {
    name: definition.name,
    ...(isKubernetes(definition) ? { definition: definition.resource } : {}),
    ...(driver.client === undefined ? {} : { client: driver.client }),
    ...(item === undefined ? {} : { item }),
    // The items of a bulk dependent are no one object.
    live: definition.bulk !== undefined && item === undefined ? undefined : liveOf(target, run)?.object,
  };
  const args: ConditionArguments<object, object> = { ...argumentsOf(run), dependent };
  const returned = await run.track(`the ${name} of dependent "${definition.name}"`, () => condition(args as never));
  const result = checkResult(name, returned);
  conditions[name] = result;
  return result.isMet;
}

// A precondition that lacks its `return` would delete the dependent.
function checkResult(name: keyof Conditions, returned: unknown): NonNullable<ConditionResults[keyof Conditions]> {
  if (typeof returned === "boolean") return { isMet: returned };
  const { isMet, detail } = Object(returned) as { isMet?: unknown; detail?: never };
  if (typeof isMet === "boolean") return detail === undefined ? { isMet } : { isMet, detail };
  const found = returned === null ? "null" : typeof returned;
  throw new TypeError(`its ${name} returned ${found} instead of true, false or { isMet, detail }`);
}

/** Returns an outcome with the results of the conditions of its target, as far as they were asked. */
export function withConditions(outcome: DependentOutcome, { conditions }: Target): DependentOutcome {
  return Object.keys(conditions).length === 0 ? outcome : { ...outcome, conditions };
}

/** Makes an object as its target wants it, if anything is to be written at all, and asks whether it is ready. */
export async function reconcileObject(target: Target, run: StepRun): Promise<DependentOutcome> {
  const { driver, definition, item, wanted } = target;
  const { signal } = run.context;
  const name = item === undefined ? definition.name : `${definition.name}[${item}]`;
  signal.throwIfAborted();
  if (wanted !== undefined) {
    const written = target.written ?? (await run.write(() => driver.write(run, wanted, driver.find(run, wanted))));
    signal.throwIfAborted();
    if (written === "waiting") return { kind: "waiting", for: [], because: "the object is being deleted" };
    if (written === "absent") return { kind: "waiting", for: [name] };
    target.written = written;
  } else if (liveOf(target, run) === undefined) return { kind: "waiting", for: [definition.name] };
  const isReady = await ask("readyPostcondition", target, run);
  const { written = "unchanged" } = target;
  // A postponed write leaves the object as it is, and nothing waits for it.
  return typeof written === "string"
    ? { kind: written, isReady }
    : { kind: "unchanged", isReady, postponed: written.postponed };
}

/** Returns the outcome of a deletion that failed: the object is left if the driver says so. Throws the error otherwise. */
export function releaseOrThrow({ driver, item }: Target, run: DriverRun, error: unknown): DependentOutcome {
  if (run.context.signal.aborted || driver.release?.(run, { error, item }) !== true) throw error;
  return { kind: "left" };
}

/** Deletes an object if its driver may, and asks whether it is gone. `known` is the live object, if it need not be looked for. */
export async function deleteObject(
  target: Target,
  run: StepRun,
  { because, known }: { readonly because: string; readonly known?: Live | undefined },
): Promise<DependentOutcome> {
  const { driver } = target;
  const isRemoved = driver.capabilities.remove;
  const live = isRemoved ? (known ?? liveOf(target, run)) : undefined;
  run.context.signal.throwIfAborted();
  if (live !== undefined) await run.write(() => driver.remove(run, live));
  run.context.signal.throwIfAborted();
  const isGone = await ask("deletePostcondition", target, run);
  return !isRemoved && isGone ? { kind: "left" } : { kind: "deleted", isGone, because };
}
