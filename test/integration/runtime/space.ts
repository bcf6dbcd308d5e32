// A namespace of a test's own on an API server that the tests of one file share, embedded or real, and operators that run there.
import type {
  Creatable,
  KubernetesObject,
  NewResource,
  ObjectMeta,
  ResourceClass,
  ResourceDefinition,
} from "#runtime/base/kubernetes-object.js";
import type { WaitOptions } from "#apiserver/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import type { OperatorOptions } from "#runtime/api/operator.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import { startTestApiServer, type TestApiServer, type TestApiServerOptions } from "../../support/api/api-server.js";
import { builtinDefinition, classOf } from "../../support/kinds/kind-definitions.js";
import { untilNoObject, untilObject } from "../../support/runtime/clients.js";
import { createRecordedOperator, type RecordedOperator } from "../../support/runtime/recorded-operator.js";
import { shared } from "../../support/suite.js";
import { clusterSampleCrd, sampleCrd } from "./sample-kind.js";

const Namespace = classOf(builtinDefinition("v1", "Namespace"));

/** What the requests for an object have to say; the namespace is that of the test. */
export type Draft<Resource extends KubernetesObject> = Omit<Resource, "apiVersion" | "kind" | "metadata"> & {
  metadata: ObjectMeta;
};

/** A namespace and what a test does in it, as a person with kubectl. */
export interface Space extends AsyncDisposable {
  readonly namespace: string;
  readonly client: ApiClient;
  readonly server: TestApiServer;
  create<R extends KubernetesObject, Input = Draft<R>>(kind: Creatable<R, Input>, draft: Input | Draft<R>): Promise<R>;
  get<R extends KubernetesObject>(kind: ResourceClass<R>, name: string): Promise<R | undefined>;
  patch<R extends KubernetesObject>(kind: ResourceClass<R>, name: string, patch: object): Promise<R>;
  delete<R extends KubernetesObject>(kind: ResourceClass<R>, name: string): Promise<void>;
  /** Lists the objects of the namespace that `isOfTests`. */
  list<R extends KubernetesObject>(kind: ResourceClass<R>): Promise<R[]>;
  /** Waits until an object satisfies a condition, and returns it. */
  until<R extends KubernetesObject>(kind: ResourceClass<R>, name: string, holds: (object: R) => unknown): Promise<R>;
  untilGone<R extends KubernetesObject>(kind: ResourceClass<R>, name: string, options?: WaitOptions): Promise<void>;
  /** Creates an operator whose controllers watch this namespace unless they say otherwise; it is not started. */
  operator(controllers: readonly ControllerDefinition[], options?: Partial<OperatorOptions>): TestOperator;
  /** Creates an operator and starts it. */
  start(controllers: readonly ControllerDefinition[], options?: Partial<OperatorOptions>): Promise<TestOperator>;
}

/** False for what every namespace of a cluster has: the authority of its server in a ConfigMap. */
export const isOfTests = ({ metadata }: { metadata: { name: string } }): boolean =>
  metadata.name !== "kube-root-ca.crt";

/** An operator of a space. */
export type TestOperator = RecordedOperator;

// Less than a test has, so that what was waited for is named.
const PATIENCE = { timeoutMs: 18_000 };

let spaces = 0;

/** Returns a function that opens a space on the server of this test file, which knows Samples unless other definitions are given. */
export function spacesOf(options: TestApiServerOptions = {}): () => Promise<Space> {
  const server = shared(() => startTestApiServer({ crds: [sampleCrd, clusterSampleCrd], ...options }));
  return async () => openSpace(await server());
}

async function openSpace(server: TestApiServer): Promise<Space> {
  const { url, token, ca } = server;
  const connection = { url, token, ca };
  const client = new ApiClient(createConnection(connection));
  const namespace = `space-${++spaces}`;
  await client.create(Namespace, { metadata: { name: namespace } });
  const refOf = (kind: { readonly definition: ResourceDefinition }, name: string) =>
    kind.definition.scope === "Cluster" ? { name } : { name, namespace };
  const operators: TestOperator[] = [];
  const operator: Space["operator"] = (controllers, options) => {
    const scoped = controllers.map((controller) =>
      controller.workflow.primary.scope === "Cluster" ? controller : { namespaces: [namespace], ...controller },
    );
    const created = createRecordedOperator({ controllers: scoped, connection, ...options });
    operators.push(created);
    return created;
  };
  return {
    namespace,
    client,
    server,
    get: (kind, name) => client.get(kind, refOf(kind, name)),
    operator,
    create<R extends KubernetesObject, Input = Draft<R>>(kind: Creatable<R, Input>, draft: Input | Draft<R>) {
      const { metadata, ...rest } = draft as Draft<KubernetesObject>;
      const placed = { ...metadata, ...refOf(kind, metadata.name) };
      return client.create<R, object>(
        kind as Creatable<R, object>,
        { ...rest, metadata: placed } as NewResource<object, R>,
      );
    },
    patch: (kind, name, patch) => client.mergePatch(kind, refOf(kind, name), patch),
    delete: async (kind, name) => void (await client.delete(kind, refOf(kind, name))),
    list: async (kind) => (await client.list(kind, { namespace })).filter(isOfTests),
    until: (kind, name, holds) => untilObject({ client, kind, ...refOf(kind, name), ...PATIENCE }, holds),
    untilGone: (kind, name, options = PATIENCE) => untilNoObject({ client, kind, ...refOf(kind, name), ...options }),
    async start(controllers, options) {
      const created = operator(controllers, options);
      await created.operator.start();
      return created;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(operators.map((each) => each[Symbol.asyncDispose]()));
      await client.close();
    },
  };
}
