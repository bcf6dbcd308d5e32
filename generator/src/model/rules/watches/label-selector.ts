import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { YamlPath } from "../../../input/yaml/yaml-document.js";
import { ruleOfController, type ResolvedController } from "../../build/resolved-project.js";

const KEY = String.raw`(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`;
const VALUE = String.raw`(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?`;

// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors, and ">" and "<", which the parser has, too.
const REQUIREMENT = new RegExp(
  String.raw`^\s*(?:!\s*${KEY}|${KEY}(?:\s*(?:==?|!=)\s*${VALUE}|\s*[<>]\s*-?[0-9]+|\s+(?:in|notin)\s*\(\s*${VALUE}(?:\s*,\s*${VALUE})*\s*\))?)\s*$`,
);

const LABEL_KEY = new RegExp(`^${KEY}$`);

/** Tells whether a text can be the key of a label. */
export function isLabelKey(text: string): boolean {
  return LABEL_KEY.test(text);
}

/** Finds label selectors that no API server accepts. */
export const checkLabelSelector = ruleOfController((controller) => {
  const { spec, dependents, eventSources } = controller;
  return [
    ...checkSelector(spec.controller.labelSelector, ["spec", "controller", "labelSelector"], controller),
    ...[...dependents, ...eventSources].flatMap((member) =>
      checkSelector(member.spec.labelSelector, [...member.path, "labelSelector"], controller),
    ),
  ];
});

function checkSelector(selector = "", path: YamlPath, { spec: { document } }: ResolvedController): Diagnostic[] {
  if (selector === "") return [];
  return requirementsOf(selector).flatMap(({ text, offset }): Diagnostic[] => {
    if (REQUIREMENT.test(text)) return [];
    return [
      {
        severity: "error",
        rule: "label-selector",
        message: `${quote(text.trim())} is no requirement of a label selector`,
        ...document.valueAt(path),
        position: document.characterAt(path, offset + (text.length - text.trimStart().length)),
        hint: "write requirements such as app=web, tier!=cache, zone in (a, b), zone notin (c), app or !app",
      },
    ];
  });
}

/** Splits a selector at the commas that are not in parentheses. */
function requirementsOf(selector: string): { text: string; offset: number }[] {
  return [...selector.matchAll(/(?<=^|,)(?:\([^)]*\)|[^,(])*(?:\([^)]*$)?(?=,|$)/g)].map(({ 0: text, index }) => ({
    text,
    offset: index,
  }));
}
