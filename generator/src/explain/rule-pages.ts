/** What a diagnostic means, and what to do. */
export interface RulePage {
  readonly meaning: string;
  readonly remedy: string;
  /** The folder in fixtures/rejected/ of the repository with a project that triggers the rule. */
  readonly example?: string;
}

/** A page for every rule, by the names of the rules. */
export const RULE_PAGES: ReadonlyMap<string, RulePage> = new Map(
  Object.entries<RulePage>({
    "all-events": {
      meaning: "`onAllEvents` gives deletions to the reconciler. Some settings exclude that.",
      remedy: "Remove `onAllEvents`, or the setting that the message names.",
      example: "all-events",
    },
    "breaking-change": {
      meaning:
        "A change of a CRD or of a spec breaks stored objects, manifests or other programs, or deletes running objects.",
      remedy: "Take the change back, add a version, or plan a migration. `gen-operator diff` lists all changes.",
    },
    "broken-line": {
      meaning: "A line of your code compiles with the types of the earlier state, and not with those of now.",
      remedy: "Adapt the line to the new types.",
    },
    "builtin-condition": {
      meaning:
        "A condition of the runtime, such as `ready`, is stated where the runtime cannot ask it, or for an external dependent.",
      remedy: "Use one of the conditions that the message names, or write `when:` or `function:`.",
      example: "builtin-condition",
    },
    "cache-path": {
      meaning: "A path that an event source keeps does not exist in the schema of its kind.",
      remedy: "Correct the path under `cache`.",
      example: "cache-path",
    },
    "cleanup-input": {
      meaning:
        "Code that deletes a dependent may read an object that is gone by then. Foreground deletion of the primary (Argo CD's default) and deletion of the namespace delete garbage-collected objects, and those of others, before the operator has cleaned up.",
      remedy:
        "Add `heldForCleanup: true` to the dependent whose object is needed: a finalizer keeps it. If the code does not need the object, accept the warning with a reason.",
      example: "warning-cleanup-input",
    },
    "colliding-name": {
      meaning: "Two names would become one file or one type.",
      remedy: "Rename one of the two.",
      example: "colliding-name",
    },
    "condition-field": {
      meaning: "A condition is about a field that the kind does not have.",
      remedy: "Correct the path of the field.",
      example: "condition-field",
    },
    "conditional-dependency": {
      meaning:
        "A dependent requires another one that some primaries do not want: its condition does not hold, or its `ref` is undefined. Then the operator deletes the dependent.",
      remedy: "Make the edge optional: `{ name: settings, optional: true }`, or give both the same condition.",
      example: "warning-conditional-dependency",
    },
    "constant-condition": {
      meaning: "A condition has always the same value, or no effect.",
      remedy: "Correct the condition, or remove it.",
      example: "warning-constant-condition",
    },
    "crd-empty-object": {
      meaning:
        "The schema of a primary's CRD has an object without fields. It looks as if it took any content, but the API server drops everything in it, and `parse` refuses it.",
      remedy:
        "Declare `properties` or `additionalProperties`. Set `x-kubernetes-preserve-unknown-fields: true` if the object may have any fields.",
      example: "warning-crd-empty-object",
    },
    "crd-field": {
      meaning: "A field of a CRD is missing or has a value that the API server refuses.",
      remedy: "Correct the field, or fetch the CRD again.",
      example: "crd-versions",
    },
    "crd-name": {
      meaning: "The name of a CRD is not `<plural>.<group>`, or Kubernetes does not accept a name in the CRD.",
      remedy: "Correct the name.",
      example: "crd-name",
    },
    "crd-rule": {
      meaning:
        "The API server refuses a rule of a CRD (`x-kubernetes-validations`): its CEL does not compile or can cost too much, or its message, reason or fieldPath is invalid. It is an error for the CRD of a primary, and a warning for any other.",
      remedy:
        "Correct the rule. Against its cost, add maxItems, maxProperties and maxLength to the lists, maps and strings that it reads.",
      example: "crd-rule",
    },
    "crd-schema": {
      meaning:
        "The API server refuses the schema of a CRD: it is not structural, or a default breaks it. It is an error for the CRD of a primary, and a warning for any other.",
      remedy: "Correct the keyword that the message names. A schema has no `$ref`, and a type for every field.",
      example: "crd-structure",
    },
    "crd-subresource": {
      meaning: "A subresource of a CRD is described in a way that the API server refuses or ignores.",
      remedy: "Correct `subresources` of the version.",
      example: "warning-crd-subresource",
    },
    "crd-unknown-field": {
      meaning:
        "A CRD has a field, or its schema a keyword, that Kubernetes does not know. The API server drops it, so a misspelt limit limits nothing; kubectl refuses it. It is an error for the CRD of a primary, and a warning for any other.",
      remedy: "Correct the name, or remove the field.",
      example: "crd-unknown-field",
    },
    "crd-version": {
      meaning: "The document is not a CustomResourceDefinition of apiextensions.k8s.io/v1.",
      remedy: "Convert the CRD to v1.",
      example: "crd-v1beta1",
    },
    "deep-code": {
      meaning: "Your code nests so deeply that `generate` cannot check it.",
      remedy: "Split the expression that the message names.",
    },
    "damaged-record": {
      meaning:
        "`.gen-operator.json` is no JSON, or has entries that cannot be read. It records what the last generation wrote, and which dependents it had: objects of them may run.",
      remedy: "Restore the file from version control.",
    },
    "deletion-order": {
      meaning: "The garbage collector deletes in no order, and this order needs one.",
      remedy: "State `deletion: ordered` for the dependent, or remove the edge.",
      example: "deletion-order",
    },
    "dependency-cycle": {
      meaning: "Dependents depend on each other in a circle, so none can be the first.",
      remedy: "Remove one of the edges that the message lists.",
      example: "dependency-cycle",
    },
    "dependent-namespace": {
      meaning: "The objects of a dependent would have no namespace, or one that nobody watches.",
      remedy: "State `namespace` of the dependent, or add it to `controller.namespaces`.",
      example: "dependent-namespace",
    },
    "dependent-option": {
      meaning: "Two options of a dependent have no effect together.",
      remedy: "Remove one of the options that the message names.",
      example: "dependent-option",
    },
    "dependent-source": {
      meaning: "A dependent names an event source that does not know its objects, or a read-only dependent names none.",
      remedy: "Name an event source of the same kind.",
      example: "dependent-source",
    },
    "duplicate-controller": {
      meaning: "Two specs have controllers of one name.",
      remedy: "Rename one of the controllers.",
      example: "duplicate-controller",
    },
    "duplicate-dependent": {
      meaning: "`dependsOn` names a dependent twice.",
      remedy: "Remove one of the two.",
      example: "duplicate-dependent",
    },
    "duplicate-key": {
      meaning: "A YAML map has a key twice, and one of the values would be lost.",
      remedy: "Remove one of the two.",
      example: "duplicate-key",
    },
    "duplicate-kind": {
      meaning: "Two files define the same kind.",
      remedy: "Remove one of the files.",
      example: "duplicate-kind",
    },
    "empty-spec": {
      meaning: "A spec file has no document.",
      remedy: "Write a spec into it, or delete the file.",
      example: "empty-spec",
    },
    "external-state": {
      meaning: "The place in which a dependent keeps an id cannot hold it.",
      remedy: "Name a field of the schema, or keep the id in a ConfigMap, a Secret or a resource.",
      example: "external-state",
    },
    "external-type": {
      meaning: "The type of an external resource cannot be found.",
      remedy: "Export the type from the file that the spec names.",
      example: "external-type",
    },
    "field-selector": {
      meaning: "A field selector is malformed, or selects by a field that the API server does not select by.",
      remedy: "Use metadata.name, metadata.namespace or one of `selectableFields` of the CRD.",
      example: "field-selector",
    },
    "floating-promise": {
      meaning:
        "A statement drops a promise: it is not awaited, returned, assigned, or given a handler for its failure. The operator continues before the promise settles: a finalizer is removed while an external record is still there. A rejection is not retried, and ends the process.",
      remedy:
        "Await the promise, return it, or add `void` in front of it if it may end later. After `void`, a rejection still ends the process: add `.catch(…)`.",
      example: "floating-promise",
    },
    "foreign-namespace": {
      meaning:
        "The primary chooses the namespace of a reference or of an object that the operator writes. Whoever may create such a primary in their own namespace uses the rights of the operator in another one, for example to read a Secret there.",
      remedy:
        "Let the other namespace grant it, by an annotation of the object or a ReferenceGrant, and check that in a condition. Or stay in the namespace of the primary. If every author of a primary may reach all namespaces anyway, accept the warning with a reason. See runtime/docs/tenants.md.",
      example: "warning-foreign-namespace",
    },
    "former-name": {
      meaning:
        "`formerNames` of a controller lists a name that is in use: its own, that of another controller, or a former name of another controller. Two controllers would treat the same objects as their own.",
      remedy: "Remove the name from `formerNames` of one of the controllers.",
      example: "former-name",
    },
    "helm-template": {
      meaning: "A file with CRDs is a template of a Helm chart, so it is no YAML before Helm has rendered it.",
      remedy: "Render the chart, `helm template CHART --include-crds`, and take the CRDs of the result.",
      example: "helm-template",
    },
    "immutable-kind": {
      meaning:
        "The operator updates an object of a kind that cannot be changed, such as a Job, whose template is immutable: a new version of the operator fails for each object that exists. Or `onImmutable: recreate` would delete an object that owns data.",
      remedy:
        "Set `mode: once` to run it once for each primary, `mode: createOnly` to leave what exists as it is, `onImmutable: recreate` to delete it and create it again, or `onImmutable: fail` if errors are what you want. Remove `onImmutable: recreate` from kinds whose deletion loses data.",
      example: "warning-immutable-kind",
    },
    "inexact-number": {
      meaning:
        "A default or an enum of a CRD has an integer beyond 2^53. JavaScript has no such number: an operator reads, compares and writes the nearest one that it has.",
      remedy: "Do nothing if the operator never uses the field. Otherwise make the field a string.",
      example: "warning-inexact-number",
    },
    "item-dependency": {
      meaning: "`itemsDependOn` is about items, and one of the two dependents has none.",
      remedy: "Make both dependents `bulk`, or use `dependsOn`.",
      example: "item-dependency",
    },
    "known-kind": {
      meaning:
        "A kind is described by its name alone, and a schema of it is at hand; or a kind of Kubernetes is asked for from a cluster.",
      remedy: "Write `resource: group/version/Kind`; then it has types.",
      example: "known-kind",
    },
    "label-selector": {
      meaning: "A label selector is malformed.",
      remedy: "Write it as kubectl takes it: `app=web,tier notin (test)`.",
      example: "label-selector",
    },
    "mapping-scope": {
      meaning: "The mapping of an event source could never lead to a primary.",
      remedy: "Use a mapping that names the namespace of the primary.",
      example: "mapping-scope",
    },
    "more-problems": {
      meaning: "A file has more problems than are printed.",
      remedy: "Correct the problems above, and run the command again.",
    },
    "no-crds": {
      meaning: "No file that was given has a CustomResourceDefinition.",
      remedy: "Name files or folders with CRDs.",
    },
    "no-workflow": {
      meaning: "The folder has no workflow.yaml.",
      remedy: "Write a spec, or run `gen-operator init`. `gen-operator types` needs no spec.",
      example: "no-workflow",
    },
    "not-a-crd": {
      meaning: "A file among the CRDs holds no CustomResourceDefinition.",
      remedy: "Move the file elsewhere.",
      example: "not-a-crd",
    },
    "old-spelling": {
      meaning: "A field or value of a spec is spelled as an earlier version of the format spelled it.",
      remedy: "Write what the message shows.",
      example: "old-spelling",
    },
    "owner-cluster": {
      meaning: "An object in another cluster cannot have the primary as its owner.",
      remedy: "State `deletion: ordered`: then the operator deletes the dependent, not the garbage collector.",
      example: "owner-cluster",
    },
    "owner-namespace": {
      meaning: "No owner reference leads out of a namespace, so the garbage collector would not find the primary.",
      remedy: "State `deletion: ordered`: then the operator deletes the dependent, not the garbage collector.",
      example: "owner-namespace",
    },
    "missing-reconciler": {
      meaning:
        "With `invocation: explicit` only the reconciler runs the workflow, and the file of the reconciler does not exist. Only `generate --check` reports it.",
      remedy: "Run `generate`, which writes a stub, or remove `invocation: explicit`.",
      example: "check-missing-reconciler",
    },
    "missing-stub": {
      meaning: "Generated code imports a file of yours that does not exist. Only `generate --check` reports it.",
      remedy: "Run `generate`, which writes a stub, and commit the file.",
    },
    "moved-dependent": {
      meaning: "An entry of `moved` names no dependent, or one whose objects are of another kind or in another place.",
      remedy: "Correct the names. A name alone can move: list a dependent that has another kind now under `removed`.",
      example: "moved-dependent",
    },
    "powerful-right": {
      meaning:
        "The operator needs a right with which whoever steals its token controls more than its own objects: all Secrets, roles, webhooks, certificates, or commands in Pods.",
      remedy:
        "Narrow it: `controller.namespaces`, `namespace` of a dependent, `namespaces` or a `fieldSelector` with `metadata.name` of an event source, `resourceNames` of a rule. If the operator cannot do without, accept the warning with a reason, and guard its namespace like those of the control plane.",
      example: "warning-powerful-right",
    },
    reference: {
      meaning: "No object of the kind can have the name or the namespace in `ref`.",
      remedy:
        "Write an expression over `primary`, such as `primary.spec.settings`. A constant needs quotes of its own: `\"'settings'\"`.",
      example: "reference",
    },
    "released-field": {
      meaning: "`released` names a field that the kind does not have, so nothing would be handed over.",
      remedy: "Name a field such as `spec.replicas`. An item of a list has no path of its own.",
      example: "released-field",
    },
    "removed-dependent": {
      meaning:
        "A dependent is listed as removed and is in use, or neither the operator nor the garbage collector can delete its resources.",
      remedy:
        "Remove it from `removed`, or from `dependents`. Leave external resources with `deletion: orphan`. Delete objects without an owner reference with `deletion: ordered`.",
      example: "removed-dependent",
    },
    "reserved-name": {
      meaning: "A name has a meaning of its own in generated code.",
      remedy: "Choose another name.",
      example: "reserved-name",
    },
    "same-object": {
      meaning: "Two dependents would write one object.",
      remedy: "Give the objects different names, or make one dependent `bulk`.",
      example: "same-object",
    },
    "unqualified-finalizer": {
      meaning:
        "A finalizer has no domain. The API server refuses that for built-in kinds; for custom resources another operator may use the same name.",
      remedy: "Use a finalizer with a domain and a slash, and list the old one in `formerFinalizers`.",
      example: "unqualified-finalizer",
    },
    "cleanup-policy": {
      meaning: "A dependent needs the finalizer of its primary, which `cleanupPolicy: sweep` does without.",
      remedy: "Remove `cleanupPolicy: sweep`, or what needs the finalizer.",
      example: "cleanup-policy",
    },
    "shared-finalizer": {
      meaning: "Two controllers of one kind have the same finalizer. The first to finish would remove it for both.",
      remedy: "Give each controller a `finalizer` of its own.",
      example: "shared-finalizer",
    },
    "spec-name": {
      meaning: "A name in a spec cannot be a name in code.",
      remedy: "Use letters and digits, with a small letter first: `configMap`.",
      example: "dependent-name",
    },
    "spec-required": { meaning: "A spec lacks a required field.", remedy: "Add the field.", example: "missing-field" },
    "spec-type": {
      meaning: "A value in a spec has another type than the field.",
      remedy: "Write a value of the type that the message names.",
      example: "wrong-type",
    },
    "spec-value": {
      meaning: "The field of a spec does not allow its value.",
      remedy: "Write one of the values that the message names.",
      example: "unknown-builtin",
    },
    stale: {
      meaning: "A generated file is not what `generate` would write now.",
      remedy: "Run `gen-operator generate`, and commit the result.",
    },
    "stale-stub": {
      meaning: "A stub of the earlier state is called no more.",
      remedy: "Delete the file, or state under `moved` where the dependent went.",
    },
    "status-conditions": {
      meaning: "The primary has no `status.conditions` that the runtime can write.",
      remedy: "Give the CRD a list of `metav1.Condition`, with `type` as its map key.",
      example: "status-conditions",
    },
    "stub-constant": {
      meaning: "A file of yours lacks the constant that the generated code takes your functions from.",
      remedy: "Put the functions into one constant, as the message shows it.",
      example: "stub-constant",
    },
    "unconverted-version": {
      meaning:
        "A CRD serves a version whose fields differ from those of the stored version, and no webhook converts them.",
      remedy: "State spec.conversion with a webhook, or stop serving the version.",
      example: "warning-unconverted-version",
    },
    "unchecked-rule": {
      meaning: "A rule of a CRD (`x-kubernetes-validations`) uses CEL that `parse` of the class cannot evaluate.",
      remedy:
        "Do nothing if it is enough that the API server checks the rule. Otherwise rewrite the rule without what the message names.",
      example: "warning-unchecked-rule",
    },
    "unhandled-rename": {
      meaning:
        "A controller of the last generation is gone, and a new one has the same primary. If it was renamed, the new one does not find what was written under the old name: objects carry the name in a label, ids of external resources are stored under it, and it is the field manager. External resources would be created again.",
      remedy:
        "List the old name under `formerNames` of `spec.controller`, as the message shows it. If the old controller was never deployed, or its objects can stay, run `gen-operator generate --forget OLD_NAME` once.",
      example: "unhandled-rename",
    },
    "uninvoked-workflow": {
      meaning:
        "With `invocation: explicit` only the reconciler runs the workflow, and it never calls `context.workflow.reconcile()`.",
      remedy: "Call `context.workflow.reconcile()`, or remove `invocation: explicit`.",
      example: "warning-uninvoked-workflow",
    },
    "unknown-controller": {
      meaning: "The project has no controller of that name, or several to choose from.",
      remedy: "Name one of those that the message lists.",
    },
    "unknown-dependent": {
      meaning: "The controller has no dependent of the name.",
      remedy: "Correct the name. The message proposes the nearest one.",
      example: "unknown-dependent",
    },
    "unknown-field": {
      meaning: "A spec has a field that does not exist.",
      remedy: "Correct the name of the field, or move it to its place.",
      example: "unknown-field",
    },
    "unknown-forget": {
      meaning: "`--forget` names a controller or a dependent that the last generation did not have.",
      remedy: "Use one of the names that the message lists: `CONTROLLER`, or `CONTROLLER/DEPENDENT`.",
    },
    "unknown-kind": {
      meaning: "Neither Kubernetes nor a CRD of the project has the kind.",
      remedy: "Correct the name, or put the CRD into `crds/`.",
      example: "unknown-kind",
    },
    "unknown-version": {
      meaning: "The CRD has no such version.",
      remedy: "Write one of the versions that the message lists.",
      example: "version-not-found",
    },
    "unordered-read": {
      meaning: "A function of a dependent reads another dependent without waiting for it.",
      remedy: "Add the other dependent to `dependsOn`.",
      example: "warning-unordered-read",
    },
    "unread-detail": {
      meaning: "A condition returns a detail that the reconciler does not read.",
      remedy: "Read the detail, or return a boolean.",
      example: "warning-unread-detail",
    },
    "unreadable-baseline": {
      meaning: "The state that a project is compared with cannot be read.",
      remedy:
        "Name a commit, a branch, a tag or a folder. In continuous integration, fetch the history: `fetch-depth: 0`.",
    },
    "unreadable-cluster": {
      meaning: "The cluster does not answer the request for its CRDs.",
      remedy: "Check the kubeconfig and the context: `kubectl get crds`.",
    },
    "unreadable-file": {
      meaning: "A file is missing, is not a regular file, or is not UTF-8 text.",
      remedy: "Correct the path or the file.",
      example: "crd-binary",
    },
    "unusable-kind": {
      meaning: "The API server can neither list nor watch the kind.",
      remedy: "Use another kind.",
      example: "unknown-kind",
    },
    "unstated-removal": {
      meaning:
        "A dependent of the last generation left the spec, or does not see its old objects any more: it has another kind, cluster, namespace or selector. Nothing says what becomes of these objects.",
      remedy:
        "Paste one of the entries of the message: `removed`, or `moved` for a dependent that has another name now.",
      example: "unstated-removal",
    },
    "unused-acceptance": {
      meaning: "A dependent accepts a warning that does not occur.",
      remedy: "Remove the entry from `accept`.",
      example: "warning-accepted",
    },
    "version-not-served": {
      meaning: "The API server does not serve the version of the CRD.",
      remedy: "Use a version that is served.",
      example: "version-not-served",
    },
    "when-name": {
      meaning: "A condition uses `live` or `item` where there is none.",
      remedy:
        "Follow the hint. `item` is the key of an item of a bulk dependent; only its postconditions are asked for each item.",
      example: "when-name",
    },
    "when-syntax": {
      meaning: "A `when:` is not a single TypeScript expression.",
      remedy: "Write one expression over the names that the message lists, without statements.",
      example: "when-syntax",
    },
    "when-type": {
      meaning: "A `when:` does not compile against the types of its names, or its value is not a boolean.",
      remedy: "Correct the expression. The message is TypeScript's own.",
      example: "when-type",
    },
    "yaml-alias": {
      meaning: "YAML aliases of the file expand without end, or to too much.",
      remedy: "Write the values out.",
      example: "alias-bomb",
    },
    "yaml-key": {
      meaning: "A mapping or a list stands where a key has to be.",
      remedy: 'Give the key as a text; a "?" or a brace too many makes a mapping of it.',
    },
    "yaml-merge": { meaning: "A merge key `<<` has no map.", remedy: "Refer to a map, or write the values out." },
    "yaml-number": {
      meaning: "A number loses digits, or JSON has no such number.",
      remedy: "Quote the number, or write one that JSON has.",
    },
    "yaml-scalar": {
      meaning: "A scalar means one thing in YAML 1.1 and another in YAML 1.2.",
      remedy: "Quote the text, or write `true`, `false` or a decimal number.",
    },
    "yaml-syntax": {
      meaning: "The file is not valid YAML, or not valid JSON.",
      remedy: "Correct the line that the message names.",
      example: "yaml-syntax",
    },
    "yaml-tag": {
      meaning: "A YAML tag is not allowed, or kubectl ignores it.",
      remedy: "Remove the tag.",
      example: "when-tag",
    },
    "yaml-text": { meaning: "A text has characters that no file can hold.", remedy: "Remove the characters." },
  }),
);
