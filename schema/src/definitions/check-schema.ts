// What the schema of a version may say, in the order in which kube-apiserver 1.36 looks at it.
import { forbiddenError, invalidError, type FieldError } from "./field-error.js";
import { stringAt } from "../json/json.js";
import { internalSchema, setFields } from "./go-structs.js";
import type { MetadataRules } from "./embedded-resource.js";
import type { StructuralSchema } from "./structural-schema.js";
import { checkDefaults } from "./check-defaults.js";
import { checkOpenApi } from "./open-api-schema.js";
import { checkExpressions } from "./validation-rules.js";
import { checkStructure, conversionOf } from "./check-structure.js";

const STATUS_TEXT =
  'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
const ROOT_FIELDS =
  "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations";

/** Checks the schema of a version. */
export function checkVersionSchema(
  schema: StructuralSchema,
  { path, hasStatus, metadata }: { path: string; hasStatus: boolean; metadata: MetadataRules },
): FieldError[] {
  const ofNull =
    schema["nullable"] === true ? [forbiddenError(`${path}.nullable`, "nullable cannot be true at the root")] : [];
  const ofRoot = [...(hasStatus ? checkRoot(schema, path) : []), ...ofNull];
  const conversion = conversionOf(schema);
  const ofStructure = conversion.isPossible ? checkStructure(schema, path) : [];
  // Values are only looked at where there is a structure, and expressions only where the values are right.
  const isStructural = conversion.isPossible && ofStructure.length === 0;
  const ofDefaults = isStructural ? checkDefaults(schema, path, metadata) : [];
  const ofSchema = checkOpenApi(schema, { path, isRoot: true });
  const ofRules = isStructural && ofDefaults.length === 0 ? checkExpressions(schema, { path, errors: ofSchema }) : [];
  const errors = [...ofRoot, ...ofStructure, ...ofDefaults, ...ofSchema, ...ofRules];
  const isUnexplained = errors.length === 0 && conversion.problem !== undefined;
  return isUnexplained ? [invalidError(path, "", conversion.problem!)] : errors;
}

// The schema of the status stands alone for requests that write the status, so nothing around it may say anything of it.
function checkRoot(schema: StructuralSchema, path: string): FieldError[] {
  const fields = setFields(schema);
  const type = stringAt(schema, "type") ?? "";
  const odd = fields.find(
    (field) => !ROOT_FIELDS.split(" ").includes(field) || (field === "Type" && type !== "object"),
  );
  if (odd === undefined) return [];
  if (odd === "Type") return [invalidError(`${path}.type`, type, STATUS_TEXT)];
  const text = `only [${ROOT_FIELDS}] fields are allowed at the root of the schema if the status subresource is enabled`;
  return [invalidError(path, internalSchema(schema), text)];
}
