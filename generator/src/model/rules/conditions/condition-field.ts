import { didYouMean, quote, type Diagnostic } from "../../../diagnostic.js";
import type { FieldEqualsSpec } from "../../../input/workflow-spec.js";
import type { Place, YamlPath } from "../../../input/yaml/yaml-document.js";
import type { RawSchema, ResourceModel } from "../../project-model.js";
import { isIntOrString } from "../../schema/raw-schema.js";
import { ruleOfController, type ResolvedController } from "../../build/resolved-project.js";
import { conditionsOf, placeOfCondition, type LocatedCondition } from "../../build/stated-condition.js";
import { fieldAt } from "../../schema/schema-path.js";

/** Finds built-in conditions about fields that the kind does not have, or about values that a field never has. */
export const checkConditionField = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent) => {
    const { resource } = dependent;
    // What is external has no schema here.
    if (resource === undefined) return [];
    return conditionsOf(dependent).flatMap((located) => {
      const { condition, path } = located;
      if (condition.kind !== "builtin") return [];
      if (condition.name === "condition") return checkConditions(located, { resource, controller });
      return condition.name === "fieldEquals" ? checkField(condition.field, path, { resource, controller }) : [];
    });
  }),
);

type Said = Pick<Diagnostic, "message" | "hint">;

interface Subject {
  readonly resource: ResourceModel;
  readonly controller: ResolvedController;
}

function checkConditions(located: LocatedCondition, { resource, controller }: Subject): Diagnostic[] {
  const { kind } = fieldAt(resource, ["status", "conditions"]);
  if (kind === "list" || kind === "any") return [];
  const message = `${resource.kind} has no status.conditions`;
  const hint = "state fieldEquals:, when: or function: instead";
  return [diagnosticOf({ message, hint }, placeOfCondition(located, controller.spec.document))];
}

function checkField(field: FieldEqualsSpec, path: YamlPath, { resource, controller }: Subject): Diagnostic[] {
  const { path: text } = field;
  const { document } = controller.spec;
  const fail = (said: Said, name: keyof FieldEqualsSpec) => diagnosticOf(said, document.valueAt([...path, name]));
  const found = fieldAt(resource, text.split("."));
  if (found.kind === "unknown") {
    const before = text.split(".").slice(0, found.depth);
    const candidates = found.known.map((name) => [...before, name].join("."));
    const message =
      found.reason === "whole"
        ? `field ${quote(before.join("."))} of ${resource.kind} has no fields that the schema names`
        : `${resource.kind} has no field ${quote(text)}`;
    const listed =
      candidates.length > 0 ? `known fields: ${candidates.join(", ")}` : "state when: or function: instead";
    const hint = didYouMean(text, candidates)?.hint ?? listed;
    return [fail({ message, hint }, "path")];
  }
  if (found.kind === "object" || found.kind === "list" || found.kind === "map") {
    const isMetadata = text.startsWith("metadata.");
    if (isMetadata) return [];
    const message = `field ${quote(text)} is ${found.kind === "object" ? "an object" : `a ${found.kind}`}, and fieldEquals compares a single value`;
    const hint = "state a field inside of it, or use when: or function:";
    return [fail({ message, hint }, "path")];
  }
  return checkValue(field, found.schema ?? {}).map((said) => fail(said, "value"));
}

function checkValue({ path, value }: FieldEqualsSpec, schema: RawSchema): Said[] {
  const allowed = schema["enum"];
  if (Array.isArray(allowed) && !allowed.includes(value)) {
    const texts = allowed.map(String);
    const hint =
      didYouMean(String(value), texts)?.hint ??
      `state one of ${allowed.map((each) => JSON.stringify(each)).join(", ")}`;
    return [{ message: `field ${quote(path)} is never ${describe(value)}`, hint }];
  }
  const type = schema["type"];
  const expected = isIntOrString(schema) ? undefined : type === "integer" ? "number" : type;
  if (typeof expected !== "string" || typeof value === expected) return [];
  return [{ message: `field ${quote(path)} is of type ${String(type)}, so it is never ${describe(value)}` }];
}

function describe(value: unknown): string {
  return typeof value === "string" ? quote(value) : String(value);
}

function diagnosticOf({ message, hint }: Said, place: Place): Diagnostic {
  return { severity: "error", rule: "condition-field", message, ...place, ...(hint === undefined ? {} : { hint }) };
}
