import { defineRule } from "../diagnostic.js";

export const ALL_EVENTS = defineRule({
  id: "all-events",
  severity: "error",
  page: {
    meaning: "`onAllEvents` gives deletions to the reconciler. Some settings exclude that.",
    remedy: "Remove `onAllEvents`, or the setting that the message names.",
    example: "all-events",
  },
});

export const BUILTIN_CONDITION = defineRule({
  id: "builtin-condition",
  severity: "error",
  page: {
    meaning:
      "A condition of the runtime, such as `ready`, is used where the runtime cannot evaluate it, or for an external dependent.",
    remedy: "Use one of the conditions that the message names, or `when:` or `function:`.",
    example: "builtin-condition",
  },
});

export const CACHE_PATH = defineRule({
  id: "cache-path",
  severity: "error",
  page: {
    meaning: "A path in the cache of an event source is not in the schema of its kind.",
    remedy: "Correct the path under `cache`.",
    example: "cache-path",
  },
});

export const CLEANUP_INPUT = defineRule({
  id: "cleanup-input",
  severity: "warning",
  acceptedBy: ["dependent"],
  page: {
    meaning:
      "Code that deletes a dependent may read an object that is already deleted. Foreground deletion of the primary (Argo CD's default) and deletion of the namespace delete garbage-collected objects, and objects of other clients, before the operator has cleaned up.",
    remedy:
      "Add `heldForCleanup: true` to the dependent whose object is needed: a finalizer keeps it. If the code does not need the object, accept the warning and give a reason.",
    example: "warning-cleanup-input",
  },
});

export const COLLIDING_NAME = defineRule({
  id: "colliding-name",
  severity: "error",
  page: {
    meaning: "Two names would become one file or one type.",
    remedy: "Rename one of the two.",
    example: "colliding-name",
  },
});

export const CONDITION_FIELD = defineRule({
  id: "condition-field",
  severity: "error",
  page: {
    meaning: "A condition is about a field that the kind does not have.",
    remedy: "Correct the path of the field.",
    example: "condition-field",
  },
});

export const CONDITIONAL_DEPENDENCY = defineRule({
  id: "conditional-dependency",
  severity: "warning",
  acceptedBy: ["dependent"],
  page: {
    meaning:
      "A dependent requires another one that is inactive for some primaries: its condition is false, or its `ref` is undefined. The operator then deletes the dependent.",
    remedy: "Make the edge optional: `{ name: settings, optional: true }`, or give both the same condition.",
    example: "warning-conditional-dependency",
  },
});

export const CONSTANT_CONDITION = defineRule({
  id: "constant-condition",
  severity: "warning",
  acceptedBy: ["dependent"],
  page: {
    meaning: "A condition is always true or always false, or has no effect.",
    remedy: "Correct the condition, or remove it.",
    example: "warning-constant-condition",
  },
});

export const DELETION_ORDER = defineRule({
  id: "deletion-order",
  severity: "error",
  page: {
    meaning: "The garbage collector deletes objects in no particular order, and the workflow requires an order.",
    remedy: "Set `deletion: ordered` on the dependent, or remove the dependency.",
    example: "deletion-order",
  },
});

export const DEPENDENCY_CYCLE = defineRule({
  id: "dependency-cycle",
  severity: "error",
  page: {
    meaning: "Dependents depend on each other in a cycle, so none can be reconciled first.",
    remedy: "Remove one of the dependencies that the message lists.",
    example: "dependency-cycle",
  },
});

export const DEPENDENT_NAMESPACE = defineRule({
  id: "dependent-namespace",
  severity: "error",
  page: {
    meaning: "The objects of a dependent would have no namespace, or one that the controller does not watch.",
    remedy: "Set `namespace` of the dependent, or add the namespace to `controller.namespaces`.",
    example: "dependent-namespace",
  },
});

export const DEPENDENT_OPTION = defineRule({
  id: "dependent-option",
  severity: "error",
  page: {
    meaning: "Two options of a dependent exclude each other.",
    remedy: "Remove one of the options that the message names.",
    example: "dependent-option",
  },
});

export const DEPENDENT_SOURCE = defineRule({
  id: "dependent-source",
  severity: "error",
  page: {
    meaning: "A dependent uses an event source that does not watch its objects, or a read-only dependent uses none.",
    remedy: "Use an event source of the same kind.",
    example: "dependent-source",
  },
});

export const DUPLICATE_CONTROLLER = defineRule({
  id: "duplicate-controller",
  severity: "error",
  page: {
    meaning: "Two specs define controllers with the same name.",
    remedy: "Rename one of the controllers.",
    example: "duplicate-controller",
  },
});

export const DUPLICATE_KIND = defineRule({
  id: "duplicate-kind",
  severity: "error",
  page: {
    meaning: "Two files define the same kind.",
    remedy: "Remove one of the files.",
    example: "duplicate-kind",
  },
});

export const EXTERNAL_STATE = defineRule({
  id: "external-state",
  severity: "error",
  page: {
    meaning: "The id of an external resource cannot be stored where the spec says.",
    remedy: "Use a field of the schema, or store the id in a ConfigMap, a Secret or a resource.",
    example: "external-state",
  },
});

export const FIELD_SELECTOR = defineRule({
  id: "field-selector",
  severity: "error",
  page: {
    meaning: "A field selector is malformed, or uses a field that the API server cannot select by.",
    remedy: "Use metadata.name, metadata.namespace or one of `selectableFields` of the CRD.",
    example: "field-selector",
  },
});

export const FOREIGN_NAMESPACE = defineRule({
  id: "foreign-namespace",
  severity: "warning",
  acceptedBy: ["dependent"],
  page: {
    meaning:
      "The primary chooses the namespace of a reference or of an object that the operator writes. Anyone who can create such a primary in one namespace uses the permissions of the operator in another, for example to read a Secret there.",
    remedy:
      "Require permission from the other namespace, as an annotation of the object or a ReferenceGrant, and check it in a condition. Or use the namespace of the primary. If everyone who creates primaries has access to all namespaces anyway, accept the warning and give a reason. See runtime/docs/tenants.md.",
    example: "warning-foreign-namespace",
  },
});

export const FORMER_NAME = defineRule({
  id: "former-name",
  severity: "error",
  page: {
    meaning:
      "`formerNames` of a controller lists a name that is in use: its own, that of another controller, or a former name of another controller. Two controllers would claim the same objects.",
    remedy: "Remove the name from `formerNames` of one of the controllers.",
    example: "former-name",
  },
});

export const IMMUTABLE_KIND = defineRule({
  id: "immutable-kind",
  severity: "varies",
  acceptedBy: ["dependent"],
  page: {
    meaning:
      "The operator updates objects of a kind that is mostly immutable, such as a Job with its template: a new version of the operator fails for every existing object. Or `onImmutable: recreate` would delete an object that holds data.",
    remedy:
      "Set `mode: once` to run it once for each primary, `mode: createOnly` to leave existing objects as they are, `onImmutable: recreate` to delete it and create it again, or `onImmutable: fail` to get errors. Remove `onImmutable: recreate` from kinds whose deletion loses data.",
    example: "warning-immutable-kind",
  },
});

export const ITEM_DEPENDENCY = defineRule({
  id: "item-dependency",
  severity: "error",
  page: {
    meaning: "`itemsDependOn` requires bulk dependents, and one of the two is not one.",
    remedy: "Set `bulk: true` on both dependents, or use `dependsOn`.",
    example: "item-dependency",
  },
});

export const LABEL_SELECTOR = defineRule({
  id: "label-selector",
  severity: "error",
  page: {
    meaning: "A label selector is malformed.",
    remedy: "Use the syntax of kubectl: `app=web,tier notin (test)`.",
    example: "label-selector",
  },
});

export const MAPPING_SCOPE = defineRule({
  id: "mapping-scope",
  severity: "error",
  page: {
    meaning: "The mapping of an event source can never find a primary.",
    remedy: "Use a mapping that includes the namespace of the primary.",
    example: "mapping-scope",
  },
});

export const OWNER_CLUSTER = defineRule({
  id: "owner-cluster",
  severity: "error",
  page: {
    meaning: "An object in another cluster cannot be owned by the primary: owner references cannot cross clusters.",
    remedy: "Set `deletion: ordered` to have the operator delete the dependent, not the garbage collector.",
    example: "owner-cluster",
  },
});

export const OWNER_NAMESPACE = defineRule({
  id: "owner-namespace",
  severity: "error",
  page: {
    meaning:
      "An object in another namespace cannot be owned by the primary: owner references cannot cross namespaces, and the garbage collector would treat the owner as deleted.",
    remedy: "Set `deletion: ordered` to have the operator delete the dependent, not the garbage collector.",
    example: "owner-namespace",
  },
});

export const MOVED_DEPENDENT = defineRule({
  id: "moved-dependent",
  severity: "error",
  page: {
    meaning:
      "An entry of `moved` refers to no dependent, or to one whose objects have another kind, cluster, namespace or selector.",
    remedy:
      "Correct the names. `moved` can change only the name: list a dependent that now has another kind under `removed`.",
    example: "moved-dependent",
  },
});

export const POWERFUL_RIGHT = defineRule({
  id: "powerful-right",
  severity: "warning",
  acceptedBy: ["dependent", "eventSource", "extraRule"],
  page: {
    meaning:
      "The operator needs a permission that gives anyone who steals its token control over more than its own objects: all Secrets, roles, webhooks, certificates, or commands in Pods.",
    remedy:
      "Narrow the permission: `controller.namespaces`, `namespace` of a dependent, `namespaces` or a `fieldSelector` with `metadata.name` of an event source, `resourceNames` of a rule. If the operator needs it, accept the warning and give a reason, and protect its namespace like those of the control plane.",
    example: "warning-powerful-right",
  },
});

export const REFERENCE = defineRule({
  id: "reference",
  severity: "error",
  page: {
    meaning: "No object of the kind can have the name or the namespace in `ref`.",
    remedy:
      "Use an expression over `primary`, such as `primary.spec.settings`. A constant needs its own quotes: `\"'settings'\"`.",
    example: "reference",
  },
});

export const RELEASED_FIELD = defineRule({
  id: "released-field",
  severity: "error",
  page: {
    meaning: "`released` lists a field that the kind does not have.",
    remedy: "Use a field such as `spec.replicas`. An item of a list has no path.",
    example: "released-field",
  },
});

export const REMOVED_DEPENDENT = defineRule({
  id: "removed-dependent",
  severity: "varies",
  page: {
    meaning:
      "A dependent is listed under `removed` but still in use, or neither the operator nor the garbage collector can delete its resources.",
    remedy:
      "Remove it from `removed`, or from `dependents`. For external resources, set `deletion: orphan`. For objects without an owner reference, set `deletion: ordered` or `deletion: orphan`.",
    example: "removed-dependent",
  },
});

export const RESERVED_NAME = defineRule({
  id: "reserved-name",
  severity: "error",
  page: {
    meaning: "A name is reserved in generated code.",
    remedy: "Choose another name.",
    example: "reserved-name",
  },
});

export const SAME_OBJECT = defineRule({
  id: "same-object",
  severity: "error",
  page: {
    meaning: "Two dependents would write the same object.",
    remedy: "Give the objects different names, or make one dependent `bulk`.",
    example: "same-object",
  },
});

export const UNQUALIFIED_FINALIZER = defineRule({
  id: "unqualified-finalizer",
  severity: "varies",
  acceptedBy: ["controller"],
  page: {
    meaning:
      "A finalizer has no domain. The API server rejects that for built-in kinds; for custom resources another operator may use the same name.",
    remedy: "Use a finalizer with a domain and a slash, and list the old one in `formerFinalizers`.",
    example: "unqualified-finalizer",
  },
});

export const CLEANUP_POLICY = defineRule({
  id: "cleanup-policy",
  severity: "error",
  page: {
    meaning: "A dependent requires a finalizer on its primary, and `cleanupPolicy: sweep` sets none.",
    remedy: "Remove `cleanupPolicy: sweep`, or what needs the finalizer.",
    example: "cleanup-policy",
  },
});

export const SHARED_FINALIZER = defineRule({
  id: "shared-finalizer",
  severity: "error",
  page: {
    meaning: "Two controllers of the same kind use the same finalizer. The first to finish would remove it for both.",
    remedy: "Set a different `finalizer` for each controller.",
    example: "shared-finalizer",
  },
});

export const STATUS_CONDITIONS = defineRule({
  id: "status-conditions",
  severity: "error",
  page: {
    meaning: "The primary has no `status.conditions` that the runtime can write.",
    remedy: "Add a list of `metav1.Condition` to the CRD, with `type` as its map key.",
    example: "status-conditions",
  },
});

export const UNCONVERTED_VERSION = defineRule({
  id: "unconverted-version",
  severity: "warning",
  acceptedBy: ["controller"],
  page: {
    meaning:
      "A CRD serves a version whose fields differ from those of the stored version, and no webhook converts them.",
    remedy: "Set `spec.conversion` to a webhook, or stop serving the version.",
    example: "warning-unconverted-version",
  },
});

export const UNHANDLED_RENAME = defineRule({
  id: "unhandled-rename",
  severity: "error",
  page: {
    meaning:
      "A controller of the last generation was removed, and a new one has the same primary. If it was renamed, the new one does not find what was written under the old name: it is in a label of the objects, ids of external resources are stored under it, and it is the field manager. External resources would be created again.",
    remedy:
      "List the old name under `formerNames` of `spec.controller`, as the message shows it. If the old controller was never deployed, or its objects can stay, run `gen-operator generate --forget OLD_NAME` once.",
    example: "unhandled-rename",
  },
});

export const UNKNOWN_DEPENDENT = defineRule({
  id: "unknown-dependent",
  severity: "error",
  page: {
    meaning: "The spec has no dependent of that name.",
    remedy: "Correct the name. The message suggests the closest one.",
    example: "unknown-dependent",
  },
});

export const UNKNOWN_VERSION = defineRule({
  id: "unknown-version",
  severity: "error",
  page: {
    meaning: "The CRD has no such version.",
    remedy: "Use one of the versions that the message lists.",
    example: "version-not-found",
  },
});

export const UNUSABLE_KIND = defineRule({
  id: "unusable-kind",
  severity: "error",
  page: {
    meaning: "The API server can neither list nor watch the kind.",
    remedy: "Use another kind.",
    example: "unknown-kind",
  },
});

export const UNSTATED_REMOVAL = defineRule({
  id: "unstated-removal",
  severity: "error",
  page: {
    meaning:
      "A dependent of the last generation was removed from the spec, or no longer finds its previous objects because its kind, cluster, namespace or selector changed. The spec does not say what happens to these objects.",
    remedy: "Add one of the entries of the message to the spec: `removed`, or `moved` for a renamed dependent.",
    example: "unstated-removal",
  },
});

export const UNUSED_ACCEPTANCE = defineRule({
  id: "unused-acceptance",
  severity: "warning",
  page: {
    meaning: "A dependent accepts a warning that does not occur.",
    remedy: "Remove the entry from `accept`.",
    example: "warning-accepted",
  },
});

export const VERSION_NOT_SERVED = defineRule({
  id: "version-not-served",
  severity: "error",
  page: {
    meaning: "The API server does not serve the version of the CRD.",
    remedy: "Use a version that is served.",
    example: "version-not-served",
  },
});

export const WHEN_NAME = defineRule({
  id: "when-name",
  severity: "error",
  page: {
    meaning: "A condition uses `live` or `item` where it is not available.",
    remedy:
      "Follow the hint. `item` is the key of an item of a bulk dependent; only its postconditions are evaluated for each item.",
    example: "when-name",
  },
});

export const WHEN_SYNTAX = defineRule({
  id: "when-syntax",
  severity: "error",
  page: {
    meaning: "A `when:` is not a single TypeScript expression.",
    remedy: "Use a single expression without statements.",
    example: "when-syntax",
  },
});
