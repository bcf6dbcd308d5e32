import type { KubernetesObject } from "../../base/kubernetes-object.js";
import type { ApiClient } from "../../client/api-client.js";
import type { DriverRun } from "../dependents/driver.js";
import type { Step } from "../step.js";
import {
  isKubernetes,
  type Condition,
  type ConditionArguments,
  type Conditions,
  type DependentDefinition,
} from "../definition/workflow-definition.js";
import type { ConditionResults } from "../workflow-result.js";

/** What the conditions of one dependent, or of one item, said in this run. */
export type ConditionRecord = { -readonly [Name in keyof ConditionResults]: ConditionResults[Name] };

/** Whom a condition is asked about. */
export interface ConditionSubject {
  readonly definition: DependentDefinition;
  /** The client of the cluster that it is in. */
  readonly client?: ApiClient | undefined;
  /** The key, if it is an item of a bulk dependent. */
  readonly item?: string | undefined;
  readonly live: object | undefined;
}

/** Tells whether a condition holds; what it said once in a run is not asked again, and one that is not stated holds. */
export async function isMet(
  name: keyof Conditions,
  { definition, client, item, live }: ConditionSubject,
  { record, run, step }: { readonly record: ConditionRecord; readonly run: DriverRun; readonly step: Step },
): Promise<boolean> {
  const condition: Condition<never, never> | undefined = definition[name];
  if (condition === undefined) return true;
  const known = record[name];
  if (known !== undefined) return known.isMet;
  const dependent = {
    name: definition.name,
    ...(isKubernetes(definition) ? { definition: definition.resource } : {}),
    ...(client === undefined ? {} : { client }),
    ...(item === undefined ? {} : { item }),
    live,
  };
  const args: ConditionArguments<KubernetesObject, object> = { ...run, context: step.context, dependent };
  const returned = await step.track(`the ${name} of dependent "${definition.name}"`, () => condition(args as never));
  const result = checkResult(name, returned);
  record[name] = result;
  return result.isMet;
}

/** Tells what conditions said, as far as they were asked. */
export function conditionsOf(record: ConditionRecord): { readonly conditions?: ConditionResults } {
  return Object.keys(record).length === 0 ? {} : { conditions: record };
}

// A precondition that returns nothing, for want of a `return`, would delete what it is about.
function checkResult(name: keyof Conditions, returned: unknown): NonNullable<ConditionResults[keyof Conditions]> {
  if (typeof returned === "boolean") return { isMet: returned };
  const { isMet, detail } = (typeof returned === "object" && returned !== null ? returned : {}) as {
    isMet?: unknown;
    detail?: unknown;
  };
  if (typeof isMet === "boolean") return detail === undefined ? { isMet } : { isMet, detail };
  const found = returned === null ? "null" : typeof returned;
  throw new TypeError(`its ${name} returned ${found} instead of true, false or { isMet, detail }`);
}
