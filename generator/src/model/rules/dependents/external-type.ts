import { quote, type Diagnostic } from "../../../diagnostic.js";
import { ruleOfController, type ResolvedController, type ResolvedDependent } from "../../build/resolved-project.js";

/** Finds types of external resources that are missing or stated twice, and desired types that cannot be compared with them. */
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
    return fail(`dependent ${quote(name)} states both type and schema`, "remove type or schema");
  if (eventSource !== undefined)
    return fail(
      `dependent ${quote(name)} has the type of its event source ${quote(eventSource)}, so a type of its own has no effect`,
      `remove ${type === undefined ? "schema" : "type"}`,
    );
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
    return fail(
      `"desiredType" has no effect: the capabilities of dependent ${quote(name)} lack create and update`,
      "remove desiredType",
    );
  if (capabilities.includes("update") && matcher === undefined)
    return fail(
      `dependent ${quote(name)} has desiredType, and the runtime cannot compare a desired resource with a live one of another type`,
      "state matcher: { function: NAME }, a function that tells whether a live resource is as desired",
    );
  const place = document.valueAt(at);
  return (desiredFile?.problems ?? []).map((problem) => ({ ...problem, ...place }));
}
