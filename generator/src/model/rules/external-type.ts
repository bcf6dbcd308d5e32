import { quote, type Diagnostic } from "../../diagnostic.js";
import { checkSchema } from "../../input/check-schema.js";
import { partsOfType } from "../../input/read-external-files.js";
import { isRecord } from "../raw-schema.js";
import { ruleOfController, type ResolvedController, type ResolvedDependent } from "../resolved-project.js";

/** Finds types of external resources that are not there, or are said twice. */
export const checkExternalType = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent) => checkType(dependent, controller)),
);

function checkType({ name, spec, path, file }: ResolvedDependent, { spec: { document } }: ResolvedController) {
  const { type, schema, eventSource } = spec.external ?? {};
  if (type === undefined && schema === undefined) return [];
  const at = [...path, "external", type === undefined ? "schema" : "type"];
  const fail = (message: string, hint?: string): Diagnostic[] => [
    {
      severity: "error",
      rule: "external-type",
      message,
      ...document.valueAt(at),
      ...(hint === undefined ? {} : { hint }),
    },
  ];
  if (type !== undefined && schema !== undefined)
    return fail(`the type of ${quote(name)} is stated twice`, "remove type or schema");
  if (eventSource !== undefined)
    return fail(`${quote(name)} has the type of its event source ${quote(eventSource)}`, "remove it");
  const [problem] = file?.problems ?? [];
  if (problem !== undefined) return fail(problem.message);
  if (type !== undefined) {
    const parts = partsOfType(type);
    if (exportsType(file?.text ?? "", parts.name)) return [];
    return fail(
      `${quote(parts.file)} exports no ${quote(parts.name)}`,
      `declare it: export interface ${parts.name} { … }`,
    );
  }
  const value = file?.document?.value;
  if (!isRecord(value) || value["type"] !== "object" || !isRecord(value["properties"]))
    return fail(
      `${quote(schema ?? "")} is no schema of an object with properties`,
      "state type: object and properties:",
    );
  return checkSchema(value).map(({ path: inside, message }): Diagnostic => ({
    severity: "error",
    rule: "external-type",
    message: message.replace("the schema of a CustomResourceDefinition", "the schema of an external resource"),
    ...file!.document!.valueAt(inside),
  }));
}

// What is generated imports it, so the compiler says what a search in the text misses.
function exportsType(text: string, name: string): boolean {
  const escaped = name.replaceAll("$", "\\$");
  const declared = new RegExp(
    String.raw`\bexport\s+(?:declare\s+)?(?:abstract\s+)?(?:interface|type|class|enum)\s+${escaped}(?![\w$])`,
  );
  const listed = new RegExp(String.raw`\bexport\s+(?:type\s+)?\{[^}]*(?<![\w$])${escaped}(?![\w$])[^}]*\}`);
  return declared.test(text) || listed.test(text) || /\bexport\s+(?:type\s+)?\*\s+from\b/.test(text);
}
