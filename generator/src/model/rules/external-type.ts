import { quote, type Diagnostic } from "../../diagnostic.js";
import { ruleOfController, type ResolvedController, type ResolvedDependent } from "../resolved-project.js";

/** Finds types of external resources that are not there, or are said twice, and types of what is desired that cannot be compared with them. */
export const checkExternalType = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent) => [
    ...checkType(dependent, controller),
    ...checkDesiredType(dependent, controller),
  ]),
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

function checkDesiredType(
  { name, spec: { external, matcher }, path, desiredFile }: ResolvedDependent,
  { spec: { document } }: ResolvedController,
): readonly Diagnostic[] {
  if (external?.desiredType === undefined) return [];
  const at = [...path, "external", "desiredType"];
  const { capabilities = ["create", "update", "delete"] } = external;
  const fail = (message: string, hint: string): Diagnostic[] => [
    { severity: "error", rule: "external-type", message, ...document.keyAt(at), hint },
  ];
  if (!capabilities.includes("create") && !capabilities.includes("update"))
    return fail(`nothing is desired of ${quote(name)}: its capabilities lack create and update`, "remove desiredType");
  if (capabilities.includes("update") && matcher === undefined)
    return fail(
      `what is desired of ${quote(name)} is of another type than what is live, so that the two are never equal`,
      "say when a resource is as desired: matcher: { function: ... }",
    );
  const place = document.valueAt(at);
  return (desiredFile?.problems ?? []).map((problem) => ({ ...problem, ...place }));
}
