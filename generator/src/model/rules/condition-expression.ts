import type { Diagnostic } from "../../diagnostic.js";
import type { ParseExpression } from "../expression/expression.js";
import type { YamlPath } from "../../input/yaml/yaml-document.js";
import {
  filtersOf,
  ruleOfController,
  type ResolvedController,
  type ResolvedProject,
  type Rule,
} from "../build/resolved-project.js";
import { conditionsOf } from "../build/stated-condition.js";

/** Finds texts of `when:` that are not one harmless expression. */
export function checkConditionExpression(parse: ParseExpression): Rule {
  return ruleOfController((controller) =>
    expressionsOf(controller).flatMap(({ when, path }): Diagnostic[] => {
      const parsed = parse(when);
      if (parsed.kind !== "problem") return [];
      const { document } = controller.spec;
      const position = document.characterAt(path, parsed.offset);
      return [{ severity: "error", rule: "when-syntax", message: parsed.message, ...document.valueAt(path), position }];
    }),
  );
}

/** Tells whether any condition or filter of a project is an expression. */
export function hasExpressions({ controllers }: ResolvedProject): boolean {
  return controllers.some((controller) => expressionsOf(controller).length > 0);
}

function expressionsOf(controller: ResolvedController): { readonly when: string; readonly path: YamlPath }[] {
  return [
    ...controller.dependents
      .flatMap(conditionsOf)
      .flatMap(({ condition, path }) => (condition.kind === "when" ? [{ when: condition.expression, path }] : [])),
    ...filtersOf(controller).flatMap(({ filter: { when }, path }) =>
      when === undefined ? [] : [{ when, path: [...path, "when"] }],
    ),
  ];
}
