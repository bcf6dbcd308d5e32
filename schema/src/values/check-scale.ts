// What the API server demands of the fields that the subresource scale of a custom resource shows, at every write of the resource.
import { isJsonObject, memberOf, type JsonObject, type JsonValue } from "../json/json.js";

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

/** What is checked, and how. */
interface ScaleOptions {
  /** Whether only the status is written. Default: false */
  readonly ofStatus?: boolean;
  /** Tells whether a whole number was spelled as a float, such as `1.0`, which no Scale can show. Default: none was */
  readonly isFloat?: (holder: JsonObject, name: string) => boolean;
}

/** Lists the values of an object that its Scale cannot show. */
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

// What is absent fits, and what would be below null. The API server knows no index: all between two dots is a name.
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
