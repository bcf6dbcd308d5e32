import { quote, type Diagnostic } from "../../../diagnostic.js";
import { ruleOfController } from "../../build/resolved-project.js";

/**
 * Finds mappings that can never lead to a primary.
 *
 * An owner reference has no namespace: it means the one of the object that has it, and a cluster-scoped object has none.
 */
export const checkMappingScope = ruleOfController(({ spec: { document }, primary, eventSources }) =>
  eventSources.flatMap(({ name, spec, path, resource }): Diagnostic[] => {
    if (primary?.scope !== "Namespaced" || resource?.scope !== "Cluster") return [];
    const { mapping = "ownerReference", primaryToSecondary } = spec;
    if (spec.mapping === undefined && primaryToSecondary !== undefined) return [];
    const scopes = `${resource.kind} is cluster-scoped, and the primary ${primary.kind} is namespaced`;
    const fail = (message: string, field: string, hint: string): Diagnostic[] => [
      { severity: "error", rule: "mapping-scope", message, ...document.valueAt([...path, field]), hint },
    ];
    if (mapping === "ownerReference")
      return fail(
        `owner references cannot lead from event source ${quote(name)} to a primary: ${scopes}`,
        spec.mapping === undefined ? "resource" : "mapping",
        "state mapping: with label, annotation or function, or primaryToSecondary: with a function",
      );
    const keys = mapping.label ?? mapping.annotation;
    if (keys === undefined || keys.namespace !== undefined) return [];
    return fail(
      `a name alone cannot lead from event source ${quote(name)} to a primary: ${scopes}`,
      "mapping",
      "state namespace: with the key that holds the namespace of the primary",
    );
  }),
);
