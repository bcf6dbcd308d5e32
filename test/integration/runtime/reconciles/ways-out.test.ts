// One way out: each state of docs/stuck.md in which a primary of this test can hang is entered, seen in Event and condition, and left as the page says.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { apiRequest, apiRequestOrThrow } from "../../../support/api/api-request.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  startPageServer,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

const EventKind = classOf<KubernetesObject & { readonly reason?: string }>(builtinDefinition("v1", "Event"));
const CHILD = "/api/v1/namespaces/default/configmaps/one-text";
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const PAGE = "/apis/example.com/v1/namespaces/default/pages/one";
const PATIENCE = { timeoutMs: 20_000 };

/** What a test does in place of kubectl. */
class Kubectl {
  readonly #server: Awaited<ReturnType<typeof startPageServer>>;

  constructor(server: Awaited<ReturnType<typeof startPageServer>>) {
    this.#server = server;
  }

  patch(path: string, body: object) {
    const contentType = Array.isArray(body) ? "application/json-patch+json" : "application/merge-patch+json";
    return apiRequestOrThrow(this.#server, `PATCH ${path}?fieldManager=kubectl`, { body, contentType });
  }

  create(body: object) {
    return apiRequestOrThrow(this.#server, `POST ${CONFIG_MAPS}`, { body });
  }

  delete(path: string) {
    return apiRequestOrThrow(this.#server, `DELETE ${path}`);
  }

  async exists(path: string): Promise<boolean> {
    return (await apiRequest(this.#server, `GET ${path}`)).status === 200;
  }
}

interface Case {
  readonly event: string;
  /** The reason of `Ready`; absent if the primary has no such condition then. */
  readonly condition?: string;
  readonly options?: PageOperatorOptions;
  /** Whether the primary is created before the state is entered. Default: true */
  readonly isCreated?: false;
  /** Whether the primary is gone in the end, instead of ready. */
  readonly isGone?: true;
  enter?(kubectl: Kubectl, page: PageOperator): unknown;
  /** The command of the page. */
  leave(kubectl: Kubectl): unknown;
}

const removeFinalizer = (kubectl: Kubectl) =>
  kubectl.patch(PAGE, [
    { op: "test", path: "/metadata/finalizers/0", value: "pages.example.com/finalizer" },
    { op: "remove", path: "/metadata/finalizers/0" },
  ]);
const isReadyOnceThere = ({ live }: { live?: { data?: { done?: string } } }) => live?.data?.done === "yes";
const failing = () => {
  throw new Error("the service is gone");
};

/** An object that is created once, for each text of the page, and is ready at once only for the second one. */
const createdOnce = configMapOf("text", {
  mode: "once",
  again: ({ primary }: { primary: Page }) => primary.spec.text,
  readyPostcondition: isReadyOnceThere as never,
  desired: ({ primary }) => ({
    metadata: { name: "one-text" },
    data: primary.spec.text === "second" ? { done: "yes" } : {},
  }),
});

const CASES: { readonly [state: string]: Case } = {
  "an invalid object": {
    event: "Rejected",
    condition: "Failed",
    options: {
      dependents: [
        configMapOf("text", {
          desired: ({ primary }) => ({
            metadata: { name: "one-text", labels: { text: primary.spec.text } },
          }),
        }),
      ],
    },
    enter: (kubectl) => kubectl.patch(PAGE, { spec: { text: "no label value!" } }),
    leave: (kubectl) => kubectl.patch(PAGE, { spec: { text: "label-value" } }),
  },
  "a conflicting existing object": {
    event: "Stalled",
    condition: "Failed",
    isCreated: false,
    enter: async (kubectl, page) => {
      await kubectl.create({ metadata: { name: "one-text" } });
      await createPage(page, "one");
    },
    leave: (kubectl) => kubectl.delete(CHILD),
  },
  "a dependent that is not ready": {
    event: "Stalled",
    condition: "NotReady",
    options: { dependents: [configMapOf("text", { readyPostcondition: isReadyOnceThere as never })] },
    leave: (kubectl) => kubectl.patch(CHILD, { data: { done: "yes" } }),
  },
  "a missing referenced object": {
    event: "Stalled",
    condition: "NotReady",
    options: {
      dependents: [
        configMapOf("settings", { mode: "readOnly", ref: { name: "settings" } }),
        configMapOf("text", { dependsOn: ["settings"] }),
      ],
    },
    leave: (kubectl) => kubectl.create({ metadata: { name: "settings" } }),
  },
  "an object with a foreign finalizer": {
    event: "Stalled",
    condition: "Deleting",
    enter: async (kubectl) => {
      await kubectl.patch(CHILD, { metadata: { finalizers: ["example.com/hold"] } });
      await kubectl.delete(CHILD);
    },
    leave: (kubectl) => kubectl.patch(CHILD, { metadata: { finalizers: null } }),
  },
  "a run that waits for the previous run": {
    event: "Stalled",
    condition: "Waiting",
    options: { dependents: [createdOnce] },
    enter: (kubectl) => kubectl.patch(PAGE, { spec: { text: "second" } }),
    leave: (kubectl) => kubectl.delete(CHILD),
  },
  "a run whose object was deleted before it finished": {
    event: "Stalled",
    condition: "NotReady",
    options: { dependents: [createdOnce] },
    enter: (kubectl) => kubectl.delete(CHILD),
    leave: (kubectl) => kubectl.patch(PAGE, { spec: { text: "second" } }),
  },
  "a paused primary": {
    event: "Paused",
    enter: async (kubectl, page) => {
      await kubectl.patch(PAGE, { metadata: { annotations: { "gen-operator.dev/paused": "true" } } });
      await page.quiet();
      await kubectl.delete(CHILD);
    },
    leave: async (kubectl) => {
      assert.not(await kubectl.exists(CHILD));
      await kubectl.patch(PAGE, { metadata: { annotations: { "gen-operator.dev/paused": null } } });
    },
  },
  "a failing cleanup": {
    event: "CleanupFailed",
    condition: "Failed",
    options: { reconciler: { reconcile: () => {}, cleanup: failing } },
    isGone: true,
    enter: (kubectl) => kubectl.delete(PAGE),
    leave: removeFinalizer,
  },
  "a terminating primary that is not selected": {
    event: "NotSelected",
    options: {
      ...{ labelSelector: "shard=a", dependents: [configMapOf("text", { deletion: "ordered" })] },
    },
    isGone: true,
    enter: async (kubectl, page) => {
      await kubectl.patch(PAGE, { metadata: { labels: { shard: "b" } } });
      await page.quiet();
      await kubectl.delete(PAGE);
    },
    leave: (kubectl) => kubectl.patch(PAGE, { metadata: { labels: { shard: "a" } } }),
  },
};

suite("documented remedy", (test) => {
  for (const [state, one] of Object.entries(CASES))
    test(
      `resolves ${state}, which the Event ${one.event} reports`,
      async () => {
        await using server = await startPageServer();
        const settings = { statusConditions: "managed", stalledAfterMs: 500 } as const;
        await using page = createPageOperator(server, {
          reconciler: { reconcile: () => {} },
          ...settings,
          ...one.options,
        });
        await page.operator.start();
        const kubectl = new Kubectl(server);
        const { client } = page.operator;
        const readyOf = async () => {
          const found = await client.get(Page, { name: "one", namespace: "default" });
          return found?.status?.conditions?.find(({ type }) => type === "Ready");
        };
        if (one.isCreated !== false) await createPage(page, "one", { labels: { shard: "a" } });
        await page.quiet();
        await one.enter?.(kubectl, page);
        const hasEvent = async () => (await client.list(EventKind)).some(({ reason }) => reason === one.event);
        await waitFor(`there is an Event ${one.event}`, hasEvent, PATIENCE);
        if (one.condition !== undefined) assert.is((await readyOf())?.reason, one.condition);
        await one.leave(kubectl);
        if (one.isGone === true)
          await waitFor("the primary is gone", async () => !(await kubectl.exists(PAGE)), PATIENCE);
        else {
          await waitFor("the primary is ready", async () => (await readyOf())?.status === "True", PATIENCE);
          const child = async () => client.get(ConfigMap, { name: "one-text", namespace: "default" });
          await waitFor("its object is there", async () => (await child()) !== undefined, PATIENCE);
        }
      },
      { timeoutMs: 90_000 },
    );
});
