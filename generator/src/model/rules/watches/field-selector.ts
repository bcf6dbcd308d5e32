import { didYouMean, quote, type Diagnostic } from "../../../diagnostic.js";
import type { YamlPath } from "../../../input/yaml/yaml-document.js";
import type { ResourceModel } from "../../project-model.js";
import { ruleOfController, type ResolvedController } from "../../build/resolved-project.js";

/**
 * Finds field selectors that no API server accepts: wrong texts, and fields that it does not select by.
 *
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/
 */
export const checkFieldSelector = ruleOfController((controller) => {
  const { spec, primary, dependents, eventSources } = controller;
  return [
    ...checkSelector(spec.controller.fieldSelector, ["spec", "controller"], { controller, resource: primary }),
    ...[...dependents, ...eventSources].flatMap((member) =>
      checkSelector(member.spec.fieldSelector, member.path, { controller, resource: member.resource }),
    ),
  ];
});

interface Selected {
  readonly controller: ResolvedController;
  readonly resource: ResourceModel | undefined;
}

function checkSelector(
  selector: string | undefined,
  owner: YamlPath,
  { controller, resource }: Selected,
): Diagnostic[] {
  const { document } = controller.spec;
  const path = [...owner, "fieldSelector"];
  return termsOf(selector ?? "").flatMap(({ text, offset }): Diagnostic[] => {
    const fail = (message: string, hint: string): Diagnostic[] => [
      {
        severity: "error",
        rule: "field-selector",
        message,
        ...document.valueAt(path),
        position: document.characterAt(path, offset),
        hint,
      },
    ];
    const term = TERM.exec(text);
    if (term === null)
      return fail(
        `${quote(text)} is no term of a field selector`,
        "write terms such as metadata.name=main, status.phase!=Running",
      );
    const field = term[1] ?? "";
    // By what it selects objects of a kind without a schema, nobody knows here.
    if (resource === undefined || resource.isUntyped === true || resource.selectableFields.includes(field)) return [];
    return fail(
      `the API server cannot select objects of kind ${resource.kind} by ${quote(field)}`,
      hintFor(field, resource),
    );
  });
}

// The first operator ends the field; in the value a backslash makes a comma, an equals sign or a backslash an ordinary character.
const TERM = /^([^=!,\\]+?)(?:==?|!=)((?:[^=,\\]|\\[=,\\])*)$/;

function hintFor(field: string, { selectableFields, isCustom }: ResourceModel): string {
  const listed = `it can select them by ${selectableFields.join(", ")}`;
  const advice = isCustom ? "; list others under selectableFields of the version in its CRD" : "";
  return didYouMean(field, selectableFields)?.hint ?? listed + advice;
}

/** Splits a selector at the commas that have no backslash; the API server passes over what is empty. */
function termsOf(selector: string): { text: string; offset: number }[] {
  return [...selector.matchAll(/(?:[^,\\]|\\[^])+/g)].map(({ 0: text, index }) => ({ text, offset: index }));
}
