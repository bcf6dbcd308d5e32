import { quote, type Diagnostic } from "../../diagnostic.js";
import type { DependentSpec } from "../../input/workflow-spec.js";
import { ruleOfController } from "../resolved-project.js";

/** A kind of dependents, and what makes no sense for them. */
interface Exclusion {
  /** Returns what the dependent is, for people; undefined if it is not of the kind. */
  readonly what: (spec: DependentSpec) => string | undefined;
  readonly options: readonly (keyof DependentSpec)[];
}

const EXCLUSIONS: readonly Exclusion[] = [
  {
    what: ({ external }) => (external === undefined ? undefined : "is no object of Kubernetes"),
    options: [
      ...(["mode", "namespace", "cluster", "eventSource", "labelSelector", "fieldSelector", "filters"] as const),
      ...(["garbageCollected", "onDelete", "existing", "serverSideApply", "fieldManager"] as const),
    ],
  },
  {
    what: ({ external }) => {
      if (external?.capabilities === undefined || external.capabilities.includes("update")) return undefined;
      return "is never updated: its capabilities lack update";
    },
    options: ["matcher"],
  },
  {
    what: ({ mode }) => (mode === "readOnly" ? "is never written: its mode is readOnly" : undefined),
    options: ["garbageCollected", "onDelete", "existing", "serverSideApply", "fieldManager", "matcher"],
  },
  {
    what: ({ mode }) => (mode === "createOnly" ? "is never updated: its mode is createOnly" : undefined),
    options: ["matcher"],
  },
  {
    what: ({ eventSource }) =>
      eventSource === undefined ? undefined : `has no watch of its own: ${quote(eventSource)} is its event source`,
    options: ["labelSelector", "fieldSelector", "filters"],
  },
];

/** Finds options that have no effect together. */
export const checkDependentOption = ruleOfController(({ spec: { document }, dependents }) =>
  dependents.flatMap(({ name, spec, path }) => {
    const seen = new Set<string>();
    return EXCLUSIONS.flatMap(({ what, options }) => {
      const kind = what(spec);
      if (kind === undefined) return [];
      return options.flatMap((option): Diagnostic[] => {
        if (spec[option] === undefined || seen.has(option)) return [];
        seen.add(option);
        const message = `${quote(option)} has no effect: ${quote(name)} ${kind}`;
        const place = document.keyAt([...path, option]);
        return [{ severity: "error", rule: "dependent-option", message, ...place, hint: "remove it" }];
      });
    });
  }),
);
