// What the schema of a version may say, in the order in which kube-apiserver 1.36 looks at it.
import { invalidError, type FieldError } from "../../errors/field-error.js";
import { stringAt } from "../../json.js";
import type { StructuralSchema } from "../schema/structural.js";
import { checkDefaults } from "./check-defaults.js";
import { checkOpenApi } from "./check-open-api.js";
import { checkExpressions } from "./check-rules.js";
import { checkStructure, conversionOf } from "./check-structure.js";

/** Checks the schema of a version. */
export function checkVersionSchema(
  schema: StructuralSchema,
  { path, hasStatus }: { path: string; hasStatus: boolean },
): FieldError[] {
  const type = stringAt(schema, "type") ?? "";
  const statusText =
    'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
  const ofStatus = hasStatus && type !== "object" ? [invalidError(`${path}.type`, type, statusText)] : [];
  const conversion = conversionOf(schema);
  const ofStructure = conversion.isPossible ? checkStructure(schema, path) : [];
  // Values are only looked at where there is a structure, and expressions only where the values are right.
  const isStructural = conversion.isPossible && ofStructure.length === 0;
  const ofDefaults = isStructural ? checkDefaults(schema, path) : [];
  const ofSchema = checkOpenApi(schema, { path, isRoot: true });
  const ofRules = isStructural && ofDefaults.length === 0 ? checkExpressions(schema, { path, errors: ofSchema }) : [];
  const errors = [...ofStatus, ...ofStructure, ...ofDefaults, ...ofSchema, ...ofRules];
  const isUnexplained = errors.length === 0 && conversion.problem !== undefined;
  return isUnexplained ? [invalidError(path, "", conversion.problem!)] : errors;
}
