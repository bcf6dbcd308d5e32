import { quote, type Diagnostic } from "../../../diagnostic.js";
import { formatKind } from "../../build/resource-catalog.js";
import { ruleOfController, type ResolvedController, type ResolvedDependent } from "../../build/resolved-project.js";
import { constantValueOf } from "../../expression/constant-value.js";

/** What a name of an object may consist of; some kinds allow more than a DNS name. */
const NAME = /^[-A-Za-z0-9._:]+$/;

/** Finds names of objects that no object has, and namespaces where there are none. */
export const checkReference = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent) => {
    if (dependent.spec.ref === undefined) return [];
    return [...checkNamespace(dependent, controller), ...checkConstants(dependent, controller)];
  }),
);

function checkNamespace(
  { name, spec: { ref }, path, resource }: ResolvedDependent,
  { spec: { document }, primary }: ResolvedController,
): Diagnostic[] {
  if (resource?.scope === "Cluster" && ref?.namespace !== undefined)
    return [
      {
        ...{ severity: "error", rule: "reference" },
        message: `${quote(name)} has no namespace: ${formatKind(resource)} is cluster-scoped`,
        ...document.keyAt([...path, "ref", "namespace"]),
        hint: "remove it",
      },
    ];
  if (resource?.scope !== "Namespaced" || primary?.scope !== "Cluster" || ref?.namespace !== undefined) return [];
  return [
    {
      ...{ severity: "error", rule: "reference" },
      message: `${quote(name)} lacks a namespace: ${primary.kind} is cluster-scoped, and ${formatKind(resource)} is not`,
      ...document.keyAt([...path, "ref"]),
      hint: "state it: ref: { name: …, namespace: primary.spec.namespace }",
    },
  ];
}

function checkConstants(
  { spec: { ref = { name: "" } }, path }: ResolvedDependent,
  { spec: { document } }: ResolvedController,
): Diagnostic[] {
  return (["name", "namespace"] as const).flatMap((part): Diagnostic[] => {
    const constant = constantValueOf(ref[part] ?? "primary");
    if (constant === undefined || (typeof constant.value === "string" && NAME.test(constant.value))) return [];
    const found = typeof constant.value === "string" ? quote(constant.value) : String(constant.value);
    const place = document.valueAt([...path, "ref", part]);
    const hint = "write an expression over primary, such as primary.spec.settings, or a text in quotes: \"'settings'\"";
    return [{ severity: "error", rule: "reference", message: `no object has the ${part} ${found}`, ...place, hint }];
  });
}
