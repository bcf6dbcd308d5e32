// What the API server demands of the fields that the subresource scale of a custom resource shows, at every write of the resource.
import { isJsonObject, memberOf, type JsonObject, type JsonValue } from "./json.js";

/** Where the objects of a kind keep what their Scale shows, as the CRD states it: `.spec.replicas`. */
export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

/** A value that a Scale cannot show. */
export interface ScaleProblem {
  /** The path of the CRD. */
  readonly path: string;
  readonly value: JsonValue;
  /** What the value, or one on the way to it, is not. */
  readonly expected: "an object" | "an integer" | "a string" | "at least 0" | "at most 2147483647";
  /** Whether the path is that of the selector, and not of a number. */
  readonly isSelector: boolean;
}

/** The most replicas that a Scale can have. */
export const MAX_REPLICAS = 2 ** 31 - 1;

/** Lists the values of an object that its Scale cannot show; with `ofStatus`, what a write of the status alone is checked for. */
export function findScaleProblems(
  object: JsonObject,
  { specReplicasPath, statusReplicasPath, labelSelectorPath = "" }: ScalePaths,
  { ofStatus = false } = {},
): ScaleProblem[] {
  return [
    ...(ofStatus ? [] : replicasProblems(object, specReplicasPath)),
    ...replicasProblems(object, statusReplicasPath),
    ...(labelSelectorPath === "" ? [] : selectorProblems(object, labelSelectorPath)),
  ];
}

function replicasProblems(object: JsonObject, path: string): ScaleProblem[] {
  const { value, misfit } = valueAt(object, path);
  const problem = (expected: ScaleProblem["expected"]) => [{ path, value: value ?? null, expected, isSelector: false }];
  if (misfit !== undefined) return [{ ...misfit, isSelector: false }];
  if (value === undefined) return [];
  if (!Number.isInteger(value)) return problem("an integer");
  if ((value as number) > MAX_REPLICAS) return problem("at most 2147483647");
  return (value as number) < 0 ? problem("at least 0") : [];
}

function selectorProblems(object: JsonObject, path: string): ScaleProblem[] {
  const { value, misfit } = valueAt(object, path);
  if (misfit !== undefined) return [{ ...misfit, isSelector: true }];
  return value === undefined || typeof value === "string"
    ? []
    : [{ path, value, expected: "a string", isSelector: true }];
}

type Misfit = Omit<ScaleProblem, "isSelector">;

// What is absent fits, and what would be below null. The API server knows no index: all between two dots is a name.
function valueAt(object: JsonObject, path: string): { value?: JsonValue; misfit?: Misfit } {
  let value: JsonValue = object;
  for (const name of path.slice(1).split(".")) {
    if (value === null) return {};
    if (!isJsonObject(value)) return { misfit: { path, value, expected: "an object" } };
    const member: JsonValue | undefined = memberOf(value as JsonObject, name);
    if (member === undefined) return {};
    value = member;
  }
  return { value };
}
