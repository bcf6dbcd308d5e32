import { checkController, checkControllers, namespacesOf } from "#runtime/api/controller-validation.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type { KubernetesDependent, WorkflowDefinition } from "#runtime/workflow/workflow-definition.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { dependentOf, page, workflowOf } from "../workflow/graphs.js";
import { finalizerOf } from "#runtime/reconcile/controller-definition.js";

const reconcile = () => {};
const cleanup = () => {};

function definitionOf(settings: Partial<ControllerDefinition> = {}): ControllerDefinition {
  return { name: "page", workflow: workflowOf([]), ...settings };
}

const role = builtinDefinition("rbac.authorization.k8s.io/v1", "ClusterRole");
const readOnly = { mode: "readOnly", desired: undefined as never } as const;

suite("controller validation", (test) => {
  const refused: [settings: Partial<ControllerDefinition>, message: string, what?: string][] = [
    [
      { finalizer: "cleanup", workflow: { ...workflowOf([]), primary: builtinDefinition("v1", "Service") } },
      'has the finalizer "cleanup"; for built-in kinds it needs a domain, as "services.gen-operator.dev/finalizer" has',
    ],
    [{ finalizer: "orphan" }, 'has the finalizer "orphan", which is Kubernetes\' own; use another name'],
    [{ formerFinalizers: ["a b"] }, 'has the finalizer "a b"; it must be a domain, a slash and a name'],
    [
      { formerFinalizers: ["pages.example.com/finalizer"] },
      'has its finalizer "pages.example.com/finalizer" among its former finalizers (formerFinalizers); remove it there',
    ],
    [{ finalizer: "example.com/" }, 'has the finalizer "example.com/"'],
    [{ finalizer: "Example.com/x" }, 'has the finalizer "Example.com/x"'],
    [{ finalizer: `example.com/${"x".repeat(64)}` }, "it must be a domain, a slash and a name"],
    [
      { onAllEvents: true, reconciler: { reconcile, cleanup } },
      "sets onAllEvents and has cleanup(), which is never called then; remove cleanup(), and handle deletion in reconcile()",
    ],
    [
      { onAllEvents: true, workflow: workflowOf([dependentOf("a"), dependentOf("b")]) },
      "reconciles on all events, and has dependents (a, b)",
    ],
    [{ inputs: ["metadata.labels.app" as never] }, 'has the input "metadata.labels.app"; it must be "metadata.labels"'],
    [{ cleanUpUnselected: true }, "has cleanUpUnselected and no labelSelector or fieldSelector"],
    [{ cleanupPolicy: "never" as never }, 'has "never" for cleanupPolicy; it must be "finalizer" or "sweep"'],
    [
      { cleanupPolicy: "sweep", reconciler: { reconcile, cleanup } },
      "a reconciler with cleanup(), which needs the finalizer",
    ],
    [{ cleanupPolicy: "sweep", onAllEvents: true }, "reconciles on all events"],
    [
      { cleanupPolicy: "sweep", workflow: workflowOf([dependentOf("a", { operations: { delete: () => {} } })]) },
      'has cleanupPolicy "sweep", and delete() of dependent "a" needs the finalizer',
    ],
    [
      { cleanupPolicy: "sweep", workflow: workflowOf([dependentOf("a", { heldForCleanup: true })]) },
      'heldForCleanup of dependent "a" needs the finalizer',
    ],
    [{ filters: { onDelete: () => true } as never }, "has a filter onDelete"],
    [
      { formerFieldManagers: ["old", "page"] },
      'has its field manager "page" among its former field managers (formerFieldManagers); remove it there',
    ],
    [{ conditionPrefix: "Backup" }, "sets conditionPrefix, but keeps no conditions; set statusConditions: managed"],
    [
      { fieldManager: "" },
      'writes as the field manager ""; it needs 1 to 128 bytes: state another name, or a fieldManager',
    ],
    [{ fieldManager: "x".repeat(129) }, "it needs 1 to 128 bytes", "129 characters"],
    [{ fieldManager: "é".repeat(65) }, "it needs 1 to 128 bytes", "65 characters of 2 bytes"],
    [
      { workflow: workflowOf([dependentOf("a", { fieldManager: "x".repeat(129) })]) },
      "it needs 1 to 128 bytes",
      "of a dependent",
    ],
    ...(
      [
        [{ desired: undefined as never }, "has no desired(); add it, or set mode: readOnly"],
        [{ mode: "readOnly" }, "is readOnly and has a desired()"],
        [{ ref: { name: "x" } }, "names its object (ref), and is not readOnly"],
        [{ ...readOnly, ref: { name: "x" }, bulk: {} }, "names its object (ref) and states bulk; leave it out"],
        [
          { ...readOnly, ref: { name: "x" }, namespace: "y" },
          "names its object (ref) and states namespace; leave it out, or state ref.namespace",
        ],
        [{ ...readOnly, existing: "adopt" }, "is readOnly, so it is never written; remove existing"],
        [{ ...readOnly, onImmutable: "recreate" }, "is readOnly, so it is never written; remove onImmutable"],
        [{ onImmutable: "replace" as never }, 'has "replace" for onImmutable; it must be "fail" or "recreate"'],
        ...["PersistentVolumeClaim", "Namespace", "PersistentVolume"].map(
          (kind) =>
            [
              { resource: builtinDefinition("v1", kind), deletion: "ordered", onImmutable: "recreate" },
              `sets onImmutable: recreate, and the deletion of a ${kind}.v1 loses data; remove onImmutable`,
            ] satisfies [Partial<KubernetesDependent>, string],
        ),
        [
          { mode: "createOnly", onImmutable: "recreate" },
          "is createOnly, so that it is never updated, and sets onImmutable",
        ],
        [
          { deletion: "orphan", onImmutable: "recreate" },
          "is orphaned, so that it is never deleted, and sets onImmutable",
        ],
        [{ mode: "createOnly", again: () => 1 }, 'has again without mode: "once"'],
        [{ mode: "once", matcher: () => true }, 'has mode: "once", so that it is never updated, and sets matcher'],
        [
          { mode: "once", operations: { update: () => {} } },
          'has mode: "once", so that it is never updated, and sets operations.update',
        ],
        [{ mode: "once", operations: { create: false } }, 'has mode: "once", and is created by another client'],
        [
          { mode: "once", again: () => 1, deletion: "orphan" },
          "is created again (again) when the object before is deleted",
        ],
        [{ mode: "once", onImmutable: "recreate" }, "is once, so that it is never updated, and sets onImmutable"],
        [{ operations: { update: false }, onImmutable: "recreate" }, "is never updated (operations.update), and sets"],
        [
          { operations: { create: false }, onImmutable: "recreate" },
          "is created by another client (operations.create)",
        ],
        [{ operations: { delete: false }, onImmutable: "recreate" }, "is never deleted (operations.delete), and sets"],
        [{ operations: { delete: () => {} }, onImmutable: "recreate" }, "has its own delete, and sets onImmutable"],
        [{ ...readOnly, deletion: "ordered" }, "is readOnly, so it is never written; remove deletion"],
        [
          { cluster: "west", deletion: "garbageCollected" },
          'lives in cluster "west", where the garbage collector cannot find its primary',
        ],
        [{ resource: role }, "is cluster-scoped, so that no Page.v1.example.com in a namespace can own it"],
        [
          { resource: role, deletion: "ordered", namespace: "x" },
          'states the namespace "x", and ClusterRole.v1.rbac.authorization.k8s.io is cluster-scoped',
        ],
        [
          { eventSource: "maps", labelSelector: "a=b" },
          'shares event source "maps" and states labelSelector, which is for that source to say',
        ],
      ] satisfies [Partial<KubernetesDependent>, string][]
    ).map(([rest, problem]): [Partial<ControllerDefinition>, string] => [
      { workflow: workflowOf([dependentOf("a", rest)]) },
      `has the dependent "a", which ${problem}`,
    ]),
    [
      {
        workflow: {
          ...workflowOf([dependentOf("a")]),
          removed: { a: { resource: dependentOf("a").resource, deletion: "garbageCollected" } },
        },
      },
      'lists dependent "a" in removed, but still has it; remove it from one of them',
    ],
    [
      {
        workflow: { ...workflowOf([]), removed: { a: { resource: dependentOf("a").resource, deletion: "ordered" } } },
        workflows: { extra: workflowOf([dependentOf("a")]) },
      },
      'lists dependent "a" in removed, but still has it in its workflow "extra"',
    ],
    [
      {
        workflow: workflowOf([]),
        workflows: { extra: { ...workflowOf([]), removed: { a: { resource: role, deletion: "ordered" } } } },
      },
      'sets removed in its workflow "extra"; move it to the workflow of the controller',
    ],
    [
      { workflow: workflowOf([]), workflows: { extra: workflowOf([dependentOf("a", { resource: role })]) } },
      'has the dependent "a", which is cluster-scoped',
    ],
    [{ namespaces: [] }, "has an empty list of namespaces; name at least one, or leave the list out"],
    [{ maxConcurrentReconciles: 0 }, "has 0 for maxConcurrentReconciles; it needs 1 or more"],
    [{ maxReconciliationIntervalMs: Number.NaN }, "has NaN for maxReconciliationIntervalMs; it needs a number"],
    [{ reconcileTimeoutMs: Number.NaN }, "has NaN for reconcileTimeoutMs"],
    [{ workflow: { ...workflowOf([]), maxConcurrency: 0 } }, "has 0 for workflow.maxConcurrency; it needs 1 or more"],
    [
      { workflows: { extra: { ...workflowOf([]), maxConcurrency: Number.NaN } } },
      "has NaN for workflows.extra.maxConcurrency; it needs 1 or more",
    ],
    [
      { workflow: { ...workflowOf([]), maxConcurrency: 1.5 } },
      "has 1.5 for workflow.maxConcurrency; it needs a whole number",
    ],
    [
      { workflows: { extra: { ...workflowOf([]), maxConcurrency: 1.5 } } },
      "has 1.5 for workflows.extra.maxConcurrency; it needs a whole number",
    ],
    [{ retry: { maxRetries: Number.NaN } }, "has NaN for retry.maxRetries; it needs -1 or more"],
    [{ retry: { initialIntervalMs: -5 } }, "has -5 for retry.initialIntervalMs; it needs 0 or more"],
    [{ retry: { initialIntervalMs: "100" as never } }, 'has "100" for retry.initialIntervalMs; it needs 0 or more'],
    [{ retry: { multiplier: 0.5 } }, "has 0.5 for retry.multiplier; it needs 1 or more"],
    [{ retry: { maxIntervalMs: -2 } }, "has -2 for retry.maxIntervalMs; it needs -1 or more"],
    [{ retry: { jitter: 1.1 } }, "has 1.1 for retry.jitter; it needs 0 to 1"],
    [{ rateLimit: { maxReconciliations: 2 } as never }, "has undefined for rateLimit.withinMs; it needs 0 or more"],
    [
      { rateLimit: { maxReconciliations: Number.NaN, withinMs: 1 } },
      "has NaN for rateLimit.maxReconciliations; it needs a number",
    ],
  ];
  for (const [settings, message, what] of refused)
    test(`rejects a definition: ${message}${what === undefined ? "" : ` (${what})`}`, () => {
      assert.throws(
        () => checkController(definitionOf(settings)),
        (error: Error) => error.message.startsWith('controller "page" ') && error.message.includes(message),
      );
    });

  test("accepts valid definitions", () => {
    const accepted: Partial<ControllerDefinition>[] = [
      {},
      { finalizer: "example.com/cleanup" },
      { onAllEvents: true, reconciler: { reconcile } },
      { reconciler: { reconcile, cleanup }, workflow: workflowOf([dependentOf("a")]) },
      { maxReconciliationIntervalMs: 0, namespaces: "current" },
      { workflow: workflowOf([dependentOf("a", { ...readOnly, resource: role, cluster: "west" })]) },
      {
        workflow: {
          ...workflowOf([dependentOf("a", { movedFrom: ["c"] })]),
          removed: {
            a: { resource: role, deletion: "garbageCollected" },
            b: { resource: role, deletion: "orphan" },
            c: { resource: role, deletion: "ordered" },
          },
        },
      },
      ...[
        dependentOf("a", { namespace: "here" }),
        dependentOf("a", { labelSelector: "a=b" }),
        dependentOf("a", { fieldSelector: "metadata.name=a" }),
        dependentOf("b", { movedFrom: ["a"], namespace: "here" }),
      ].map((each) => ({
        workflow: { ...workflowOf([each]), removed: { a: { resource: each.resource, deletion: "ordered" as const } } },
      })),
      { filters: { onAdd: () => true, onUpdate: () => true, generic: () => true } },
      { retry: { maxRetries: -1, maxIntervalMs: -1, jitter: 0, initialIntervalMs: undefined as never } },
      { retry: { next: () => undefined, isLastAttempt: () => true }, rateLimit: () => ({ take: () => 0 }) },
      { rateLimit: { maxReconciliations: -1, withinMs: 0 } },
    ];
    assert.equal(
      accepted.map((settings) => checkController(definitionOf(settings))),
      accepted.map(() => undefined),
    );
  });
});

suite("finalizer of a controller", (test) => {
  const withOrdered = workflowOf([dependentOf("a", { deletion: "ordered" })]);

  test("is needed for a cleanup function and for dependents with deletion: ordered (R18)", () => {
    assert.is(finalizerOf(definitionOf()), undefined);
    assert.is(finalizerOf(definitionOf({ reconciler: { reconcile } })), undefined);
    assert.is(finalizerOf(definitionOf({ workflow: workflowOf([dependentOf("a")]) })), undefined);
    assert.is(finalizerOf(definitionOf({ reconciler: { reconcile, cleanup } })), "pages.example.com/finalizer");
    assert.is(finalizerOf(definitionOf({ workflow: withOrdered })), "pages.example.com/finalizer");
  });

  test("is needed for deletion: orphan, but not for read-only or removed ordered dependents", () => {
    const finalizerWith = (rest: Partial<KubernetesDependent>, workflow: Partial<WorkflowDefinition> = {}) =>
      finalizerOf(definitionOf({ workflow: { ...workflowOf([dependentOf("a", rest)]), ...workflow } }));
    assert.is(finalizerWith({ deletion: "orphan" }), "pages.example.com/finalizer");
    assert.is(finalizerWith({ ...readOnly, deletion: "ordered" }), undefined);
    assert.is(
      finalizerWith({}, { removed: { b: { resource: role, deletion: "orphan" } } }),
      "pages.example.com/finalizer",
    );
    assert.is(finalizerWith({}, { removed: { b: { resource: role, deletion: "ordered" } } }), undefined);
  });

  test("is the configured name, else derived from plural and group, with a domain for built-in kinds", () => {
    const settings = { reconciler: { reconcile, cleanup } };
    assert.is(finalizerOf(definitionOf({ ...settings, finalizer: "x.io/y" })), "x.io/y");
    const ofCore = { primary: builtinDefinition("v1", "ConfigMap"), dependents: [] };
    assert.is(finalizerOf(definitionOf({ ...settings, workflow: ofCore })), "configmaps.gen-operator.dev/finalizer");
    const ofApps = { primary: { ...page, group: "apps", plural: "deployments" }, dependents: [] };
    assert.is(finalizerOf(definitionOf({ ...settings, workflow: ofApps })), "deployments.apps/finalizer");
  });
});

suite("validation of all controllers", (test) => {
  const cleaning = definitionOf({ name: "one", reconciler: { reconcile, cleanup } });
  const another = { ...cleaning, name: "two" };
  const older: ControllerDefinition = {
    ...another,
    workflow: { primary: { ...page, version: "v1beta1" }, dependents: [] },
  };
  const idle = definitionOf({ name: "two" });
  const shared = (renamed: string) =>
    'controllers "one" and "two" share the finalizer "pages.example.com/finalizer" of pages.example.com: the first to finish ' +
    `removes it before the other has cleaned up; give "${renamed}" one of its own, such as "pages.example.com/${renamed}"`;
  const refused: [title: string, definitions: readonly ControllerDefinition[], message: string][] = [
    ["two controllers of the same name", [definitionOf(), definitionOf()], 'two controllers are named "page"'],
    ["two controllers of one kind that clean up with the same finalizer", [cleaning, another], shared("two")],
    [
      "two controllers of two versions of one kind that clean up with the same finalizer",
      [cleaning, older],
      shared("two"),
    ],
    ["a controller without cleanup that would remove the finalizer of another one", [cleaning, idle], shared("two")],
    [
      "a controller with cleanup whose finalizer an earlier one without cleanup would remove",
      [{ ...idle, name: "one" }, another],
      shared("one"),
    ],
    [
      "two controllers with the same configured finalizer",
      [cleaning, another].map((each) => ({ ...each, finalizer: "example.com/both" })),
      'controllers "one" and "two" share the finalizer "example.com/both"',
    ],
    [
      "a former name that is the name of another controller",
      [
        definitionOf({ name: "one", formerNames: ["two"] }),
        definitionOf({ name: "two", finalizer: "example.com/two" }),
      ],
      'controller "one" has the former name "two", which controller "two" has or had',
    ],
    [
      "a former field manager that is the field manager of another controller",
      [
        definitionOf({ name: "one", formerFieldManagers: ["two"] }),
        definitionOf({ name: "two", finalizer: "example.com/two" }),
      ],
      'controller "one" has the former field manager "two", as which controller "two" writes; remove it from formerFieldManagers',
    ],
    [
      "a controller whose former names contain its own name",
      [definitionOf({ formerNames: ["page"] })],
      'controller "page" has its own name among its former names (formerNames)',
    ],
    [
      "an invalid controller among valid ones",
      [cleaning, definitionOf({ namespaces: [] })],
      'controller "page" has an empty list',
    ],
  ];
  for (const [title, definitions, message] of refused)
    test(`rejects ${title}`, () => {
      assert.throws(
        () => checkControllers(definitions),
        (error: Error) => error.message.startsWith(message),
      );
    });

  const configMaps = { primary: builtinDefinition("v1", "ConfigMap"), dependents: [] };
  const accepted: [title: string, definitions: readonly ControllerDefinition[]][] = [
    ["two controllers of one kind with different finalizers", [cleaning, { ...another, finalizer: "x.io/two" }]],
    ["two controllers of one kind without cleanup", [{ ...idle, name: "one" }, idle]],
    [
      "a controller with cleanup beside one of the same kind with onAllEvents",
      [cleaning, { ...idle, onAllEvents: true }],
    ],
    [
      "the same finalizer on two kinds",
      [cleaning, { ...another, workflow: configMaps }].map((each) => ({ ...each, finalizer: "x.io/both" })),
    ],
  ];
  for (const [title, definitions] of accepted)
    test(`accepts ${title}`, () => assert.is(checkControllers(definitions), undefined));
});

suite("namespaces of a controller", (test) => {
  const connection = { origin: "context x of ~/.kube/config" };

  test("are the configured list, or all namespaces by default", () => {
    assert.equal(namespacesOf(definitionOf({ namespaces: ["a", "b"] }), connection), ["a", "b"]);
    assert.is(namespacesOf(definitionOf(), connection), undefined);
  });

  test("resolve current to the namespace of the connection, and fail without one", () => {
    const current = definitionOf({ namespaces: "current" });
    assert.equal(namespacesOf(current, { ...connection, namespace: "home" }), ["home"]);
    assert.throws(
      () => namespacesOf(current, connection),
      /^controller "page" watches the namespace of its connection, and context x of ~\/.kube\/config has none/,
    );
  });
});
