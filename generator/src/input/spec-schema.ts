import type { ErrorObject } from "ajv";
import { didYouMean, quote, type Diagnostic } from "../diagnostic.js";
import { hintForKey, hintForWord } from "./condition-hints.js";
import { replaceOldSpellings } from "./old-spellings.js";
import { describeValue } from "./yaml/describe-value.js";
import { loadSpecValidator } from "./spec-validator.js";
import type { YamlDocument, YamlPath } from "./yaml/yaml-document.js";

/** Checks a document against the published JSON Schema of workflow specs. */
export type CheckSpec = (document: YamlDocument) => Diagnostic[];

/** The rules that exclude a value as a whole, so that one of them says all. */
const VALUE_RULES: ReadonlySet<string> = new Set(["maxLength", "maximum", "minLength", "minimum", "pattern"]);

let loaded: Promise<CheckSpec> | undefined;

/** Loads the JSON Schema and what checks with it, once. */
export function loadSpecSchema(): Promise<CheckSpec> {
  return (loaded ??= compileSpecSchema());
}

async function compileSpecSchema(): Promise<CheckSpec> {
  const validate = await loadSpecValidator();
  return (document) => {
    const { value, diagnostics, pathInText } = replaceOldSpellings(document);
    if (validate(value)) return [...diagnostics];
    const errors = (validate.errors ?? []).filter(isTelling);
    const mistyped = new Set(
      errors.filter(({ keyword }) => keyword === "type").map(({ instancePath }) => instancePath),
    );
    const written: YamlDocument = {
      ...document,
      value,
      valueAt: (path) => document.valueAt(pathInText(path)),
      keyAt: (path) => document.keyAt(pathInText(path)),
    };
    return [
      ...diagnostics,
      ...errors
        .filter(isFirst)
        .filter(({ keyword, instancePath }) => keyword !== "oneOf" || !mistyped.has(instancePath))
        // What is wrong inside of it says more than that no alternative matches.
        .filter(({ keyword, instancePath }) => keyword !== "oneOf" || !isAround(instancePath, errors))
        .map((error) => diagnosticOf(error, written)),
    ];
  };
}

// What is inside an alternative only repeats that none of them matches; the same goes for names.
function isTelling({ schemaPath, keyword }: ErrorObject): boolean {
  return keyword !== "propertyNames" && keyword !== "if" && !/\/oneOf\/\d/.test(schemaPath);
}

// A value that several rules exclude is one mistake where they expect the same.
function isFirst(error: ErrorObject, index: number, errors: readonly ErrorObject[]): boolean {
  const isSame = ({ instancePath, propertyName, parentSchema }: ErrorObject) =>
    instancePath === error.instancePath && propertyName === error.propertyName && parentSchema === error.parentSchema;
  return (
    !VALUE_RULES.has(error.keyword) ||
    errors.findIndex((each) => VALUE_RULES.has(each.keyword) && isSame(each)) === index
  );
}

function isAround(pointer: string, errors: readonly ErrorObject[]): boolean {
  return errors.some(
    ({ instancePath, keyword }) =>
      instancePath.startsWith(`${pointer}/`) || (instancePath === pointer && keyword === "additionalProperties"),
  );
}

function diagnosticOf(error: ErrorObject, document: YamlDocument): Diagnostic {
  const path = pathOf(error.instancePath, document.value);
  const fail = (rule: string, message: string, place: YamlPath = path): Diagnostic => ({
    severity: "error",
    rule,
    message,
    ...document.valueAt(place),
  });
  const params = error.params as { [name: string]: unknown };
  // The name of a field is at fault, not its value.
  if (error.propertyName !== undefined && error.keyword !== "additionalProperties")
    return {
      ...fail("spec-name", `expected ${expectedOf(error)}, found ${quote(error.propertyName)}`),
      ...document.keyAt([...path, error.propertyName]),
    };
  switch (error.keyword) {
    case "additionalProperties":
      return unknownField(error, path, document);
    case "required":
      return fail("spec-required", `${nameOf(path)} lacks ${quote(String(params["missingProperty"]))}`);
    case "dependencies":
      return {
        ...fail(
          "spec-value",
          `${quote(String(params["property"]))} has no effect without ${quote(String(params["deps"]))}`,
        ),
        ...document.keyAt([...path, String(params["property"])]),
      };
    case "uniqueItems":
      return fail("spec-value", `the same value is listed twice`, [
        ...path,
        Math.max(Number(params["i"]), Number(params["j"])),
      ]);
    case "type":
      return fail("spec-type", `expected ${expectedOf(error)}, found ${describeValue(error.data)}`);
    case "enum":
    case "const": {
      const values = [params["allowedValues"] ?? params["allowedValue"]].flat();
      // A text that looks like a boolean is told from it by its quotes, and no hint leads there.
      const allowed = values.filter((value) => typeof value === "string");
      const hint =
        hintForWord(path, error.data) ?? (typeof error.data === "string" ? didYouMean(error.data, allowed) : undefined);
      const expected = titleOf(error) ?? allowed.map(quote).join(" or ");
      return { ...fail("spec-value", `expected ${expected}, found ${describeValue(error.data)}`), ...hint };
    }
    default:
      return fail("spec-value", `expected ${expectedOf(error)}, found ${foundOf(error.data)}`);
  }
}

function unknownField(error: ErrorObject, path: YamlPath, document: YamlDocument): Diagnostic {
  const name = String((error.params as { additionalProperty: unknown }).additionalProperty);
  const known = Object.keys((error.parentSchema as { properties?: object }).properties ?? {});
  const hint = hintForKey(path, name, error.data as object) ??
    didYouMean(name, known) ?? {
      hint: known.length === 0 ? "it takes no fields" : `known fields: ${known.join(", ")}`,
    };
  return {
    severity: "error",
    rule: "unknown-field",
    message: `${nameOf(path)} has no field ${quote(name)}`,
    ...document.keyAt([...path, name]),
    ...hint,
  };
}

function expectedOf(error: ErrorObject): string {
  return titleOf(error) ?? "another value";
}

function titleOf({ parentSchema }: ErrorObject): string | undefined {
  return (parentSchema as { title?: string }).title;
}

function foundOf(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return describeValue(value);
  const fields = Object.keys(value);
  return fields.length === 0 ? "an empty object" : fields.map(quote).join(" and ");
}

function nameOf(path: YamlPath): string {
  const last = path.at(-1);
  return last === undefined ? "the workflow" : typeof last === "number" ? `item ${last}` : quote(last);
}

// A JSON pointer does not tell an index from a name.
function pathOf(pointer: string, root: unknown): YamlPath {
  const path: (string | number)[] = [];
  let value = root;
  for (const token of pointer.split("/").slice(1)) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    const step = Array.isArray(value) ? Number(name) : name;
    path.push(step);
    value = (value as { [step: string]: unknown } | undefined)?.[step];
  }
  return path;
}
