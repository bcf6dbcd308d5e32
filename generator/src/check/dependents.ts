import { type Diagnostic, didYouMean, quote } from "../diagnostic.js";
import type { ResourceModel } from "../model/project-model.js";
import {
  type ResolvedController,
  type ResolvedDependent,
  type ResolvedEventSource,
  checkOfController,
  formatKind,
  isDeletedByOperator,
  subjectOf,
} from "../model/resolved-project.js";
import { type FieldAt, fieldAt, stateFieldOf } from "../model/schema.js";
import { EXTERNAL_TYPE } from "../read/rules.js";
import type { DependentSpec } from "../read/workflow-spec.js";
import type { YamlDocument, YamlPath } from "../read/yaml/yaml-document.js";
import {
  CLEANUP_POLICY,
  DEPENDENT_OPTION,
  DEPENDENT_SOURCE,
  EXTERNAL_STATE,
  IMMUTABLE_KIND,
  RELEASED_FIELD,
} from "./rules.js";

/** A class of dependents, and the options that have no effect for them. */
interface Exclusion {
  /** Returns whether a dependent is in the class. */
  readonly includes: (spec: DependentSpec) => boolean;
  /** Completes the name of an option, for example "cannot be combined with ref". */
  readonly problem: string;
  /** Completes the name of a dependent with the reason. */
  readonly because: string;
  readonly options: readonly (keyof DependentSpec)[];
  /** Hints by option. Default: to remove the option */
  readonly hints?: { readonly [option in keyof DependentSpec]?: string };
}

const EXCLUSIONS: readonly Exclusion[] = [
  {
    includes: ({ ref }) => ref !== undefined,
    problem: "cannot be combined with ref",
    because: "is the single object that ref names",
    options: ["bulk", "itemsDependOn", "namespace", "eventSource"],
    hints: {
      namespace: "set ref.namespace to an expression: ref: { name: …, namespace: … }",
      bulk: "remove bulk; for several objects, use mode: readOnly with an event source instead of ref",
    },
  },
  {
    includes: ({ ref }) => ref !== undefined,
    problem: "cannot be combined with ref",
    because: "is always read-only",
    options: [
      ...(["mode", "deletion", "deletePostcondition", "existing", "onImmutable", "serverSideApply"] as const),
      ...(["fieldManager", "released", "matcher", "operations"] as const),
    ],
  },
  {
    includes: ({ external }) => external !== undefined,
    problem: "cannot be combined with external",
    because: "is not a Kubernetes object",
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
    includes: ({ external }) => external?.capabilities?.includes("update") === false,
    problem: "requires update in capabilities",
    because: "is never updated",
    options: ["matcher"],
  },
  {
    includes: ({ mode }) => mode === "readOnly",
    problem: "cannot be combined with mode: readOnly",
    because: "is never written",
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
    includes: ({ mode }) => mode === "createOnly",
    problem: "cannot be combined with mode: createOnly",
    because: "is never updated",
    options: ["matcher", "released", "onImmutable"],
  },
  {
    includes: ({ mode }) => mode === "once",
    problem: "cannot be combined with mode: once",
    because: "is never updated",
    options: ["matcher", "released", "onImmutable"],
  },
  {
    includes: ({ mode }) => mode !== "once",
    problem: "requires mode: once",
    because: "is created again whenever its object is not found",
    options: ["again"],
    hints: { again: "set mode: once, or remove again" },
  },
  {
    includes: ({ operations }) => operations?.update === false,
    problem: "cannot be combined with operations.update: false",
    because: "is never updated",
    options: ["matcher", "onImmutable"],
  },
  {
    includes: ({ operations }) => operations?.delete === false,
    problem: "cannot be combined with operations.delete: false",
    because: "is never deleted",
    options: ["deletePostcondition", "onImmutable"],
  },
  {
    includes: ({ deletion }) => deletion === "orphan",
    problem: "cannot be combined with deletion: orphan",
    because: "is never deleted",
    options: ["onImmutable"],
  },
  {
    includes: ({ operations }) => operations?.create === false,
    problem: "cannot be combined with operations.create: false",
    because: "is created by another client",
    options: ["onImmutable"],
  },
  {
    includes: ({ operations }) => operations?.delete === "own",
    problem: "cannot be combined with operations.delete: own",
    because: "is deleted by your function",
    options: ["onImmutable"],
    hints: { onImmutable: "remove onImmutable; your update function can delete the object when next() fails" },
  },
  {
    includes: ({ eventSource }) => eventSource !== undefined,
    problem: "cannot be combined with eventSource",
    because: "has no watch of its own",
    options: ["labelSelector", "fieldSelector", "filters"],
  },
];

/** Reports options that have no effect in combination with other options. */
export const checkDependentOption = checkOfController(
  ({ spec: { document, dependents: stated }, dependents, primary }) =>
    dependents.flatMap((dependent) => {
      const { name, path } = dependent;
      const spec = stated.get(name) ?? dependent.spec;
      const seen = new Set<string>();
      return EXCLUSIONS.flatMap(({ includes, problem, because, options, hints }) => {
        if (!includes(spec)) return [];
        return options.flatMap((option): Diagnostic[] => {
          if (spec[option] === undefined || seen.has(option)) return [];
          seen.add(option);
          const message = `${option} ${problem}: dependent ${quote(name)} ${because}`;
          const place = document.keyAt([...path, option]);
          return [
            {
              ...DEPENDENT_OPTION.violation,
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

/** Reports `mode: once` for cluster-scoped primaries, where no ConfigMap can record the creation. */
function checkOnce({ name, spec: { mode }, path }: ResolvedDependent, document: YamlDocument): Diagnostic[] {
  if (mode !== "once") return [];
  const message = `mode: once of dependent ${quote(name)} requires a namespaced primary: the creation is recorded in a ConfigMap in its namespace`;
  const hint = "use mode: createOnly or onImmutable: recreate";
  return [{ ...DEPENDENT_OPTION.violation, message, ...document.keyAt([...path, "mode"]), hint }];
}

/** Reports options of operations that are never executed, and dependents for which no operation remains. */
function checkOperations(
  { name, spec: { mode, again, deletion, operations = {}, external }, path }: ResolvedDependent,
  document: YamlDocument,
): Diagnostic[] {
  const fail = (message: string, at: YamlPath, hint: string): Diagnostic => ({
    ...{ ...DEPENDENT_OPTION.violation, message, hint },
    ...document.keyAt([...path, ...at]),
  });
  if (external?.onDeleteFailure !== undefined && external.capabilities?.includes("delete") === false)
    return [
      fail(
        `onDeleteFailure requires delete in capabilities: dependent ${quote(name)} is never deleted`,
        ["external", "onDeleteFailure"],
        "remove onDeleteFailure",
      ),
    ];
  if (mode === "readOnly") return [];
  if (deletion === "orphan" && operations.delete === false)
    return [
      fail(
        `deletion: orphan cannot be combined with operations.delete: false: dependent ${quote(name)} is never deleted`,
        ["deletion"],
        "remove deletion or operations.delete",
      ),
    ];
  if (operations.create === false && (operations.update === false || mode === "createOnly"))
    return [
      fail(
        `the operator neither creates nor updates dependent ${quote(name)}`,
        ["operations"],
        "set mode: readOnly if another client creates the object",
      ),
    ];
  if (mode === "once" && operations.create === false)
    return [
      fail(
        `mode: once cannot be combined with operations.create: false: dependent ${quote(name)} is created by another client`,
        ["mode"],
        "remove mode or operations.create",
      ),
    ];
  if (again !== undefined && (deletion === "orphan" || operations.delete !== undefined)) {
    const other = deletion === "orphan" ? "deletion: orphan" : "operations.delete";
    return [
      fail(
        `again cannot be combined with ${other}: the operator does not delete the object of dependent ${quote(name)} before it creates the next one`,
        ["again"],
        `remove again or ${other}`,
      ),
    ];
  }
  if ((mode !== "createOnly" && mode !== "once") || operations.update === undefined) return [];
  const message = `operations.update cannot be combined with mode: ${mode}: dependent ${quote(name)} is never updated`;
  return [fail(message, ["operations", "update"], "remove operations.update")];
}

/** Reports dependents whose event source does not cache their objects, and read-only dependents without an event source. */
export const checkDependentSource = checkOfController((controller) => [
  ...controller.dependents.flatMap((dependent) => checkSource(dependent, controller)),
  ...checkShared(controller),
]);

function checkSource(dependent: ResolvedDependent, controller: ResolvedController): Diagnostic[] {
  const { name, spec, path } = dependent;
  const { document } = controller.spec;
  const named = spec.external === undefined ? spec.eventSource : spec.external.eventSource;
  if (named === undefined) {
    if (spec.mode !== "readOnly" || spec.ref !== undefined) return [];
    return [
      fail(
        `dependent ${quote(name)} is read-only, but no event source maps its objects to a primary`,
        document.valueAt([...path, "mode"]),
        "set eventSource, or ref if the primary names the object",
      ),
    ];
  }
  const at = [...path, ...(spec.external === undefined ? [] : ["external"]), "eventSource"];
  const source = controller.eventSources.find((other) => other.name === named);
  if (source === undefined) {
    const names = controller.eventSources.map((other) => other.name);
    const listed =
      names.length === 0 ? "add it to eventSources" : `known event sources: ${names.map(quote).join(", ")}`;
    const hint = didYouMean(named, names)?.hint ?? listed;
    return [
      fail(
        `event source ${quote(named)} not found in controller ${quote(controller.spec.name)}`,
        document.valueAt(at),
        hint,
      ),
    ];
  }
  const problem = problemOf(dependent, source);
  return problem === undefined ? [] : [fail(problem.message, document.valueAt(at), problem.hint)];
}

function problemOf(
  { name, spec, resource }: ResolvedDependent,
  source: ResolvedEventSource,
): { readonly message: string; readonly hint: string } | undefined {
  const { cache, maxCachedObjects } = source.spec;
  if (spec.external !== undefined) {
    if (source.spec.resource === undefined) return undefined;
    return {
      message: `event source ${quote(source.name)} watches a Kubernetes kind, but dependent ${quote(name)} is external`,
      hint: "use resource: instead of external:, or an event source with poll, perPrimaryPoll or inbound",
    };
  }
  if (source.resource !== resource)
    return {
      message: `event source ${quote(source.name)} ${source.resource === undefined ? "watches no kind" : `watches ${formatKind(source.resource)}`}, but dependent ${quote(name)} is ${resource === undefined ? "of another kind" : `a ${formatKind(resource)}`}`,
      hint: "use an event source of the same kind",
    };
  if (spec.cluster !== undefined)
    return {
      message: `event source ${quote(source.name)} watches the cluster of the operator, but dependent ${quote(name)} is in cluster ${quote(spec.cluster)}`,
      hint: "remove eventSource or cluster",
    };
  if ((cache !== undefined && cache !== "full") || maxCachedObjects !== undefined)
    return {
      message: `event source ${quote(source.name)} must cache all objects in full: dependent ${quote(name)} compares them with its desired objects`,
      hint: `remove ${cache === undefined || cache === "full" ? "maxCachedObjects" : "cache"} of the event source`,
    };
  return undefined;
}

// The shared watch would have to follow several activation conditions at once.
function checkShared({ spec: { document }, dependents }: ResolvedController): Diagnostic[] {
  const first = new Map<string, string>();
  return dependents.flatMap(({ name, spec: { eventSource, activationCondition }, path }) => {
    if (eventSource === undefined || activationCondition === undefined) return [];
    const other = first.get(eventSource);
    if (other === undefined) {
      first.set(eventSource, name);
      return [];
    }
    const at: YamlPath = [...path, "eventSource"];
    return [
      fail(
        `dependents ${quote(name)} and ${quote(other)} share event source ${quote(eventSource)}, but each has its own activationCondition`,
        document.valueAt(at),
        "remove eventSource from one of them, so that it has its own watch",
      ),
    ];
  });
}

function fail(message: string, place: object, hint: string): Diagnostic {
  return { ...DEPENDENT_SOURCE.violation, message, ...place, hint };
}

/** Reports dependents whose cleanup reads the primary, in a controller that cleans up after its primaries are deleted. */
export const checkCleanupPolicy = checkOfController((controller) => {
  if (controller.spec.controller.cleanupPolicy !== "sweep") return [];
  return controller.dependents.flatMap((dependent): Diagnostic[] => {
    const needs = neededBy(dependent.spec);
    if (needs === undefined) return [];
    return [
      {
        ...CLEANUP_POLICY.violation,
        message: `${needs.what} of dependent ${quote(dependent.name)} cannot be combined with cleanupPolicy: sweep: the primary no longer exists when its objects are cleaned up`,
        about: subjectOf(controller, dependent),
        ...controller.spec.document.valueAt(["spec", "dependents", dependent.name, ...needs.path]),
        hint: `remove cleanupPolicy: sweep, or ${needs.remedy}`,
      },
    ];
  });
});

interface Needed {
  readonly what: string;
  readonly path: readonly string[];
  readonly remedy: string;
}

function neededBy(spec: DependentSpec): Needed | undefined {
  if (spec.heldForCleanup === true)
    return { what: "heldForCleanup", path: ["heldForCleanup"], remedy: "remove heldForCleanup" };
  if (spec.operations?.delete === "own")
    return { what: "operations.delete", path: ["operations", "delete"], remedy: "remove operations.delete" };
  return spec.external !== undefined && isDeletedByOperator(spec)
    ? { what: "delete", path: ["external"], remedy: "remove delete from capabilities of the dependent" }
    : undefined;
}

/** Kinds for which nearly every change of the desired object concerns an immutable field. Pods are not listed because their image is mutable. */
const IMMUTABLE_KINDS: ReadonlyMap<string, string> = new Map([["batch/Job", "template"]]);

/** Kinds whose deletion loses data, or deletes all objects that they contain. */
const DATA_KINDS: ReadonlySet<string> = new Set([
  "/Namespace",
  "/PersistentVolume",
  "/PersistentVolumeClaim",
  "apiextensions.k8s.io/CustomResourceDefinition",
  "snapshot.storage.k8s.io/VolumeSnapshot",
  "snapshot.storage.k8s.io/VolumeSnapshotContent",
]);

type Kind = Pick<ResourceModel, "group" | "kind">;

/** Returns whether the API server rejects nearly every update of an object of the kind. */
export function isImmutableKind({ group, kind }: Kind): boolean {
  return IMMUTABLE_KINDS.has(`${group}/${kind}`);
}

/** Reports dependents of immutable kinds without a setting for updates, and `onImmutable: recreate` on kinds whose deletion loses data. */
export const checkImmutableKind = checkOfController((controller) =>
  controller.dependents.flatMap((dependent): Diagnostic[] => {
    const { name, spec, path, resource } = dependent;
    const { document } = controller.spec;
    if (resource === undefined || spec.external !== undefined) return [];
    const { group, kind } = resource;
    if (spec.onImmutable === "recreate" && DATA_KINDS.has(`${group}/${kind}`))
      return [
        {
          severity: "error",
          ...IMMUTABLE_KIND.violation,
          message: `onImmutable: recreate is forbidden for a ${kind}: deleting dependent ${quote(name)} to create it again loses data`,
          ...document.keyAt([...path, "onImmutable"]),
          hint: "remove onImmutable",
        },
      ];
    const isChanged = (spec.mode ?? "managed") === "managed" && spec.operations?.update === undefined;
    const part = IMMUTABLE_KINDS.get(`${group}/${kind}`);
    if (part === undefined || !isChanged || spec.ref !== undefined || spec.onImmutable !== undefined) return [];
    return [
      {
        severity: "warning",
        ...IMMUTABLE_KIND.violation,
        message: `dependent ${quote(name)} is a managed ${kind}, whose ${part} is immutable: when desired() changes it, the API server rejects the update of every existing ${kind}`,
        about: subjectOf(controller, dependent),
        ...document.keyAt(path),
        hint: `set mode: once to run it once for each primary, onImmutable: recreate to delete it and create it again, or onImmutable: fail to report the error`,
      },
    ];
  }),
);

/** Reports released fields that are not in the schema of the kind. */
export const checkReleasedField = checkOfController(({ spec: { document }, dependents }) =>
  dependents.flatMap(({ resource, spec: { released = [] }, path }) =>
    released.flatMap((text, index): Diagnostic[] => {
      const found = resource === undefined ? undefined : fieldAt(resource, text.split("."));
      if (found?.kind !== "unknown") return [];
      const before = text.split(".").slice(0, found.depth);
      const candidates = found.known.map((name) => [...before, name].join("."));
      const message = `${resource!.kind} has no field ${quote(text)} that can be released`;
      const hint = didYouMean(text, candidates)?.hint ?? "use a path of fields; an item of a list has no path";
      return [{ ...RELEASED_FIELD.violation, message, hint, ...document.valueAt([...path, "released", index]) }];
    }),
  ),
);

/** Reports types of external resources that are unusable or set twice, and desired types that cannot be compared with the live type. */
export const checkExternalType = checkOfController((controller) =>
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
    { ...EXTERNAL_TYPE.violation, message, ...place, hint },
  ];
  if (type !== undefined && schema !== undefined)
    return fail(`type and schema of dependent ${quote(name)} cannot be combined`, "remove type or schema");
  if (eventSource !== undefined)
    return fail(
      `${type === undefined ? "schema" : "type"} cannot be combined with eventSource: dependent ${quote(name)} has the type of event source ${quote(eventSource)}`,
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
    { ...EXTERNAL_TYPE.violation, message, ...document.keyAt(at), hint },
  ];
  if (!capabilities.includes("create") && !capabilities.includes("update"))
    return fail(
      `desiredType requires create or update in capabilities: dependent ${quote(name)} is never written`,
      "remove desiredType",
    );
  if (capabilities.includes("update") && matcher === undefined)
    return fail(
      `desiredType of dependent ${quote(name)} requires a matcher: the runtime cannot compare a desired resource with a live one of another type`,
      "set matcher: { function: NAME }, a function that returns whether a live resource matches the desired one",
    );
  const place = document.valueAt(at);
  return (desiredFile?.problems ?? []).map((problem) => ({ ...problem, ...place }));
}

type Said = Pick<Diagnostic, "message" | "hint">;

const MORE = "properties: { id: { type: string }, … } to store more than an id";
const TEXT_HINT = `set type: string on the field, or ${MORE}`;
const MAP_HINT = `set type: object on the field, with additionalProperties: { type: string }, or with ${MORE} for each item`;

/** Reports ids of external resources whose storage cannot hold them, and stored ids of resources that the operator does not create. */
export const checkExternalState = checkOfController((controller) =>
  controller.dependents.flatMap((dependent) => {
    const { external } = dependent.spec;
    if (external?.state === undefined) return [];
    const { document } = controller.spec;
    const at = [...dependent.path, "external", "state"];
    const fail = (said: Said | undefined, place: object): Diagnostic[] =>
      said === undefined ? [] : [{ ...EXTERNAL_STATE.violation, ...said, ...place }];
    if (external.capabilities?.includes("create") === false)
      return fail(
        {
          message: `state requires create in capabilities: the operator never creates dependent ${quote(dependent.name)}`,
          hint: "remove state, or add create to capabilities",
        },
        document.keyAt(at),
      );
    const { status, in: store, resource, path, perItem, type } = external.state;
    const place = perItem === undefined ? undefined : document.keyAt([...at, "perItem"]);
    const pointless = {
      message: `perItem requires a bulk dependent: dependent ${quote(dependent.name)} has no items`,
      hint: "remove perItem",
    };
    if (place !== undefined && (dependent.spec.bulk === undefined || status !== undefined))
      return fail(
        status === undefined
          ? pointless
          : {
              ...pointless,
              message: "perItem cannot be combined with status: the status stores the ids of all items together",
            },
        place,
      );
    if (type !== undefined) {
      const owner = status === undefined ? resource : controller.primary?.kind;
      const needless = {
        message: `type has no effect: the schema of ${owner} defines the type of the field that stores the id`,
        hint: `remove type; on the field, set ${MORE}`,
      };
      if (status !== undefined || resource !== undefined) return fail(needless, document.keyAt([...at, "type"]));
      const typePlace = document.valueAt([...at, "type"]);
      const [problem] = dependent.stateFile?.problems ?? [];
      if (problem !== undefined) return fail(problem, typePlace);
    }
    if (status !== undefined) {
      const problem = problemOfStatus(status, dependent, controller) ?? problemOfOthers(status, dependent, controller);
      return fail(problem, document.valueAt([...at, "status"]));
    }
    if (resource === undefined) {
      return fail(
        problemOfPlace(controller, store === "secret" ? "Secret" : "ConfigMap"),
        document.keyAt([...at, "in"]),
      );
    }
    if (path === undefined)
      return fail(
        {
          message: `state.path is required: it names the field of ${resource} that stores the id`,
          hint: "set path to a field, such as spec.id",
        },
        document.keyAt(at),
      );
    return fail(problemOfResource(path, dependent, controller), document.valueAt([...at, "path"]));
  }),
);

function problemOfPlace(
  { primary }: ResolvedController,
  kind: string,
  scope: ResourceModel["scope"] = "Namespaced",
): Said | undefined {
  if (primary === undefined || primary.scope === scope) return undefined;
  const isNamespaced = scope === "Namespaced";
  return {
    message: `ids of a ${primary.kind} cannot be stored in a ${kind}: ${kind} is ${isNamespaced ? "namespaced, but the primary is cluster-scoped" : "cluster-scoped, but the primary is namespaced"}`,
    hint: "store the ids in the status: state: { status: ... }",
  };
}

function problemOfResource(
  text: string,
  dependent: ResolvedDependent,
  controller: ResolvedController,
): Said | undefined {
  const kept = stateFieldOf(dependent, controller.primary);
  // The unknown-kind rule reports an unknown kind.
  if (kept === undefined) return undefined;
  const { field: found, keeps, isMap } = kept;
  const { kind, scope } = kept.resource;
  const elsewhere = problemOfPlace(controller, kind, scope);
  if (elsewhere !== undefined) return elsewhere;
  if (found.kind === "unknown") {
    const hint =
      didYouMean(text.split(".").at(-1) ?? "", found.known)?.hint ?? `known fields: ${found.known.join(", ")}`;
    return { message: `the schema of ${kind} has no ${quote(text)}, so the API server would drop the id`, hint };
  }
  if (keeps !== undefined) return undefined;
  return {
    message: `field ${quote(text)} of ${kind} cannot store the ${isMap ? `ids of dependent ${quote(dependent.name)}: must be an object of strings, by the keys of the items` : `id of dependent ${quote(dependent.name)}: must be a string`}`,
    hint: isMap ? MAP_HINT : TEXT_HINT,
  };
}

function problemOfStatus(
  text: string,
  dependent: ResolvedDependent,
  { primary }: ResolvedController,
): Said | undefined {
  // The unknown-kind rule reports an unknown kind.
  if (primary === undefined) return undefined;
  if (!primary.hasStatusSubresource)
    return {
      message: `the status of ${primary.kind} cannot store ids: its CRD has no status subresource`,
      hint: "add subresources: { status: {} } to the CRD, or store the ids in a ConfigMap: state: { in: configMap }",
    };
  const kept = stateFieldOf(dependent, primary);
  if (kept === undefined || kept.keeps !== undefined) return undefined;
  if (kept.field.kind === "unknown") return unknownField(text, kept.field, primary.kind);
  const { isMap } = kept;
  const name = quote(dependent.name);
  const what = isMap
    ? `ids of dependent ${name}: must be an object of strings, by the keys of the items`
    : `id of dependent ${name}: must be a string`;
  return {
    message: `field ${quote(`status.${text}`)} of ${primary.kind} cannot store the ${what}`,
    hint: isMap ? MAP_HINT : TEXT_HINT,
  };
}

function problemOfOthers(
  text: string,
  { name }: ResolvedDependent,
  { dependents }: ResolvedController,
): Said | undefined {
  const other = dependents.find(({ spec: { external } }) => external?.state?.status === text);
  if (other === undefined || other.name === name) return undefined;
  return {
    message: `dependents ${quote(name)} and ${quote(other.name)} would store their ids in the same field ${quote(`status.${text}`)}`,
    hint: "use a separate field for each dependent",
  };
}

function unknownField(text: string, found: Extract<FieldAt, { kind: "unknown" }>, kind: string): Said {
  const names = text.split(".");
  // The path in the schema starts with "status".
  const before = names.slice(0, Math.max(0, found.depth - 1));
  const candidates = found.known.map((name) => [...before, name].join("."));
  if (found.depth === 0)
    return {
      message: `the schema of ${kind} has no status`,
      hint: "add it to the schema, or store the ids in a ConfigMap",
    };
  const listed = candidates.length > 0 ? `known fields: ${candidates.join(", ")}` : "add it to the schema";
  const hint = didYouMean(text, candidates)?.hint ?? listed;
  return {
    message: `the schema of ${kind} has no ${quote(`status.${text}`)}, so the API server would drop the id`,
    hint,
  };
}
