import { quote, type Diagnostic } from "../../diagnostic.js";
import type { AcceptanceSpec, WorkflowSpec } from "../../input/workflow-spec.js";
import { extraSubjectOf } from "../rules/rights/powerful-right.js";

/** What can accept warnings about itself. */
interface Subject {
  readonly label: string;
  /** What the warnings state. */
  readonly about: string;
  readonly path: readonly (string | number)[];
  readonly accept: readonly AcceptanceSpec[];
}

/** Returns the diagnostics without those that their subjects accept, and a warning for each acceptance of nothing. */
export function acceptWarnings(diagnostics: readonly Diagnostic[], workflows: readonly WorkflowSpec[]): Diagnostic[] {
  const unused: Diagnostic[] = [];
  const accepted = new Set<Diagnostic>();
  for (const { document, ...spec } of workflows)
    for (const { label, about, path, accept } of subjectsIn(spec))
      for (const [index, { rule }] of accept.entries()) {
        const meant = diagnostics.filter((each) => each.rule === rule && each.about === about);
        for (const each of meant) accepted.add(each);
        if (meant.length > 0) continue;
        unused.push({
          severity: "warning",
          rule: "unused-acceptance",
          message: `${label} accepts the warning ${quote(rule)}, but no such warning is about it`,
          ...document.valueAt([...path, "accept", index, "rule"]),
          hint: "remove the entry of accept",
        });
      }
  return [...diagnostics.filter((each) => !accepted.has(each)), ...unused];
}

function subjectsIn({
  name: controller,
  dependents,
  eventSources,
  extraRules,
}: Omit<WorkflowSpec, "document">): Subject[] {
  const member = (kind: string, list: string) => {
    return ([name, { accept = [] }]: readonly [string, { readonly accept?: readonly AcceptanceSpec[] }]): Subject => ({
      ...{ label: `${kind} ${quote(name)}`, about: `${controller}/${name}`, path: ["spec", list, name], accept },
    });
  };
  return [
    ...[...dependents].map(member("dependent", "dependents")),
    ...[...eventSources].map(member("event source", "eventSources")),
    ...extraRules.map(({ accept = [] }, index) => ({
      label: `rule ${index + 1} of rbac.extra`,
      about: extraSubjectOf(controller, index),
      path: ["spec", "rbac", "extra", index],
      accept,
    })),
  ];
}
