import { duplicateError, invalidError, requiredError, tooManyError, type FieldError } from "./field-error.js";
import { isJsonObject, memberOf, stringAt, type JsonObject, type JsonValue } from "../json/json.js";
import { propertiesOf, type StructuralSchema } from "./structural-schema.js";

const COLUMN_TYPES = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const SELECTABLE_TYPES = ["string", "boolean", "integer"];
const MAX_SELECTABLE = 8;
// Of what separates words Go prints the plain blank alone.
const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/u;
const SIMPLE_PATH = "must be a simple json path starting with .";

/** Checks what those are told who use a version that is to be used no more. */
export function checkDeprecation(version: JsonObject, path: string): FieldError[] {
  const { deprecationWarning: warning } = version;
  if (typeof warning !== "string") return [];
  const field = `${path}.deprecationWarning`;
  if (version["deprecated"] !== true) return [invalidError(field, warning, "can only be set for deprecated versions")];
  const problems: string[] = [];
  if (Buffer.byteLength(warning) > 256) problems.push("must be <= 256 characters long");
  if (warning === "") problems.push("must not be an empty string");
  const odd = UNPRINTABLE.exec(warning);
  if (odd !== null) {
    const at = Buffer.byteLength(warning.slice(0, odd.index));
    problems.push(`must only contain printable UTF-8 characters; non-printable character found at index ${at}`);
  }
  return problems.map((problem) => invalidError(field, warning, problem));
}

/** Checks the paths of a scale subresource. */
export function checkScale(scale: JsonObject, path: string): FieldError[] {
  const label = stringAt(scale, "labelSelectorPath") ?? "";
  const under = (roots: string[], text: string): ((value: string) => string | undefined) => {
    return (value) => (roots.some((root) => value.startsWith(`${root}.`)) ? undefined : text);
  };
  const specReplicas = under([".spec"], "should be a json path under .spec");
  const statusReplicas = under([".status"], "should be a json path under .status");
  const selector = under([".spec", ".status"], "should be a json path under either .spec or .status");
  return [
    ...checkPath(`${path}.specReplicasPath`, stringAt(scale, "specReplicasPath") ?? "", specReplicas),
    ...checkPath(`${path}.statusReplicasPath`, stringAt(scale, "statusReplicasPath") ?? "", statusReplicas),
    ...(label === "" ? [] : checkPath(`${path}.labelSelectorPath`, label, selector)),
  ];
}

/** Checks the columns that kubectl prints. */
export function checkColumns(columns: readonly JsonObject[], path: string): FieldError[] {
  return columns.flatMap((column, index) => {
    const at = `${path}[${index}]`;
    const [type, format] = [stringAt(column, "type") ?? "", stringAt(column, "format") ?? ""];
    const errors: FieldError[] = [];
    if (!stringAt(column, "name")) errors.push(requiredError(`${at}.name`));
    if (type === "") errors.push(requiredError(`${at}.type`, `must be one of ${COLUMN_TYPES.join(",")}`));
    else if (!COLUMN_TYPES.includes(type)) {
      errors.push(invalidError(`${at}.type`, type, `must be one of ${COLUMN_TYPES.join(",")}`));
    }
    if (format !== "" && !COLUMN_FORMATS.includes(format)) {
      errors.push(invalidError(`${at}.format`, format, `must be one of ${COLUMN_FORMATS.join(",")}`));
    }
    return [...errors, ...checkPath(`${at}.JSONPath`, stringAt(column, "jsonPath") ?? "", () => undefined)];
  });
}

/** Checks the fields by which lists may be selected. */
export function checkSelectableFields(
  fields: readonly JsonObject[],
  { schema, path }: { schema: StructuralSchema; path: string },
): FieldError[] {
  const seen = new Set<string>();
  const selectable = new Set<string>();
  const errors = fields.flatMap((given, index) => {
    const field = `${path}[${index}].jsonPath`;
    const jsonPath = stringAt(given, "jsonPath") ?? "";
    if (jsonPath === "") return [requiredError(field)];
    const target = schemaAt(schema, jsonPath.split(".").slice(1));
    const odd = oddPathProblem(jsonPath) ?? (target === undefined ? "does not refer to a valid field" : undefined);
    if (odd !== undefined) return [invalidError(field, jsonPath, `is an invalid path: ${odd}`)];
    const taken = seen.has(jsonPath) ? [duplicateError(field, jsonPath)] : [];
    seen.add(jsonPath);
    const isOfMetadata = jsonPath.split(".")[1] === "metadata";
    const text =
      "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
    const isSelectable = SELECTABLE_TYPES.includes(stringAt(target, "type") ?? "");
    selectable.add(jsonPath);
    return [
      ...(isOfMetadata ? [invalidError(field, jsonPath, "must not point to fields in metadata")] : []),
      ...(isSelectable ? [] : [invalidError(field, jsonPath, text)]),
      ...taken,
    ];
  });
  const { size } = selectable;
  return size > MAX_SELECTABLE ? [tooManyError(path, size, MAX_SELECTABLE), ...errors] : errors;
}

function oddPathProblem(path: string): string | undefined {
  if (!/^[.[]/.test(path)) return `expected [ or . but got: ${path.split(/[.[\]]/)[0]}`;
  if (/[[\]]/.test(path)) return "array notation is not allowed";
  return path.endsWith(".") ? "unexpected end of JSON path" : undefined;
}

function schemaAt(schema: StructuralSchema, names: readonly string[]): StructuralSchema | undefined {
  let at: StructuralSchema | undefined = schema;
  for (const name of names) {
    const next: JsonValue | undefined = memberOf(propertiesOf(at), name) ?? memberOf(at, "additionalProperties");
    if (!isJsonObject(next)) return undefined;
    at = next;
  }
  return at;
}

function checkPath(field: string, path: string, problemOf: (path: string) => string | undefined): FieldError[] {
  if (path === "") return [requiredError(field)];
  const problem = path.startsWith(".") ? problemOf(path) : SIMPLE_PATH;
  return problem === undefined ? [] : [invalidError(field, path, problem)];
}
