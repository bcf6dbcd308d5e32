// Validates the fields behind the scale subresource of a custom resource. The API server validates them on each write of the resource.
import { isJsonObject, memberOf, type JsonObject, type JsonValue } from "../json/json.js";

/** The paths of the scale subresource in a CRD, such as `.spec.replicas`. */
export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

/** A value that is invalid in a Scale. */
export interface ScaleProblem {
  /** The path in the CRD. */
  readonly path: string;
  readonly value: JsonValue;
  /** The type or range that the value, or one of its ancestors, violates. */
  readonly expected: "an object" | "an integer" | "a string" | "at least 0" | "at most 2147483647";
  /** Whether the path is labelSelectorPath. */
  readonly isSelector: boolean;
}

/** The maximum number of replicas of a Scale. */
export const MAX_REPLICAS = 2 ** 31 - 1;

interface ScaleOptions {
  /** Whether to validate only the status. Default: false */
  readonly ofStatus?: boolean;
  /** Returns whether an integer was written as a float, such as `1.0`, which is invalid in a Scale. Default: always false */
  readonly isFloat?: (holder: JsonObject, name: string) => boolean;
}

/** Returns the values of an object that are invalid in its Scale. */
export function findScaleProblems(
  object: JsonObject,
  { specReplicasPath, statusReplicasPath, labelSelectorPath = "" }: ScalePaths,
  { ofStatus = false, isFloat = () => false }: ScaleOptions = {},
): ScaleProblem[] {
  return [
    ...(ofStatus ? [] : replicasProblems(object, specReplicasPath, isFloat)),
    ...replicasProblems(object, statusReplicasPath, isFloat),
    ...(labelSelectorPath === "" ? [] : selectorProblems(object, labelSelectorPath)),
  ];
}

function replicasProblems(
  object: JsonObject,
  path: string,
  isFloat: NonNullable<ScaleOptions["isFloat"]>,
): ScaleProblem[] {
  const { value, misfit, holder = object, name = "" } = valueAt(object, path);
  const problem = (expected: ScaleProblem["expected"]) => [{ path, value: value ?? null, expected, isSelector: false }];
  if (misfit !== undefined) return [{ ...misfit, isSelector: false }];
  if (value === undefined) return [];
  if (!Number.isInteger(value) || isFloat(holder, name)) return problem("an integer");
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

interface Found {
  readonly value?: JsonValue;
  readonly misfit?: Misfit;
  readonly holder?: JsonObject;
  readonly name?: string;
}

// Absent values and members of null are valid. The API server does not support array indexes: each segment between dots is a name.
function valueAt(object: JsonObject, path: string): Found {
  let found: Found & { value: JsonValue } = { value: object };
  for (const name of path.slice(1).split(".")) {
    const { value: holder } = found;
    if (holder === null) return {};
    if (!isJsonObject(holder)) return { misfit: { path, value: holder, expected: "an object" } };
    const value: JsonValue | undefined = memberOf(holder as JsonObject, name);
    if (value === undefined) return {};
    found = { value, holder: holder as JsonObject, name };
  }
  return found;
}
