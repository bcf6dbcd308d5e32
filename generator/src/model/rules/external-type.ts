import { quote, type Diagnostic } from "../../diagnostic.js";
import { ruleOfController, type ResolvedController, type ResolvedDependent } from "../resolved-project.js";

/** Finds types of external resources that are not there, or are said twice. */
export const checkExternalType = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent) => checkType(dependent, controller)),
);

function checkType(
  { name, spec, path, file }: ResolvedDependent,
  { spec: { document } }: ResolvedController,
): readonly Diagnostic[] {
  const { type, schema, eventSource } = spec.external ?? {};
  if (type === undefined && schema === undefined) return [];
  const place = document.valueAt([...path, "external", type === undefined ? "schema" : "type"]);
  const fail = (message: string, hint: string): Diagnostic[] => [
    { severity: "error", rule: "external-type", message, ...place, hint },
  ];
  if (type !== undefined && schema !== undefined)
    return fail(`the type of ${quote(name)} is stated twice`, "remove type or schema");
  if (eventSource !== undefined)
    return fail(`${quote(name)} has the type of its event source ${quote(eventSource)}`, "remove it");
  return (file?.problems ?? []).map((problem) => (problem.position === undefined ? { ...problem, ...place } : problem));
}
