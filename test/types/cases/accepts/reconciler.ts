import {
  informerSource,
  keepFinalizer,
  noUpdate,
  patchResource,
  patchResourceAndStatus,
  updateStatus,
  withoutRetry,
  type EventSource,
} from "@gen-operator/runtime";
import { defineController, defineWorkflow, type Reconciler } from "@gen-operator/runtime/codegen";
import { ConfigMap, Service, WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";
import type { WebPageReconciler } from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

type Equal<Left, Right> = (<T>() => T extends Left ? 1 : 2) extends <T>() => T extends Right ? 1 : 2 ? true : false;
type Expect<Holds extends true> = Holds;

// Every control, and each of them where it may stand.
export const controls: WebPageReconciler = {
  initContext: ({ primary, context }) => void context.attributes.set("html", primary.spec.html),
  reconcile: async ({ primary, context, workflow }) => {
    if (context.isNextReconcileImminent()) return noUpdate();
    if (context.isPrimaryDeleted) return;
    if (!workflow.isReady) return updateStatus({ ready: false }, { rescheduleAfterMs: 0 });
    if (context.attributes.has("only")) return patchResource({ metadata: { labels: { a: "b" } } });
    return patchResourceAndStatus({ ...primary, spec: { ...primary.spec, html: "" } }, { ready: true });
  },
  cleanup: ({ context }) => (context.retry.isLastAttempt ? undefined : keepFinalizer({ rescheduleAfterMs: 5 })),
  updateErrorStatus: ({ error, context, workflow }) => {
    if (workflow === undefined) return;
    if (context.retry.attempt > 3) return withoutRetry(updateStatus({ ready: false }));
    if (error instanceof TypeError) return withoutRetry();
    if (error instanceof RangeError) return withoutRetry(noUpdate());
    return error === undefined ? noUpdate({ rescheduleAfterMs: 5 }) : updateStatus({ ready: false });
  },
};

// The status of a reconciler may be free, or say more than one type; without a context a control has what is given.
interface Free {
  readonly counts?: { readonly [name: string]: number };
  readonly either?: { readonly kind: "a"; readonly a: number } | { readonly kind: "b"; readonly b: string } | undefined;
  readonly any?: unknown;
  readonly lists?: readonly (readonly { readonly name: string }[])[] | null;
}
export const free: Reconciler<WebPage, object, Free> = {
  reconcile: async ({ primary }) =>
    primary.spec.exposed === true
      ? updateStatus({ counts: { one: 1 }, either: { kind: "b", b: "" }, any: { thing: [1] }, lists: [[{ name: "" }]] })
      : patchResourceAndStatus({ metadata: {} }, { ...(primary.spec.host === "" ? { counts: {} } : {}), lists: null }),
  updateErrorStatus: ({ primary }) => withoutRetry(updateStatus({ any: primary })),
};
const given = updateStatus({ ready: true });
const stated = updateStatus<NonNullable<WebPage["status"]>>({ ready: true });
export const separate: WebPageReconciler = { reconcile: () => (Math.random() > 0.5 ? given : stated) };
export const isReady: boolean | undefined = given.status?.ready;

// What the context returns has the type of the class that is asked for.
export const reads: WebPageReconciler = {
  reconcile({ context }) {
    const { secondary, secondaries, primaries } = context;
    const one = secondary(ConfigMap, { name: "x", namespace: "y" });
    const all = secondaries(Service, { source: "services", deduplicated: true });
    const external = secondary<{ url: string }>("Schema");
    const unknown = secondary("Schema");
    type One = Expect<Equal<typeof one, ConfigMap | undefined>>;
    type All = Expect<Equal<typeof all, readonly Service[]>>;
    type External = Expect<Equal<typeof external, { url: string } | undefined>>;
    type Unknown = Expect<Equal<typeof unknown, unknown>>;
    const pages = primaries.byIndex("host", "x");
    type Pages = Expect<Equal<typeof pages, readonly WebPage[]>>;
    const holds: [One, All, External, Unknown, Pages] = [true, true, true, true, true];
    return holds.every(Boolean) ? noUpdate() : undefined;
  },
};

// The event sources of the user are lists beside the dependents.
interface WithPods {
  readonly configMap?: ConfigMap | undefined;
  readonly pods: readonly { readonly name: string }[];
}
const withPods: Reconciler<WebPage, WithPods, NonNullable<WebPage["status"]>> = {
  reconcile: ({ secondary }) => updateStatus({ ready: secondary.pods.every(({ name }) => name !== "") }),
};

declare const source: EventSource;

// Filters and indexes are given the primary of the reconciler.
export const controller = defineController({
  name: "pages",
  workflow: defineWorkflow(WebPage),
  reconciler: withPods,
  eventSources: ({ namespaces }) => (namespaces === undefined ? [source] : []),
  namespaces: "current",
  filters: { onAdd: ({ spec }) => spec.html !== "", onUpdate: (page, old) => page.spec.html !== old.spec.html },
  indexes: { host: ({ spec }) => (spec.host === undefined ? [] : [spec.host]) },
  serverSideApply: false,
  defaultFilters: false,
});

// A type has a cleanup that the reconciler need not have.
declare const annotated: Reconciler<WebPage, object, { ready: boolean }>;
export const onAllEvents = defineController({
  name: "pages",
  workflow: defineWorkflow(WebPage),
  reconciler: annotated,
  onAllEvents: true,
});

// Without a typed reconciler the workflow says what the functions are given.
export const inPlace = defineController({
  name: "pages",
  workflow: defineWorkflow(WebPage).dependent("text", {
    resource: ConfigMap,
    desired: ({ primary }) => ({ metadata: { name: primary.metadata.name } }),
  }),
  onAllEvents: true,
  eventSources: () => [informerSource({ name: "maps", resource: ConfigMap, mapper: () => new Set(["ns/name"]) })],
  reconciler: {
    reconcile: ({ primary, secondary, workflow }) =>
      workflow.dependents.text.kind === "created" || secondary.text?.data === undefined
        ? noUpdate()
        : updateStatus({ ready: primary.spec.html !== "" }),
    updateErrorStatus: ({ primary }) => withoutRetry(updateStatus({ ready: primary.spec.html !== "" })),
  },
  filters: { onUpdate: (page, old) => page.spec.html !== old.spec.html },
  indexes: { host: ({ spec }) => [spec.host ?? ""] },
});
