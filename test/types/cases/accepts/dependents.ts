import { conditionIs, fieldEquals, ready, updateStatus } from "@gen-operator/runtime";
import {
  defineController,
  defineWorkflow,
  untypedResource,
  type ReconcilerOf,
  type UntypedResource,
} from "@gen-operator/runtime/codegen";
import {
  ConfigMap,
  Deployment,
  Service,
  WebPage,
  type ConfigMapInput,
} from "../../../../fixtures/samples/webpage/src/generated/index.js";

type Equal<Left, Right> = (<T>() => T extends Left ? 1 : 2) extends <T>() => T extends Right ? 1 : 2 ? true : false;
type Expect<Holds extends true> = Holds;

interface Database {
  readonly id?: string;
  readonly owner: string;
}

const Widget = untypedResource({
  apiVersion: "x.example.com/v1",
  kind: "Widget",
  plural: "widgets",
  scope: "Namespaced",
});

// Every kind of dependent, with the types of what it sees.
export const workflow = defineWorkflow(WebPage, {
  maxConcurrency: 5,
  exceptions: "result",
  removed: { old: { resource: ConfigMap, deletion: "ordered" } },
})
  .dependent("own", {
    resource: ConfigMap,
    desired: () => ({ metadata: { name: "own" } }),
    operations: {
      create: false,
      update: ({ desired, live, next }) => (live.data?.["a"] === desired.data?.["a"] ? undefined : next()),
      delete: async ({ primary, live, next }) => {
        if (live.metadata.labels?.["page"] === primary.spec.html) await next({ propagationPolicy: "Foreground" });
      },
    },
  })
  .dependent("deleted", {
    resource: ConfigMap,
    desired: ({ secondary }) => ({ metadata: { name: secondary.own.metadata.name } }),
    dependsOn: ["own"],
    deletion: "ordered",
    heldForCleanup: true,
    operations: {
      update: ({ secondary, next }) => (secondary.own.data === undefined ? undefined : next()),
      delete: async ({ secondary, next }) => {
        type Sees = Expect<Equal<typeof secondary.own, ConfigMap | undefined>>;
        const holds: Sees = true;
        if (holds) await next();
      },
    },
  })
  .dependent("adopted", {
    resource: ConfigMap,
    desired: () => ({ metadata: { name: "adopted" } }),
    dependsOn: ["own"],
    existing: ({ live, primary, secondary }) => {
      type Live = Expect<Equal<typeof live, ConfigMap>>;
      const isDefined: Live = true;
      return isDefined && live.data?.["page"] === primary.metadata.uid && secondary.own.data !== undefined;
    },
  })
  .dependent("equal", {
    resource: ConfigMap,
    desired: () => ({ metadata: { name: "equal" } }),
    existing: fieldEquals("data.page", "a"),
  })
  .dependent("refused", { resource: ConfigMap, desired: () => ({ metadata: { name: "refused" } }), existing: "refuse" })
  .dependent("once", {
    resource: ConfigMap,
    mode: "once",
    again: ({ primary }) => primary.spec.html,
    desired: () => ({ metadata: { name: "once" } }),
  })
  .dependent("afterOnce", {
    resource: ConfigMap,
    dependsOn: ["once"],
    desired: ({ secondary }) => {
      // It may be gone.
      type Sees = Expect<Equal<typeof secondary.once, ConfigMap | undefined>>;
      const mayBeGone: Sees = true;
      return { metadata: { name: `${mayBeGone}` } };
    },
  })
  .dependent("shards", {
    resource: ConfigMap,
    bulk: { maxConcurrency: 3 },
    desired: ({ primary }) => ({ a: { metadata: { name: `${primary.metadata.name}-a` } } }),
    matcher: (desired, live) => desired.data === live.data,
    readyPostcondition: ({ live, item }) => {
      type Live = Expect<Equal<typeof live, ConfigMap | undefined>>;
      const isMet: Live = true;
      return { isMet, detail: { size: Object.keys(live?.data ?? {}).length, item } };
    },
  })
  .dependent("servers", {
    resource: Deployment,
    bulk: {},
    itemsDependOn: ["shards"],
    desired: async ({ secondary }) => {
      type Shards = Expect<Equal<typeof secondary.shards, { readonly [key: string]: ConfigMap }>>;
      const holds: Shards = true;
      return { a: { metadata: { name: `is-${holds}` } } };
    },
    readyPostcondition: ready,
  })
  .dependent("given", {
    resource: Service,
    mode: "readOnly",
    eventSource: "services",
    activationCondition: async () => ({ isMet: true, detail: "cluster" as const }),
    readyPostcondition: fieldEquals("spec.type", "ClusterIP"),
  })
  .external("database", {
    source: {
      kind: "perPrimaryPoll",
      intervalMs: 5000,
      fetch: (page, { secondary, state, signal }): Database[] => {
        type Given = Expect<Equal<typeof secondary.given, Service | undefined>>;
        type Shards = Expect<Equal<typeof secondary.shards, { readonly [key: string]: ConfigMap }>>;
        const holds: [Given, Shards] = [true, true];
        const owner = secondary.given?.metadata.name ?? page.metadata.name;
        return holds.every(Boolean) && !signal.aborted ? [{ owner, id: state.get("") ?? "" }] : [];
      },
    },
    idOf: ({ id }) => id ?? "",
    dependsOn: ["given"],
    state: { kind: "configMap" },
    desired: ({ primary, secondary }) => ({ owner: `${primary.metadata.name}${secondary.given.metadata.name}` }),
    create: (desired) => ({ ...desired, id: "1" }),
    delete: async (live, { context }) => context.logger.info({ id: live.id }, "deleted"),
    matches: (desired, live) => desired.owner === live.owner,
    readyPostcondition: ({ live }) => ({ isMet: live !== undefined, detail: live?.owner }),
  })
  .dependent("widget", {
    resource: Widget,
    cluster: "other",
    deletion: "orphan",
    existing: "adopt",
    serverSideApply: false,
    fieldManager: "me",
    timeoutMs: 30_000,
    retry: { maxRetries: 3 },
    dependsOn: ["database", "servers"],
    desired: ({ secondary }) => {
      type Sees = Expect<Equal<typeof secondary.database, Database>>;
      const holds: [Sees] = [true];
      return { metadata: { name: secondary.database.owner }, spec: { holds } };
    },
    readyPostcondition: conditionIs({ type: "Ready", status: "True" }),
  });

// What the conditions found is typed by the names of the dependent and the condition.
export const reconciler: ReconcilerOf<typeof workflow, NonNullable<WebPage["status"]>> = {
  reconcile({ workflow: { dependents }, secondary }) {
    const size = dependents.shards.conditions?.readyPostcondition?.detail?.size;
    const place = dependents.given.conditions?.activationCondition?.detail;
    const owner = dependents.database.conditions?.readyPostcondition?.detail;
    const lack = dependents.widget.conditions?.readyPostcondition?.detail;
    const none = dependents.widget.conditions?.deletePostcondition?.detail;
    const item = dependents.shards.items?.["a"]?.conditions?.readyPostcondition?.detail?.item;
    type Size = Expect<Equal<typeof size, number | undefined>>;
    type Place = Expect<Equal<typeof place, "cluster" | undefined>>;
    type Owner = Expect<Equal<typeof owner, string | undefined>>;
    type Lack = Expect<Equal<typeof lack, string | undefined>>;
    type None = Expect<Equal<typeof none, undefined>>;
    type Widgets = Expect<Equal<typeof secondary.widget, UntypedResource | undefined>>;
    type Item = Expect<Equal<typeof item, string | undefined>>;
    type Records = Expect<Equal<typeof secondary.servers, { readonly [key: string]: Deployment }>>;
    type Optional = Expect<Equal<typeof secondary.database, Database | undefined>>;
    const holds: [Size, Place, Owner, Lack, None, Item, Records, Optional, Widgets] = [
      true,
      true,
      true,
      true,
      true,
      true,
      true,
      true,
      true,
    ];
    return updateStatus({ ready: holds.every(Boolean) });
  },
};

export const controller = defineController({ name: "pages", workflow, reconciler, statusConditions: "managed" });

export const bulkOfInputs = (): { [key: string]: ConfigMapInput } => ({});
