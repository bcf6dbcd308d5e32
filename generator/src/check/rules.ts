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
      "A condition of the runtime, such as `ready`, is stated where the runtime cannot ask it, or for an external dependent.",
    remedy: "Use one of the conditions that the message names, or write `when:` or `function:`.",
    example: "builtin-condition",
  },
});

export const CACHE_PATH = defineRule({
  id: "cache-path",
  severity: "error",
  page: {
    meaning: "A path that an event source keeps does not exist in the schema of its kind.",
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
      "Code that deletes a dependent may read an object that is gone by then. Foreground deletion of the primary (Argo CD's default) and deletion of the namespace delete garbage-collected objects, and those of others, before the operator has cleaned up.",
    remedy:
      "Add `heldForCleanup: true` to the dependent whose object is needed: a finalizer keeps it. If the code does not need the object, accept the warning with a reason.",
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
      "A dependent requires another one that some primaries do not want: its condition does not hold, or its `ref` is undefined. Then the operator deletes the dependent.",
    remedy: "Make the edge optional: `{ name: settings, optional: true }`, or give both the same condition.",
    example: "warning-conditional-dependency",
  },
});

export const CONSTANT_CONDITION = defineRule({
  id: "constant-condition",
  severity: "warning",
  acceptedBy: ["dependent"],
  page: {
    meaning: "A condition has always the same value, or no effect.",
    remedy: "Correct the condition, or remove it.",
    example: "warning-constant-condition",
  },
});

export const DELETION_ORDER = defineRule({
  id: "deletion-order",
  severity: "error",
  page: {
    meaning: "The garbage collector deletes in no order, and this order needs one.",
    remedy: "State `deletion: ordered` for the dependent, or remove the edge.",
    example: "deletion-order",
  },
});

export const DEPENDENCY_CYCLE = defineRule({
  id: "dependency-cycle",
  severity: "error",
  page: {
    meaning: "Dependents depend on each other in a circle, so none can be the first.",
    remedy: "Remove one of the edges that the message lists.",
    example: "dependency-cycle",
  },
});

export const DEPENDENT_NAMESPACE = defineRule({
  id: "dependent-namespace",
  severity: "error",
  page: {
    meaning: "The objects of a dependent would have no namespace, or one that nobody watches.",
    remedy: "State `namespace` of the dependent, or add it to `controller.namespaces`.",
    example: "dependent-namespace",
  },
});

export const DEPENDENT_OPTION = defineRule({
  id: "dependent-option",
  severity: "error",
  page: {
    meaning: "Two options of a dependent have no effect together.",
    remedy: "Remove one of the options that the message names.",
    example: "dependent-option",
  },
});

export const DEPENDENT_SOURCE = defineRule({
  id: "dependent-source",
  severity: "error",
  page: {
    meaning: "A dependent names an event source that does not know its objects, or a read-only dependent names none.",
    remedy: "Name an event source of the same kind.",
    example: "dependent-source",
  },
});

export const DUPLICATE_CONTROLLER = defineRule({
  id: "duplicate-controller",
  severity: "error",
  page: {
    meaning: "Two specs have controllers of one name.",
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
    meaning: "The place in which a dependent keeps an id cannot hold it.",
    remedy: "Name a field of the schema, or keep the id in a ConfigMap, a Secret or a resource.",
    example: "external-state",
  },
});

export const FIELD_SELECTOR = defineRule({
  id: "field-selector",
  severity: "error",
  page: {
    meaning: "A field selector is malformed, or selects by a field that the API server does not select by.",
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
      "The primary chooses the namespace of a reference or of an object that the operator writes. Whoever may create such a primary in their own namespace uses the rights of the operator in another one, for example to read a Secret there.",
    remedy:
      "Let the other namespace grant it, by an annotation of the object or a ReferenceGrant, and check that in a condition. Or stay in the namespace of the primary. If every author of a primary may reach all namespaces anyway, accept the warning with a reason. See runtime/docs/tenants.md.",
    example: "warning-foreign-namespace",
  },
});

export const FORMER_NAME = defineRule({
  id: "former-name",
  severity: "error",
  page: {
    meaning:
      "`formerNames` of a controller lists a name that is in use: its own, that of another controller, or a former name of another controller. Two controllers would treat the same objects as their own.",
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
      "The operator updates an object of a kind that cannot be changed, such as a Job, whose template is immutable: a new version of the operator fails for each object that exists. Or `onImmutable: recreate` would delete an object that owns data.",
    remedy:
      "Set `mode: once` to run it once for each primary, `mode: createOnly` to leave what exists as it is, `onImmutable: recreate` to delete it and create it again, or `onImmutable: fail` if errors are what you want. Remove `onImmutable: recreate` from kinds whose deletion loses data.",
    example: "warning-immutable-kind",
  },
});

export const ITEM_DEPENDENCY = defineRule({
  id: "item-dependency",
  severity: "error",
  page: {
    meaning: "`itemsDependOn` is about items, and one of the two dependents has none.",
    remedy: "Make both dependents `bulk`, or use `dependsOn`.",
    example: "item-dependency",
  },
});

export const LABEL_SELECTOR = defineRule({
  id: "label-selector",
  severity: "error",
  page: {
    meaning: "A label selector is malformed.",
    remedy: "Write it as kubectl takes it: `app=web,tier notin (test)`.",
    example: "label-selector",
  },
});

export const MAPPING_SCOPE = defineRule({
  id: "mapping-scope",
  severity: "error",
  page: {
    meaning: "The mapping of an event source could never lead to a primary.",
    remedy: "Use a mapping that names the namespace of the primary.",
    example: "mapping-scope",
  },
});

export const OWNER_CLUSTER = defineRule({
  id: "owner-cluster",
  severity: "error",
  page: {
    meaning: "An object in another cluster cannot have the primary as its owner.",
    remedy: "State `deletion: ordered`: then the operator deletes the dependent, not the garbage collector.",
    example: "owner-cluster",
  },
});

export const OWNER_NAMESPACE = defineRule({
  id: "owner-namespace",
  severity: "error",
  page: {
    meaning: "No owner reference leads out of a namespace, so the garbage collector would not find the primary.",
    remedy: "State `deletion: ordered`: then the operator deletes the dependent, not the garbage collector.",
    example: "owner-namespace",
  },
});

export const MOVED_DEPENDENT = defineRule({
  id: "moved-dependent",
  severity: "error",
  page: {
    meaning: "An entry of `moved` names no dependent, or one whose objects are of another kind or in another place.",
    remedy: "Correct the names. A name alone can move: list a dependent that has another kind now under `removed`.",
    example: "moved-dependent",
  },
});

export const POWERFUL_RIGHT = defineRule({
  id: "powerful-right",
  severity: "warning",
  acceptedBy: ["dependent", "eventSource", "extraRule"],
  page: {
    meaning:
      "The operator needs a right with which whoever steals its token controls more than its own objects: all Secrets, roles, webhooks, certificates, or commands in Pods.",
    remedy:
      "Narrow it: `controller.namespaces`, `namespace` of a dependent, `namespaces` or a `fieldSelector` with `metadata.name` of an event source, `resourceNames` of a rule. If the operator cannot do without, accept the warning with a reason, and guard its namespace like those of the control plane.",
    example: "warning-powerful-right",
  },
});

export const REFERENCE = defineRule({
  id: "reference",
  severity: "error",
  page: {
    meaning: "No object of the kind can have the name or the namespace in `ref`.",
    remedy:
      "Write an expression over `primary`, such as `primary.spec.settings`. A constant needs quotes of its own: `\"'settings'\"`.",
    example: "reference",
  },
});

export const RELEASED_FIELD = defineRule({
  id: "released-field",
  severity: "error",
  page: {
    meaning: "`released` names a field that the kind does not have, so nothing would be handed over.",
    remedy: "Name a field such as `spec.replicas`. An item of a list has no path of its own.",
    example: "released-field",
  },
});

export const REMOVED_DEPENDENT = defineRule({
  id: "removed-dependent",
  severity: "varies",
  page: {
    meaning:
      "A dependent is listed as removed and is in use, or neither the operator nor the garbage collector can delete its resources.",
    remedy:
      "Remove it from `removed`, or from `dependents`. Leave external resources with `deletion: orphan`. Delete objects without an owner reference with `deletion: ordered`.",
    example: "removed-dependent",
  },
});

export const RESERVED_NAME = defineRule({
  id: "reserved-name",
  severity: "error",
  page: {
    meaning: "A name has a meaning of its own in generated code.",
    remedy: "Choose another name.",
    example: "reserved-name",
  },
});

export const SAME_OBJECT = defineRule({
  id: "same-object",
  severity: "error",
  page: {
    meaning: "Two dependents would write one object.",
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
      "A finalizer has no domain. The API server refuses that for built-in kinds; for custom resources another operator may use the same name.",
    remedy: "Use a finalizer with a domain and a slash, and list the old one in `formerFinalizers`.",
    example: "unqualified-finalizer",
  },
});

export const CLEANUP_POLICY = defineRule({
  id: "cleanup-policy",
  severity: "error",
  page: {
    meaning: "A dependent needs the finalizer of its primary, which `cleanupPolicy: sweep` does without.",
    remedy: "Remove `cleanupPolicy: sweep`, or what needs the finalizer.",
    example: "cleanup-policy",
  },
});

export const SHARED_FINALIZER = defineRule({
  id: "shared-finalizer",
  severity: "error",
  page: {
    meaning: "Two controllers of one kind have the same finalizer. The first to finish would remove it for both.",
    remedy: "Give each controller a `finalizer` of its own.",
    example: "shared-finalizer",
  },
});

export const STATUS_CONDITIONS = defineRule({
  id: "status-conditions",
  severity: "error",
  page: {
    meaning: "The primary has no `status.conditions` that the runtime can write.",
    remedy: "Give the CRD a list of `metav1.Condition`, with `type` as its map key.",
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
    remedy: "State spec.conversion with a webhook, or stop serving the version.",
    example: "warning-unconverted-version",
  },
});

export const UNHANDLED_RENAME = defineRule({
  id: "unhandled-rename",
  severity: "error",
  page: {
    meaning:
      "A controller of the last generation is gone, and a new one has the same primary. If it was renamed, the new one does not find what was written under the old name: objects carry the name in a label, ids of external resources are stored under it, and it is the field manager. External resources would be created again.",
    remedy:
      "List the old name under `formerNames` of `spec.controller`, as the message shows it. If the old controller was never deployed, or its objects can stay, run `gen-operator generate --forget OLD_NAME` once.",
    example: "unhandled-rename",
  },
});

export const UNKNOWN_DEPENDENT = defineRule({
  id: "unknown-dependent",
  severity: "error",
  page: {
    meaning: "The controller has no dependent of the name.",
    remedy: "Correct the name. The message proposes the nearest one.",
    example: "unknown-dependent",
  },
});

export const UNKNOWN_VERSION = defineRule({
  id: "unknown-version",
  severity: "error",
  page: {
    meaning: "The CRD has no such version.",
    remedy: "Write one of the versions that the message lists.",
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
      "A dependent of the last generation left the spec, or does not see its old objects any more: it has another kind, cluster, namespace or selector. Nothing says what becomes of these objects.",
    remedy: "Paste one of the entries of the message: `removed`, or `moved` for a dependent that has another name now.",
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
    meaning: "A condition uses `live` or `item` where there is none.",
    remedy:
      "Follow the hint. `item` is the key of an item of a bulk dependent; only its postconditions are asked for each item.",
    example: "when-name",
  },
});

export const WHEN_SYNTAX = defineRule({
  id: "when-syntax",
  severity: "error",
  page: {
    meaning: "A `when:` is not a single TypeScript expression.",
    remedy: "Write one expression over the names that the message lists, without statements.",
    example: "when-syntax",
  },
});
