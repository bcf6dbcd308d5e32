import { findScaleProblems, MAX_REPLICAS, type ScaleProblem } from "@gen-operator/schema";
import { numberTextsIn } from "../number-texts.js";
import type { ServedType } from "../builtin/served-type.js";
import { invalidError, type FieldError } from "../errors/field-error.js";
import { goFormat } from "../errors/go-format.js";
import { isObject, objectAt, stringAt, type JsonObject, type JsonValue } from "../json.js";

/** Where an object keeps what its Scale shows; paths such as `.spec.replicas`. */
export interface ScalePaths {
  specReplicas: string;
  statusReplicas: string;
  labelSelector: string | undefined;
}

/** Returns the path of the number that a type's Scale writes. */
export function scalePathsOf(type: ServedType): ScalePaths {
  const declared = objectAt(objectAt(type.custom?.version, "subresources"), "scale");
  return {
    specReplicas: stringAt(declared, "specReplicasPath") ?? ".spec.replicas",
    statusReplicas: stringAt(declared, "statusReplicasPath") ?? ".status.replicas",
    labelSelector: stringAt(declared, "labelSelectorPath"),
  };
}

/** Checks the numbers and the selector that the Scale of a custom resource shows, on every write of the resource. */
export function checkScaleOf(type: ServedType, object: JsonObject, options: { ofStatus?: boolean } = {}): FieldError[] {
  if (!type.subresources.some(({ name }) => name === "scale")) return [];
  const { specReplicas, statusReplicas, labelSelector = "" } = scalePathsOf(type);
  const paths = {
    specReplicasPath: specReplicas,
    statusReplicasPath: statusReplicas,
    labelSelectorPath: labelSelector,
  };
  const isFloat = (holder: JsonObject, name: string) => numberTextsIn(holder)?.has(name) === true;
  return findScaleProblems(object, paths, { ...options, isFloat }).map(errorOf);
}

function errorOf({ path, value, expected, isSelector }: ScaleProblem): FieldError {
  switch (expected) {
    case "at least 0":
      return invalidError(path, value, "should be a non-negative integer");
    case "at most 2147483647":
      return invalidError(path, value, `should be less than or equal to ${MAX_REPLICAS}`);
    default: {
      const found = typeof value === "number" && expected === "an integer" ? "float64" : goTypeIn(value);
      const misfit = `${goFormat(value)} is of the type ${found}, expected ${GO_TYPES[expected]}`;
      return invalidError(path, isSelector ? "" : 0, `${path} accessor error: ${misfit}`);
    }
  }
}

const GO_TYPES = { "an object": "map[string]interface{}", "an integer": "int64", "a string": "string" };

// As Go holds JSON of which it knows no type.
function goTypeIn(value: JsonValue): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  if (isObject(value)) return "map[string]interface {}";
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  return typeof value === "boolean" ? "bool" : "string";
}
