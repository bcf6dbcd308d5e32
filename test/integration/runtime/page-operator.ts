// An operator for Pages, on an embedded API server of a test's own, for tests of what an operator does when things go wrong: faults, and what
// the server was asked. Tests that need neither run in a namespace of a server that the file shares, which may be a real one: pageSpacesOf,
// space.ts.
import { startApiServer, type ApiServer } from "#apiserver/index.js";
import type { ConnectionOptions } from "#runtime/client/connection.js";
import type { OperatorOptions } from "#runtime/api/operator.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import { updateStatus, type Reconciler } from "#runtime/reconcile/reconciler.js";
import type { DependentDefinition, WorkflowDefinition } from "#runtime/workflow/workflow-definition.js";
import { apiRequestOrThrow, type Connection } from "../../support/api/api-request.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { createRecordedOperator, type RecordedOperator } from "../../support/runtime/recorded-operator.js";
import { shared } from "../../support/suite.js";
import { ConfigMap, configMapOf, Page, pageCrd } from "./page.js";

export * from "./page.js";

/** Writes the text of the page into its status. */
export const textReconciler: Reconciler<Page, object, NonNullable<Page["status"]>> = {
  reconcile: ({ primary }) =>
    updateStatus({ text: primary.spec.text, observedGeneration: primary.metadata.generation ?? 0 }),
};

/** What a test may ask of the operator. */
export interface PageOperatorOptions extends Partial<Omit<ControllerDefinition, "workflow">> {
  readonly dependents?: readonly DependentDefinition[];
  /** What the workflow states besides its dependents. */
  readonly workflow?: Partial<WorkflowDefinition>;
  readonly operator?: Partial<OperatorOptions>;
  readonly connection?: Partial<ConnectionOptions>;
}

/** An operator of Pages. */
export interface PageOperator extends RecordedOperator {
  /** The namespace of the pages of the test. Default: "default" */
  readonly namespace?: string | undefined;
}

/** What an operator has to know of its API server. */
type PageServer = Pick<ApiServer, "url" | "token"> &
  Partial<Pick<ApiServer, "ca">> &
  Partial<Pick<PageSpace, "namespace">>;

/** A namespace of a test's own on a server that the tests of its file share. */
export interface PageSpace extends Connection {
  readonly namespace: string;
  /** Another namespace, for objects of its pages. */
  readonly other: string;
}

/** Returns a function that creates two namespaces on the server of this test file, which is the one that TEST_API_SERVER names. */
export function pageSpacesOf(): () => Promise<PageSpace> {
  const server = shared(() => startTestApiServer({ crds: [pageCrd] }));
  let count = 0;
  return async () => {
    const { url, token, ca } = await server();
    const namespace = `pages-${++count}`;
    const space = { url, token, ...(ca !== undefined && { ca }), namespace, other: `${namespace}-other` };
    for (const name of [namespace, space.other])
      await apiRequestOrThrow(space, "POST /api/v1/namespaces", { body: { metadata: { name } } });
    return space;
  };
}

/** Creates an operator for Pages; it is not started. */
export function createPageOperator(server: PageServer, options: PageOperatorOptions = {}): PageOperator {
  const { dependents = [configMapOf("text")], workflow, operator: more, connection, ...settings } = options;
  const { reconciler = textReconciler, ...definition } = settings;
  const controller = {
    name: "page",
    retry: { initialIntervalMs: 100, maxIntervalMs: 400, maxRetries: -1 },
    ...(server.namespace !== undefined && { namespaces: [server.namespace] }),
    ...definition,
    reconciler,
    workflow: { ...workflow, primary: Page.definition, dependents },
  };
  const created = createRecordedOperator({
    controllers: [controller],
    connection: { url: server.url, token: server.token, ca: server.ca, ...connection },
    ...more,
  });
  return { ...created, namespace: server.namespace };
}

/** Starts a server that serves Pages. */
export function startPageServer({ withoutCrd = false, simulate = false } = {}): Promise<ApiServer> {
  return startApiServer({ tls: false, simulate, crds: withoutCrd ? [] : [pageCrd] });
}

/** An operator that runs on a server of its own. */
export interface StartedPageOperator extends PageOperator {
  readonly server: ApiServer;
}

/** Starts an operator for the Pages of a namespace. */
export async function startInSpace(space: PageSpace, options?: PageOperatorOptions): Promise<PageOperator> {
  const page = createPageOperator(space, options);
  try {
    await page.operator.start();
  } catch (error) {
    await page[Symbol.asyncDispose]();
    throw error;
  }
  return page;
}

/** Starts a server that serves Pages and an operator for them; disposing it stops both. */
export async function startPageOperator(options?: PageOperatorOptions): Promise<StartedPageOperator> {
  const server = await startPageServer();
  const page = createPageOperator(server, options);
  const stop = async () => {
    try {
      await page[Symbol.asyncDispose]();
    } finally {
      await server.close();
    }
  };
  try {
    await page.operator.start();
  } catch (error) {
    await stop();
    throw error;
  }
  return { ...page, server, [Symbol.asyncDispose]: stop };
}

/** Puts an admission policy in force, which changes what others write: `expression` is that of the operations of a JSON patch. */
export async function admitChanged(
  to: Connection,
  resource: string,
  expression: string,
  operations: readonly ("CREATE" | "UPDATE")[] = ["CREATE", "UPDATE"],
): Promise<AsyncDisposable> {
  const collection = (kind: string) => `/apis/admissionregistration.k8s.io/v1/mutatingadmission${kind}`;
  const metadata = { name: `changes-${resource.replace("/", "-")}` };
  const rule = { apiGroups: ["*"], apiVersions: ["*"], operations, resources: [resource] };
  const spec = {
    reinvocationPolicy: "Never",
    matchConstraints: { resourceRules: [rule] },
    mutations: [{ patchType: "JSONPatch", jsonPatch: { expression } }],
  };
  const binding = { metadata, spec: { policyName: metadata.name } };
  await apiRequestOrThrow(to, `POST ${collection("policies")}`, { body: { metadata, spec } });
  await apiRequestOrThrow(to, `POST ${collection("policybindings")}`, { body: binding });
  return {
    [Symbol.asyncDispose]: async () => {
      for (const kind of ["policybindings", "policies"])
        await apiRequestOrThrow(to, `DELETE ${collection(kind)}/${metadata.name}`);
    },
  };
}

/** Creates a page. */
export function createPage(
  { operator, namespace = "default" }: PageOperator,
  name = "one",
  metadata: object = {},
): Promise<Page> {
  return operator.client.create(Page, {
    metadata: { name, namespace, ...metadata },
    spec: { text: "first" },
  });
}

/** Reads the text of a ConfigMap; undefined if there is none. */
export async function textOf(
  { operator, namespace = "default" }: PageOperator,
  name = "one-text",
): Promise<string | undefined> {
  return (await operator.client.get(ConfigMap, { name, namespace }))?.data?.["text"];
}

/** Changes the text of a page. */
export function setText({ operator, namespace = "default" }: PageOperator, text: string, name = "one"): Promise<Page> {
  return operator.client.mergePatch(Page, { name, namespace }, { spec: { text } });
}

/** Waits until the ConfigMap of a page has a text. */
export async function untilText(page: PageOperator, text: string, name = "one-text"): Promise<void> {
  await waitFor(`${name} says ${text}`, async () => (await textOf(page, name)) === text);
}
