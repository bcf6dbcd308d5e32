// An operator of which one version after the other runs on the same objects: with each way to write, to link and to keep ids. It is made of plain objects, so
// that any version of the runtime can run it.
import type { KubernetesObject, ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { apiRequest, type Connection } from "../../../../support/api/api-request.js";
import { builtinDefinition } from "../../../../support/kinds/kind-definitions.js";
import { Page } from "../../page.js";

export const NAMESPACE = "version-before";
export const OTHER_NAMESPACE = "version-before-other";

/** A service outside of Kubernetes. */
export type Accounts = Map<string, { id: string; value: string }>;

interface Arguments {
  readonly primary: Page;
}
interface Options {
  readonly [option: string]: unknown;
}

export const KINDS = {
  configMap: builtinDefinition("v1", "ConfigMap"),
  secret: builtinDefinition("v1", "Secret"),
  deployment: builtinDefinition("apps/v1", "Deployment"),
  service: builtinDefinition("v1", "Service"),
} as const;

/** The kinds whose objects the versions leave, in the order in which they are created again. */
export const LEFT_KINDS: readonly ResourceDefinition[] = [Page.definition, ...Object.values(KINDS)];

const labels = (page: Page) => ({ app: page.metadata.name });
const text = (page: Page) => ({ text: page.spec.text });

/** Returns the dependents of the operator. */
function dependentsOf(accounts: Accounts): readonly object[] {
  const of = (resource: ResourceDefinition, name: string, content: (page: Page) => object, options: Options = {}) => ({
    ...{ name, resource, dependsOn: [] },
    desired: ({ primary }: Arguments) => {
      const { metadata = {}, ...rest } = content(primary) as { metadata?: object };
      return { metadata: { name: `${primary.metadata.name}-${name}`, ...metadata }, ...rest };
    },
    ...options,
  });
  const { configMap, secret, deployment, service } = KINDS;
  return [
    of(configMap, "config", (page) => ({ data: text(page) })),
    of(
      deployment,
      "web",
      (page) => ({
        spec: {
          replicas: 2,
          selector: { matchLabels: labels(page) },
          template: {
            metadata: { labels: labels(page) },
            spec: {
              containers: [{ name: "web", image: "example.com/web:1", resources: { limits: { cpu: "1000m" } } }],
            },
          },
        },
      }),
      { dependsOn: ["config"] },
    ),
    of(service, "front", (page) => ({ spec: { selector: labels(page), ports: [{ port: 80 }] } })),
    of(secret, "put", (page) => ({ data: { text: Buffer.from(page.spec.text).toString("base64") } }), {
      serverSideApply: false,
    }),
    of(configMap, "once", (page) => ({ data: text(page) }), { mode: "createOnly" }),
    of(configMap, "ordered", (page) => ({ data: text(page) }), { deletion: "ordered" }),
    of(configMap, "orphan", (page) => ({ data: text(page) }), { deletion: "orphan" }),
    of(configMap, "elsewhere", (page) => ({ metadata: { namespace: OTHER_NAMESPACE }, data: text(page) }), {
      ...{ deletion: "ordered", namespace: OTHER_NAMESPACE },
    }),
    {
      ...{ name: "items", resource: configMap, dependsOn: [], bulk: {} },
      desired: ({ primary }: Arguments) =>
        Object.fromEntries(
          ["a", "b"].map((item) => [
            item,
            { metadata: { name: `${primary.metadata.name}-${item}` }, data: text(primary) },
          ]),
        ),
    },
    {
      ...{ name: "account", dependsOn: [], creationGraceMs: 300, state: { kind: "configMap" } },
      desired: ({ primary }: Arguments) => ({ value: primary.spec.text }),
      source: {
        ...{ kind: "perPrimaryPoll", intervalMs: 50 },
        fetch: async (_: Page, { state }: { state: ReadonlyMap<string, string> }) =>
          [...state.values()].flatMap((id) => accounts.get(id) ?? []),
      },
      idOf: ({ id }: { id: string }) => id,
      create: async ({ value }: { value: string }) => {
        const id = `account-${accounts.size + 1}`;
        accounts.set(id, { id, value });
        return { id, value };
      },
      update: async ({ value }: { value: string }, { id }: { id: string }) => {
        accounts.set(id, { id, value });
        return { id, value };
      },
      delete: async ({ id }: { id: string }) => void accounts.delete(id),
      matches: (desired: { value: string }, live: { value: string }) => desired.value === live.value,
    },
  ];
}

/** Returns the options of the operator, of whichever version. */
export function optionsOf(
  connection: Connection,
  accounts: Accounts,
  record: { requests: string[]; problems: string[] },
  reconciler?: object,
) {
  const problem = (level: string) => (_: object, message: string) => void record.problems.push(`${level} ${message}`);
  const { url, token, ca } = connection;
  return {
    connection: { url, token, ca },
    controllers: [
      {
        ...{ name: "page", namespaces: [NAMESPACE, OTHER_NAMESPACE], statusConditions: "managed" },
        workflow: { primary: Page.definition, dependents: dependentsOf(accounts) },
        ...(reconciler !== undefined && { reconciler }),
        retry: { initialIntervalMs: 100, maxIntervalMs: 400, maxRetries: -1 },
      },
    ],
    proofKey: { namespace: NAMESPACE },
    logger: { debug() {}, info() {}, warn: problem("warn"), error: problem("error") },
    onRequest: ({ method, path, status }: { method: string; path: string; status?: number }) => {
      if (method !== "GET") record.requests.push(`${method} ${path.replace(/\?.*/, "")} ${status}`);
    },
  };
}

/** Lists all objects of the scenario, with what the API server keeps of each. */
export async function listAll(server: Connection): Promise<KubernetesObject[]> {
  const found: KubernetesObject[] = [];
  for (const { apiVersion, kind, group, version, plural } of LEFT_KINDS) {
    const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
    for (const namespace of [NAMESPACE, OTHER_NAMESPACE]) {
      const { body } = await apiRequest<{ items: KubernetesObject[] }>(
        server,
        `GET ${root}/namespaces/${namespace}/${plural}`,
      );
      found.push(
        ...body.items
          .filter(({ metadata }) => metadata.name !== "kube-root-ca.crt")
          .map((item) => ({ ...item, apiVersion, kind })),
      );
    }
  }
  return found;
}
