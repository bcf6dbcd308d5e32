import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { ParseExpression } from "../../expression/expression.js";
import type { YamlDocument, YamlPath } from "../../../input/yaml/yaml-document.js";
import type { ConditionName, ExpressionName } from "../../project-model.js";
import {
  filtersOf,
  ruleOfController,
  type ResolvedController,
  type ResolvedDependent,
  type Rule,
} from "../../build/resolved-project.js";
import { conditionsOf } from "../../build/stated-condition.js";

/** Finds texts of `when:` that are not one harmless expression, or use a name that has no meaning in their place. */
export function checkConditionExpression(parse: ParseExpression): Rule {
  return ruleOfController((controller) => [
    ...filtersOf(controller).flatMap(({ filter: { when }, path }) => {
      if (when === undefined) return [];
      const place = { path: [...path, "when"], document: controller.spec.document };
      const parsed = parse(when);
      return parsed.kind === "problem" ? [syntaxError(parsed, place)] : [];
    }),
    ...controller.dependents.flatMap((dependent) => checkReference(dependent, controller, parse)),
    ...controller.dependents.flatMap((dependent) =>
      conditionsOf(dependent).flatMap(({ name, condition, path }): Diagnostic[] => {
        if (condition.kind !== "when") return [];
        const place = { path, document: controller.spec.document };
        const parsed = parse(condition.expression);
        if (parsed.kind === "problem") return [syntaxError(parsed, place)];
        return parsed.offsets.flatMap(([used, offset]) => {
          const said = misuseOf(used, name, dependent);
          return said === undefined ? [] : [diagnosticOf({ rule: "when-name", ...said }, offset, place)];
        });
      }),
    ),
  ]);
}

function checkReference(
  { name, spec: { again, ref }, path }: ResolvedDependent,
  { spec: { document } }: ResolvedController,
  parse: ParseExpression,
): Diagnostic[] {
  const stated = { name: ref?.name, namespace: ref?.namespace, again };
  return Object.entries(stated).flatMap(([part, text]) => {
    if (text === undefined) return [];
    const place = { path: [...path, ...(part === "again" ? [] : ["ref"]), part], document };
    const parsed = parse(text);
    if (parsed.kind === "problem") return [syntaxError(parsed, place)];
    return [...parsed.offsets].flatMap(([used, offset]) => {
      if (used === "primary") return [];
      const message = `${part === "again" ? "again" : "the ref"} of ${quote(name)} sees primary alone, and not ${used}`;
      const hint =
        part === "again"
          ? "use a field of the primary that users change to run it again"
          : "an index leads from an object to the primaries that name it, and that looks at nothing else";
      return [diagnosticOf({ rule: "when-name", message, hint }, offset, place)];
    });
  });
}

interface ExpressionPlace {
  readonly path: YamlPath;
  readonly document: YamlDocument;
}

function syntaxError({ message, offset }: { message: string; offset: number }, place: ExpressionPlace): Diagnostic {
  return diagnosticOf({ rule: "when-syntax", message }, offset, place);
}

function diagnosticOf(
  said: Pick<Diagnostic, "rule" | "message" | "hint">,
  offset: number,
  { path, document }: ExpressionPlace,
): Diagnostic {
  const position = document.characterAt(path, offset);
  return { severity: "error", ...said, ...document.valueAt(path), position };
}

/** Says why a name has no meaning in a condition; undefined if it has one. */
function misuseOf(used: ExpressionName, condition: ConditionName, { name, spec }: ResolvedDependent) {
  if (used !== "live" && used !== "item") return undefined;
  const isOfItem = ["readyPostcondition", "deletePostcondition", "existing"].includes(condition);
  if (spec.bulk === undefined && used === "item")
    return {
      message: `${quote(name)} is not a bulk dependent, so it has no items`,
      hint: "remove item from the expression, or state bulk: true",
    };
  if (spec.bulk !== undefined && !isOfItem)
    return {
      message: `the ${condition} of a bulk dependent is asked once for all items, so it sees no ${used === "live" ? "live object" : used}`,
      hint: `use secondary.${name}, which has the live items by their keys`,
    };
  if (condition === "activationCondition")
    return {
      message: `${quote(name)} is not watched before its activationCondition holds, so the condition sees no live object`,
      hint: "use a reconcilePrecondition, which sees live",
    };
  return undefined;
}
