// Inside anyOf, oneOf, allOf and not a schema may constrain values but not declare anything.
import { forbiddenError, requiredError, type FieldError } from "./field-error.js";
import { deepEqual, isJsonObject, memberOf, type JsonObject } from "../json/json.js";
import { itemSchema, propertiesOf, type StructuralSchema } from "./structural-schema.js";

const DECLARING = [
  ["default", "undefined"],
  ["additionalProperties", "undefined"],
  ["description", "empty"],
  ["nullable", "false"],
  ["title", "empty"],
  ["type", "empty"],
  ["x-kubernetes-preserve-unknown-fields", "false"],
  ["x-kubernetes-embedded-resource", "false"],
  ["x-kubernetes-int-or-string", "false"],
  ["x-kubernetes-list-type", "undefined"],
  ["x-kubernetes-list-map-keys", "undefined"],
  ["x-kubernetes-map-type", "undefined"],
  ["x-kubernetes-validations", "empty"],
] as const;
const INTEGER_AND_STRING = [{ type: "integer" }, { type: "string" }];

/** A schema inside a junctor, with its path. */
export interface Branch {
  schema: JsonObject;
  path: string;
}

/** Checks that the junctors of a node declare nothing. */
export function checkJunctorSchemas(schema: StructuralSchema, path: string): FieldError[] {
  // The one way to declare an integer or string that older tools understand.
  const isIntOrString = schema["x-kubernetes-int-or-string"] === true;
  return branchesOf(schema, path).flatMap((branch) => {
    if (
      isIntOrString &&
      branch.path.startsWith(`${path}.anyOf`) &&
      deepEqual(schema["anyOf"] ?? null, INTEGER_AND_STRING)
    ) {
      return [];
    }
    if (
      isIntOrString &&
      branch.path === `${path}.allOf[0]` &&
      deepEqual(branch.schema["anyOf"] ?? null, INTEGER_AND_STRING)
    ) {
      return [];
    }
    return checkBranch(branch);
  });
}

/** Lists every schema inside the junctors of a node, however deep. */
export function schemasInJunctors(schema: StructuralSchema, path: string): Branch[] {
  const below = (branch: Branch): Branch[] => [branch, ...innerOf(branch).flatMap(below)];
  return branchesOf(schema, path).flatMap(below);
}

/** Checks that fields which junctors at the root constrain are declared outside of them. */
export function checkCompleteness(schema: StructuralSchema, path: string): FieldError[] {
  return branchesOf(schema, path).flatMap((branch) => missingIn({ schema, path }, branch));
}

function checkBranch({ schema, path }: Branch): FieldError[] {
  const own = DECLARING.flatMap(([member, wanted]) => {
    const value = memberOf(schema, member);
    const isSet = value !== undefined && value !== "" && value !== false;
    return isSet ? [forbiddenError(`${path}.${member}`, `must be ${wanted} to be structural`)] : [];
  });
  const ofMetadata = memberOf(propertiesOf(schema), "metadata") === undefined ? [] : [`${path}.properties[metadata]`];
  return [
    ...own,
    ...ofMetadata.map((field) => forbiddenError(field, "must not be specified in a nested context")),
    ...innerOf({ schema, path }).flatMap(checkBranch),
  ];
}

function missingIn(outer: Branch, branch: Branch): FieldError[] {
  const declared = propertiesOf(outer.schema);
  const inProperties = Object.entries(propertiesOf(branch.schema)).flatMap(([name, property]) => {
    const at = { schema: isJsonObject(property) ? property : {}, path: `${branch.path}.properties[${name}]` };
    const field = `${outer.path}.properties[${name}]`;
    const own = memberOf(declared, name);
    if (!isJsonObject(own)) return [requiredError(field, `because it is defined in ${at.path}`)];
    return missingIn({ schema: own, path: field }, at);
  });
  const nested = branchesOf(branch.schema, branch.path).flatMap((inner) => missingIn(outer, inner));
  return [...inProperties, ...nested];
}

function innerOf({ schema, path }: Branch): Branch[] {
  const items = itemSchema(schema);
  return [
    ...Object.entries(propertiesOf(schema)).flatMap(([name, property]) =>
      isJsonObject(property) ? [{ schema: property, path: `${path}.properties[${name}]` }] : [],
    ),
    ...(items === undefined ? [] : [{ schema: items, path: `${path}.items` }]),
    ...branchesOf(schema, path),
  ];
}

function branchesOf(schema: StructuralSchema, path: string): Branch[] {
  const listed = (["allOf", "anyOf", "oneOf"] as const).flatMap((junctor) => {
    const branches = memberOf(schema, junctor);
    return (Array.isArray(branches) ? branches : []).flatMap((branch, index) =>
      isJsonObject(branch) ? [{ schema: branch, path: `${path}.${junctor}[${index}]` }] : [],
    );
  });
  const not = memberOf(schema, "not");
  return isJsonObject(not) ? [...listed, { schema: not, path: `${path}.not` }] : listed;
}
