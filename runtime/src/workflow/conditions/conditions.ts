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

/** The results of the conditions of one dependent, or of one item, in this run. */
export type ConditionRecord = { -readonly [Name in keyof ConditionResults]: ConditionResults[Name] };

/** The dependent, or the item, that a condition is asked about. */
export interface ConditionSubject {
  readonly definition: DependentDefinition;
  /** The client of the cluster that the object is in. */
  readonly client?: ApiClient | undefined;
  /** The key of the item of a bulk dependent. */
  readonly item?: string | undefined;
  readonly live: object | undefined;
}

/** Tells whether a condition holds. It is asked once in a run; an absent condition holds. */
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

/** Returns the results of the conditions that were asked. */
export function conditionsOf(record: ConditionRecord): { readonly conditions?: ConditionResults } {
  return Object.keys(record).length === 0 ? {} : { conditions: record };
}

// A precondition that lacks its `return` would delete the dependent.
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
