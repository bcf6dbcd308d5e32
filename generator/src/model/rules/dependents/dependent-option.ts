import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { YamlDocument, YamlPath } from "../../../input/yaml/yaml-document.js";
import type { DependentSpec } from "../../../input/workflow-spec.js";
import { ruleOfController, type ResolvedDependent } from "../../build/resolved-project.js";

/** A kind of dependents, and what makes no sense for them. */
interface Exclusion {
  /** Returns what the dependent is, for people; undefined if it is not of the kind. */
  readonly what: (spec: DependentSpec) => string | undefined;
  readonly options: readonly (keyof DependentSpec)[];
  /** What to do about an option. Default: to remove it */
  readonly hints?: { readonly [option in keyof DependentSpec]?: string };
}

const EXCLUSIONS: readonly Exclusion[] = [
  {
    what: ({ ref }) => (ref === undefined ? undefined : "is one object that somebody else makes, which ref names"),
    options: [
      ...(["mode", "bulk", "itemsDependOn", "namespace", "eventSource", "deletion", "deletePostcondition"] as const),
      ...(["existing", "onImmutable", "serverSideApply", "fieldManager", "released", "matcher", "operations"] as const),
    ],
    hints: {
      namespace: "state it as an expression: ref: { name: …, namespace: … }",
      bulk: "remove bulk; of any number of objects an event source knows which are whose",
    },
  },
  {
    what: ({ external }) => (external === undefined ? undefined : "is no object of Kubernetes"),
    options: [
      ...(["ref", "mode", "namespace", "cluster", "eventSource", "labelSelector", "fieldSelector", "filters"] as const),
      ...([
        "deletion",
        "existing",
        "heldForCleanup",
        "onImmutable",
        "serverSideApply",
        "fieldManager",
        "released",
        "operations",
      ] as const),
    ],
  },
  {
    what: ({ external }) => {
      if (external?.capabilities === undefined || external.capabilities.includes("update")) return undefined;
      return "is never updated, as its capabilities lack update";
    },
    options: ["matcher"],
  },
  {
    what: ({ mode }) => (mode === "readOnly" ? "is never written, as its mode is readOnly" : undefined),
    options: [
      "deletion",
      "existing",
      "onImmutable",
      "serverSideApply",
      "fieldManager",
      "released",
      "matcher",
      "operations",
    ],
  },
  {
    what: ({ mode }) => (mode === "createOnly" ? "is never updated, as its mode is createOnly" : undefined),
    options: ["matcher", "released", "onImmutable"],
  },
  {
    what: ({ mode }) => (mode === "once" ? "is never updated, as its mode is once" : undefined),
    options: ["matcher", "released", "onImmutable"],
  },
  {
    what: ({ mode }) => (mode === "once" ? undefined : "may be created again at any time, as its mode is not once"),
    options: ["again"],
    hints: { again: "set mode: once, or remove again" },
  },
  {
    what: ({ operations }) =>
      operations?.update === false ? "is never updated, as operations.update is false" : undefined,
    options: ["matcher", "onImmutable"],
  },
  {
    what: ({ operations }) =>
      operations?.delete === false ? "is never deleted, as operations.delete is false" : undefined,
    options: ["deletePostcondition", "onImmutable"],
  },
  {
    what: ({ deletion }) => (deletion === "orphan" ? "is never deleted, as its deletion is orphan" : undefined),
    options: ["onImmutable"],
  },
  {
    what: ({ operations }) =>
      operations?.create === false ? "is created by another client, as operations.create is false" : undefined,
    options: ["onImmutable"],
  },
  {
    what: ({ operations }) => (operations?.delete === "own" ? "is deleted by its own delete function" : undefined),
    options: ["onImmutable"],
    hints: { onImmutable: "remove onImmutable; the own update function can delete the object when next() fails" },
  },
  {
    what: ({ eventSource }) =>
      eventSource === undefined
        ? undefined
        : `has no watch of its own, as event source ${quote(eventSource)} watches for it`,
    options: ["labelSelector", "fieldSelector", "filters"],
  },
];

/** Finds options that have no effect together. */
export const checkDependentOption = ruleOfController(
  ({ spec: { document, dependents: stated }, dependents, primary }) =>
    dependents.flatMap((dependent) => {
      const { name, path } = dependent;
      const spec = stated.get(name) ?? dependent.spec;
      const seen = new Set<string>();
      return EXCLUSIONS.flatMap(({ what, options, hints }) => {
        const kind = what(spec);
        if (kind === undefined) return [];
        return options.flatMap((option): Diagnostic[] => {
          if (spec[option] === undefined || seen.has(option)) return [];
          seen.add(option);
          const message = `${quote(option)} has no effect: dependent ${quote(name)} ${kind}`;
          const place = document.keyAt([...path, option]);
          return [
            {
              severity: "error",
              rule: "dependent-option",
              message,
              ...place,
              hint: hints?.[option] ?? `remove ${option}`,
            },
          ];
        });
      })
        .concat(checkOperations(dependent, document))
        .concat(primary?.scope === "Cluster" ? checkOnce(dependent, document) : []);
    }),
);

/** Finds objects that are created once where nothing can be remembered. */
function checkOnce({ name, spec: { mode }, path }: ResolvedDependent, document: YamlDocument): Diagnostic[] {
  if (mode !== "once") return [];
  const message = `dependent ${quote(name)} cannot be created once: that is remembered in a ConfigMap beside the primary, which is in no namespace`;
  const hint = "use mode: createOnly, or onImmutable: recreate";
  return [{ severity: "error", rule: "dependent-option", message, ...document.keyAt([...path, "mode"]), hint }];
}

/** Finds options of operations that never happen, and dependents of which nothing is left to do. */
function checkOperations(
  { name, spec: { mode, again, deletion, operations = {}, external }, path }: ResolvedDependent,
  document: YamlDocument,
): Diagnostic[] {
  const fail = (message: string, at: YamlPath, hint: string): Diagnostic => ({
    ...{ severity: "error", rule: "dependent-option", message, hint },
    ...document.keyAt([...path, ...at]),
  });
  if (external?.onDeleteFailure !== undefined && external.capabilities?.includes("delete") === false)
    return [
      fail(
        `"onDeleteFailure" has no effect: dependent ${quote(name)} is never deleted, as its capabilities lack delete`,
        ["external", "onDeleteFailure"],
        "remove onDeleteFailure",
      ),
    ];
  if (mode === "readOnly") return [];
  if (deletion === "orphan" && operations.delete === false)
    return [
      fail(
        `"deletion: orphan" has no effect: dependent ${quote(name)} is never deleted, as operations.delete is false`,
        ["deletion"],
        "remove deletion or operations.delete",
      ),
    ];
  if (operations.create === false && (operations.update === false || mode === "createOnly"))
    return [
      fail(
        `the operator neither creates nor updates dependent ${quote(name)}`,
        ["operations"],
        "state mode: readOnly if somebody else creates its object",
      ),
    ];
  if (mode === "once" && operations.create === false)
    return [
      fail(
        `dependent ${quote(name)} cannot be created once: another client creates it, as operations.create is false`,
        ["mode"],
        "remove mode or operations.create",
      ),
    ];
  if (again !== undefined && (deletion === "orphan" || operations.delete !== undefined))
    return [
      fail(
        `dependent ${quote(name)} cannot be created again: the operator does not delete the object before`,
        ["again"],
        "remove again, deletion: orphan or operations.delete",
      ),
    ];
  if ((mode !== "createOnly" && mode !== "once") || operations.update === undefined) return [];
  const message = `"update" has no effect: dependent ${quote(name)} is never updated, as its mode is ${mode}`;
  return [fail(message, ["operations", "update"], "remove operations.update")];
}
