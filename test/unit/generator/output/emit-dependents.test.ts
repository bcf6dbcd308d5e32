import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { formatDiagnostic } from "#generator/diagnostic.js";
import { readProject } from "#generator/read/read-project.js";
import { acceptWarnings, buildModel } from "#generator/check/build-model.js";
import { checkConditions } from "#generator/code/check-types.js";
import { emitProject } from "#generator/emit/emit-project.js";
import type { OutputFile } from "#generator/emit/output-file.js";
import { chosenCompilers, compileTogether, type ErrorsOf } from "../../../support/projects/compile.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: shops.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Shop, plural: shops, singular: shop }
  versions:
    - name: v1
      served: true
      storage: true
      subresources: { status: {} }
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: { type: object, properties: { size: { type: integer } } }
            status:
              type: object
              properties:
                databaseId: { type: string }
                lease: { type: object, required: [id], properties: { id: { type: string }, until: { type: integer } } }
                seats:
                  type: object
                  additionalProperties: { type: object, properties: { id: { type: string }, row: { type: string } } }
                debtIds: { type: object, additionalProperties: { type: string } }
                conditions:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [type]
                  items:
                    type: object
                    required: [lastTransitionTime, message, reason, status, type]
                    properties:
                      lastTransitionTime: { type: string, format: date-time }
                      message: { type: string }
                      observedGeneration: { type: integer, format: int64 }
                      reason: { type: string }
                      status: { type: string, enum: ["True", "False", "Unknown"] }
                      type: { type: string }
`;

const spec = `
apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata: { name: shop }
spec:
  primary: example.com/v1/Shop
  controller: { indexes: { size: { function: sizesOf }, shelf: { function: sizesOf } } }
  workflow: { invocation: explicit, exceptions: result, maxConcurrency: 7, pruning: false }
  statusConditions: managed
  dependents:
    shards:
      resource: v1/ConfigMap
      bulk: { maxConcurrency: 3 }
      matcher: { function: isSameData }
      readyPostcondition: { function: isFilled }
      deletePostcondition: { when: 'live?.data?.["keep"] === undefined || item?.startsWith("a") === true' }
      deletion: ordered
    servers:
      resource: apps/v1/Deployment
      bulk: true
      itemsDependOn: [shards]
      deletion: ordered
      operations: { create: own, update: own, delete: own }
      readyPostcondition: { condition: { type: Available } }
    given:
      resource: v1/Service
      mode: readOnly
      eventSource: services
      heldForCleanup: true
      readyPostcondition: { fieldEquals: { path: spec.type, value: ClusterIP } }
      activationCondition: { function: isFilled }
    once:
      resource: v1/Secret
      mode: createOnly
      accept: [{ rule: powerful-right, reason: shops may be in any namespace }]
      labelSelector: app.example.com/part-of=shop,tier==back
      operations: { create: own }
      existing: adopt
      heldForCleanup: true
      timeout: 30s
      retry: { maxRetries: 3, initialInterval: 1s, multiplier: 2, maxInterval: 1m }
    job:
      resource: batch/v1/Job
      mode: once
      again: primary.spec?.size
    waiting:
      resource: v1/ConfigMap
      dependsOn: [job]
      reconcilePrecondition: { when: secondary.job?.status !== null }
    taken:
      resource: v1/Secret
      dependsOn: [once]
      onImmutable: recreate
      existing: { when: 'live.metadata.annotations?.["example.com/adopt"] === secondary.once.metadata.name' }
    found:
      resource: v1/ConfigMap
      bulk: true
      existing: { function: isOurs }
    role:
      resource: v1/Pod
      existing: { fieldEquals: { path: spec.hostNetwork, value: false } }
    drained:
      resource: apps/v1/Deployment
      dependsOn: [once]
      deletion: ordered
      operations: { delete: own }
      deletePostcondition: { when: 'live === undefined && secondary.once?.data === undefined' }
    budget:
      resource: policy/v1/PodDisruptionBudget
      existing: { condition: { type: DisruptionAllowed } }
    named:
      resource: v1/Secret
      ref: { name: "primary.metadata.annotations?.secret", namespace: "'shared'" }
      dependsOn: [shards]
      readyPostcondition: { when: 'live?.data?.["user"] !== undefined' }
    class:
      resource: networking.k8s.io/v1/IngressClass
      ref: { name: "'main'" }
    far:
      resource: { apiVersion: x.example.com/v1, kind: Widget, plural: widgets, scope: Namespaced }
      cluster: other
      deletion: orphan
      serverSideApply: false
      fieldManager: me
      released: [spec.size, spec.more.weight]
      dependsOn: [shards]
      matcher: { function: isSameWidget }
      readyPostcondition: { when: 'secondary.shards["a"] !== undefined && live?.["spec"] !== undefined' }
    database:
      external: { perPrimaryPoll: { every: 5s }, state: { status: databaseId }, creationGrace: 1m }
      dependsOn: [once, { name: given, optional: true }]
      matcher: { function: isSameDatabase }
      readyPostcondition: { function: isOpen }
      deletePostcondition: { function: isDropped }
    users:
      external: { poll: { every: 1m }, type: src/user.ts#User, capabilities: [create, delete], state: { in: secret, perItem: true } }
      bulk: true
      dependsOn: [database]
    tickets:
      external: { inbound: {}, schema: schemas/ticket.yaml }
      reconcilePrecondition: { when: live !== undefined || primary.spec?.size !== 0 }
    alerts:
      external: { inbound: { fetch: true }, state: { resource: example.com/v1/Shop, path: status.databaseId }, desiredType: src/user.ts#Draft, onDeleteFailure: release }
      matcher: { function: isSameAlert }
    leftovers:
      external: { poll: { every: 1m }, capabilities: [delete] }
    invoices:
      external: { eventSource: billing, capabilities: [] }
    bills:
      external: { eventSource: billing, desiredType: src/user.ts#Draft, capabilities: [create, delete] }
    credits:
      external: { eventSource: billing }
      bulk: true
    debts:
      external: { eventSource: billing, state: { status: debtIds } }
      bulk: true
    lease:
      external: { perPrimaryPoll: { every: 1m }, state: { status: lease } }
    seats:
      external: { perPrimaryPoll: { every: 1m }, state: { resource: example.com/v1/Shop, path: status.seats } }
      bulk: true
    tokens:
      external: { inbound: {}, state: { in: secret, type: src/user.ts#KeptToken } }
  removed:
    old: { resource: v1/ConfigMap, deletion: ordered, namespace: elsewhere, cluster: other }
    older: { resource: { apiVersion: x.example.com/v1, kind: Widget, plural: widgets, scope: Namespaced }, deletion: orphan }
  eventSources:
    services: { resource: v1/Service, mapping: { label: { name: example.com/shop } } }
    billing: { poll: { every: 1h } }
    sizes: { resource: v1/ConfigMap, mapping: { function: shopsOfSize } }
`;

const files = {
  "crds/shops.yaml": crd,
  "workflow.yaml": spec,
  "src/user.ts":
    "export interface User { readonly name: string }\nexport interface Draft { readonly name: string }\n" +
    "export interface KeptToken { readonly id: string; readonly secret: string }\n",
  "schemas/ticket.yaml":
    "type: object\nrequired: [id, kind]\nproperties:\n  id: { type: string }\n  kind: { type: string, enum: [bug, wish] }\n" +
    "  watchers: { type: array, items: { type: object, properties: { name: { type: string } } } }\n",
};

let emittedOnce: Promise<OutputFile[]> | undefined;
const emit = () => (emittedOnce ??= emitAnew());

async function emitAnew(): Promise<OutputFile[]> {
  await using folder = await createTemporaryFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder.path, path)), { recursive: true });
    await writeFile(join(folder.path, path), text);
  }
  const input = await readProject(folder.path);
  const { model, diagnostics, locate } = await buildModel(input);
  const found = acceptWarnings([...input.diagnostics, ...diagnostics], input.workflows);
  assert.equal(found.map(formatDiagnostic), []);
  const emitted = await emitProject(model!);
  assert.equal((await checkConditions(model!, emitted, { code: [], locate })).map(formatDiagnostic), []);
  return emitted;
}

/** What users write in place of stubs, by the names of their projects. */
type Edits = { readonly [path: string]: (stub: string) => string };

const conditions = `
  import type { DatabaseCondition, FoundExisting, ShardsConditionArguments } from "../generated/shop/types.js";
  export const isFilled = ({ context }: Pick<ShardsConditionArguments, "context">) => ({ isMet: context.isPrimaryDeleted, detail: "why" });
  export const isDropped: DatabaseCondition = ({ live }) => live === undefined;
  export const isOurs: FoundExisting = ({ live, item, primary }) => live.data?.[item ?? ""] === primary.metadata.uid;
  export const isOpen: DatabaseCondition<{ readonly connections: number }> = () => ({ isMet: true, detail: { connections: 1 } });`;
const reconciler = `
  import type { ShopReconciler } from "../generated/shop/types.js";
  export const reconciler: ShopReconciler = {
    reconcile: async ({ context }) => {
      const { dependents } = await context.workflow.reconcile();
      const connections: number | undefined = dependents.database.conditions?.readyPostcondition?.detail?.connections;
      const why: string | undefined = dependents.shards.items?.["a"]?.conditions?.readyPostcondition?.detail;
      context.logger.info({ connections, why }, "found");
    },
  };`;
const mapper = `
  import type { SizesMapper } from "../../generated/shop/types.js";
  export const shopsOfSize: SizesMapper = ({ data }, { primaries }) => primaries.byIndex("size", data?.size ?? "").map(({ metadata }) => metadata.name);`;

const details: Edits = {
  "src/shop/conditions.ts": () => conditions,
  "src/shop/reconciler.ts": () => reconciler,
  "src/shop/event-sources/sizes.ts": () => mapper,
};

const stubOf = (name: string) => new RegExp(`${name}: \\(\\) => \\{[^}]*\\},`);
const mistakes: Edits = {
  "src/shop/dependents/database.ts": (text) => text.replace(stubOf("fetch"), 'fetch: () => [{ name: "a" }],'),
  "src/shop/dependents/tickets.ts": (text) => text.replace(stubOf("update"), "update: () => undefined,"),
  "src/shop/dependents/bills.ts": (text) => text.replace("isOwn: () =>", "isOwns: () =>"),
  "src/shop/dependents/credits.ts": (text) => text.replace(stubOf("delete"), "delete: ({ ident }) => ident,"),
  "src/shop/dependents/users.ts": (text) => text.replace(stubOf("delete"), ""),
  "src/shop/dependents/leftovers.ts": (text) => text.replace("idOf:", "create: () => ({ id: 'a' }), idOf:"),
  "src/shop/dependents/servers.ts": (text) => text.replace("delete: ({ next }) => next(),", ""),
  "src/shop/event-sources/billing.ts": (text) => text.replace(stubOf("fetch"), ""),
};

const projects: { readonly [name: string]: Edits } = { stubs: {}, details, mistakes };

let compiledOnce: Promise<ErrorsOf[]> | undefined;
const compiled = () => (compiledOnce ??= compileAll());

async function compileAll(): Promise<ErrorsOf[]> {
  const emitted = await emit();
  const inputs = Object.entries(files).map(([path, content]) => ({ path, content }));
  const edited = ([name, edits]: [string, Edits]) => [
    name,
    [...inputs, ...emitted.map(({ path, content }) => ({ path, content: edits[path]?.(content) ?? content }))],
  ];
  return compileTogether(Object.fromEntries(Object.entries(projects).map(edited)), chosenCompilers);
}

suite("emitProject with dependents", (declareTest) => {
  // Compilers take seconds, more so when other tests run beside them.
  const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 120_000 });

  test("emits every kind of dependent as in the spec, and compiles with its stubs", async () => {
    const emitted = await emit();
    const textOf = (path: string) => emitted.find((file) => file.path === path)?.content ?? "";
    const workflow = textOf("src/generated/shop/workflow.ts").replace(/\s+/g, " ");
    for (const part of [
      'invocation: "explicit", exceptions: "result", maxConcurrency: 7, pruning: false, removed: { old: { resource: ConfigMap, deletion: "ordered", namespace: "elsewhere", cluster: "other" }',
      'dependsOn: ["once", { name: "given", optional: true }]',
      'bulk: { maxConcurrency: 3 }, deletion: "ordered", matcher: matchers.isSameData, readyPostcondition: conditions.isFilled',
      'itemsDependOn: ["shards"], bulk: {}',
      "operations: { create: serversDependent.operations.create, update: serversDependent.operations.update, delete: serversDependent.operations.delete, }",
      "operations: { create: onceDependent.operations.create }",
      'readyPostcondition: conditionIs({ type: "Available", status: "True" })',
      '.reference("named", { resource: Secret, ref: { // prettier-ignore name: ({ primary }) => primary.metadata.annotations?.secret, namespace: "shared", }, dependsOn: ["shards"], // prettier-ignore readyPostcondition: ({ live }) => live?.data?.["user"] !== undefined, })',
      '.reference("class", { resource: IngressClass, ref: { name: "main" }, })',
      '.dependent("given", { resource: Service, mode: "readOnly", eventSource: "services"',
      'readyPostcondition: fieldEquals("spec.type", "ClusterIP")',
      'timeoutMs: 30000, retry: { maxRetries: 3, initialIntervalMs: 1000, multiplier: 2, maxIntervalMs: 60000 }, mode: "createOnly", labelSelector: "app.example.com/part-of=shop,tier==back", existing: "adopt", heldForCleanup: true',
      '.dependent("given", { resource: Service, mode: "readOnly", eventSource: "services", heldForCleanup: true,',
      'state: { kind: "status", path: ["databaseId"] }, creationGraceMs: 60000,',
      "deletePostcondition: ({ secondary, live }: DrainedConditionArguments) => live === undefined",
      "deletePostcondition: conditions.isDropped,",
      '.dependent("job", { resource: Job, desired: jobDependent.desired, mode: "once", // prettier-ignore again: ({ primary }) => primary.spec?.size, })',
      'dependsOn: ["once"], onImmutable: "recreate", // prettier-ignore existing: (',
      'existing: ({ secondary, live }: TakenExistingArguments) => live.metadata.annotations?.["example.com/adopt"] === secondary.once.metadata.name, })',
      "existing: conditions.isOurs, })",
      'existing: fieldEquals("spec.hostNetwork", false), })',
      'existing: conditionIs({ type: "DisruptionAllowed", status: "True" }), })',
      'resource: untypedResource({ apiVersion: "x.example.com/v1", kind: "Widget", plural: "widgets", scope: "Namespaced"',
      'cluster: "other", deletion: "orphan", serverSideApply: false, fieldManager: "me", released: ["spec.size", "spec.more.weight"]',
      'source: { kind: "perPrimaryPoll", intervalMs: 5000, fetch: databaseDependent.fetch }',
      'delete: databaseDependent.delete, state: { kind: "status", path: ["databaseId"] }',
      "matches: matchers.isSameDatabase",
      'state: { kind: "secret", perItem: true }',
      'state: { kind: "resource", path: ["status", "databaseId"], resource: Shop }, onDeleteFailure: "release"',
      'source: { kind: "eventSource", name: "billing" }, idOf: invoicesDependent.idOf, }',
      "export const alertsSource = createInbound<AlertsResource>();",
      'source: { kind: "inbound", fetch: alertsDependent.fetch, channel: alertsSource }',
      "idOf: leftoversDependent.idOf, delete: leftoversDependent.delete, }",
      "idOf: billsDependent.idOf, isOwn: billsDependent.isOwn, desired: billsDependent.desired",
      "idOf: creditsDependent.idOf, isOwn: creditsDependent.isOwn,",
      "idOf: debtsDependent.idOf, desired: debtsDependent.desired,",
      "idOf: leaseDependent.idOf, stateOf: leaseDependent.stateOf, desired: leaseDependent.desired,",
      'state: { kind: "secret" }',
    ])
      assert.ok(workflow.includes(part), `${part}\n${workflow}`);
    assert.match(textOf("src/generated/shop/controller.ts"), /statusConditions: "managed"/);
    assert.match(textOf("src/main.ts"), /other: await loadConnection\(\{ kubeconfig: process\.env\.OTHER_KUBECONFIG/);
    assert.match(textOf("src/shop/reconciler.ts"), /await context\.workflow\.reconcile\(\)/);
    assert.match(textOf("src/generated/shop/external/tickets.ts"), /kind: "bug" \| "wish";/);
    assert.match(
      textOf("src/generated/shop/types.ts"),
      /interface UsersExternal [^]*?delete: [^;]*readonly state\?: string/,
      "the id that is kept",
    );
    assert.match(
      textOf("src/generated/shop/types.ts"),
      /interface DatabaseExternal [^]*?context: FetchContext<ShopDependents>/,
      "what is known of the primary",
    );
    assert.match(
      textOf("src/generated/shop/types.ts").replace(/\s+/g, " "),
      /DatabaseNeeds \{ readonly once: Secret; \}/,
      "what an optional edge leads to may be absent",
    );
    assert.match(
      textOf("src/shop/conditions.ts"),
      'export const isDropped: DatabaseDeletionCondition = () => {\n  throw new Error("isDropped() is not implemented; edit src/shop/conditions.ts");',
      "a condition that nobody wrote, as its name is mistyped, decides nothing",
    );
    const types = textOf("src/generated/shop/types.ts").replace(/\s+/g, " ");
    for (const part of [
      // What a dependent waits for may be gone in a cleanup.
      "export type DrainedConditionArguments = ConditionArguments<Shop, ShopDependents, Deployment>;",
      "export type DatabaseCondition<Detail = never> = Condition<Shop, DatabaseSecondary, Detail, DatabaseResource>;",
      "export type DatabaseDeletionCondition<Detail = never> = Condition<Shop, ShopDependents, Detail, DatabaseResource>;",
      "readonly delete: (args: DeleteArguments<Shop, ShopDependents, Deployment>) => void | Promise<void>;",
      "live: DatabaseResource, args: DependentArguments<Shop, ShopDependents> & { readonly state?: string | undefined; readonly token: string }, ) => void",
      'export type LeaseKept = NonNullable<NonNullable<Shop["status"]>["lease"]> & { readonly id: string };',
      "readonly stateOf: (resource: LeaseResource) => LeaseKept;",
      "context: FetchContext<ShopDependents, LeaseKept>",
      "readonly state?: LeaseKept | undefined",
      'export type SeatsKept = NonNullable<NonNullable<NonNullable<Shop["status"]>["seats"]>[string]> & { readonly id: string; };',
      'import type { KeptToken as TokensKept } from "../../user.js";',
    ])
      assert.ok(types.includes(part), part);
    assert.match(textOf("src/shop/conditions.ts"), 'throw new Error("isOurs() is not implemented; edit');
    assert.match(
      textOf("src/shop/dependents/tokens.ts"),
      /export const external: TokensExternal = \{[^]*stateOf: \(\) => \{/,
    );
    assert.match(
      textOf("src/generated/shop/controller.ts"),
      /indexes: { size: indexes.sizesOf, shelf: indexes.sizesOf }/,
    );
    assert.match(
      textOf("src/shop/indexes.ts"),
      'throw new Error("sizesOf() is not implemented; edit src/shop/indexes.ts");',
    );
    assert.match(
      textOf("src/generated/shop/types.ts").replace(/\s+/g, " "),
      'object: SizesResource, context: MapperContext<"size" | "shelf", Shop>',
    );
    const once = textOf("src/shop/dependents/once.ts");
    assert.match(once, `labels: { "app.example.com/part-of": "shop", tier: "back" }`, "by which it is watched");
    assert.match(once, "creates it, never updates it, and links it");
    assert.is(textOf("src/shop/dependents/given.ts"), "", "what is only read has no desired");
    assert.not.match(textOf("src/shop/dependents/leftovers.ts"), /desired/);
    for (const { path, content } of emitted)
      if (path.startsWith("src/shop/"))
        assert.not.match(content, /\bas (unknown|never|any|[A-Z]\w*)\b|[:<] ?any\b/, path);
    for (const errorsOf of await compiled()) assert.equal(errorsOf("stubs"), []);
  });

  test("emits stubs that throw where only the author knows the result", async () => {
    const stubs = (await emit()).filter(({ path }) => path.startsWith("src/shop/"));
    const text = stubs.map(({ content }) => content).join("\n");
    for (const name of ["fetch", "create", "update", "delete"]) {
      // What next() does is what the operator would do.
      const functions = [...text.matchAll(new RegExp(`^ {2}${name}: (?!.*next\\(\\))([^]*?)\\n {2}\\}`, "gm"))];
      assert.ok(functions.length > 0, name);
      for (const [whole, body = ""] of functions)
        assert.match(body, new RegExp(`throw new Error\\("${name}\\(\\) of \\w+ is not implemented"\\)`), whole);
    }
    for (const { path, content } of stubs)
      assert.not.match(content, /=> (?:true|false|\[\]|\{\}|new Map\(\)|desired)[,;]/, path);
  });

  test("types the details of conditions in the workflow result", async () => {
    for (const errorsOf of await compiled()) assert.equal(errorsOf("details"), []);
  });

  test("causes compiler errors in the user's file for wrong or missing functions of external dependents", async () => {
    for (const errorsOf of await compiled()) {
      const printed = errorsOf("mistakes").join("");
      for (const expected of [
        /src\/shop\/dependents\/database\.ts\(\d+,\d+\): error TS\d+: .*'name' does not exist in type 'Resource'/m,
        /src\/shop\/dependents\/tickets\.ts\(\d+,\d+\): error TS2322: Type 'undefined' is not assignable to type '.*Tickets?Resource/m,
        /src\/shop\/dependents\/bills\.ts\(\d+,\d+\): error TS2561: .*'isOwns' does not exist in type 'BillsExternal'. Did you mean to write 'isOwn'/m,
        /src\/shop\/dependents\/users\.ts\(\d+,\d+\): error TS2741: Property 'delete' is missing .* required in type 'UsersExternal'/m,
        /src\/shop\/dependents\/leftovers\.ts\(\d+,\d+\): error TS2353: .*'create' does not exist in type 'LeftoversExternal'/m,
        /src\/shop\/dependents\/servers\.ts\(\d+,\d+\): error TS2741: Property 'delete' is missing .* required in type 'ServersOperations'/m,
        /src\/shop\/event-sources\/billing\.ts\(\d+,\d+\): error TS2741: Property 'fetch' is missing .* required in type 'BillingSource'/m,
        /src\/shop\/dependents\/credits\.ts\(\d+,\d+\): error TS2339: Property 'ident' does not exist on type 'Resource'/m,
      ])
        assert.match(printed, expected);
      assert.not.match(printed, /src\/generated\/.*error/, "no error is in a file that is not the user's");
    }
  });
});
