// Two namespaces of two tenants on a server, and an operator that may do in each what a role binding there allows.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { OperatorOptions } from "#runtime/api/operator.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { untilObject } from "../../../support/runtime/clients.js";
import type { RecordedOperator } from "../../../support/runtime/recorded-operator.js";
import { ConfigMap, Sample, type DataObject } from "../sample-kind.js";
import type { Space } from "../space.js";
import { allowIn, forbidIn } from "./user-rights.js";

const Namespace = classOf(builtinDefinition("v1", "Namespace"));
const EventKind = classOf<KubernetesObject & { reason: string; note?: string; regarding: { name: string } }>(
  builtinDefinition("events.k8s.io/v1", "Event"),
);

const ALL_KINDS = ["samples", "samples/status", "configmaps", "secrets", "events"];

/** How long the watch of a namespace may take to be tried again. */
export const HEALING = { timeoutMs: 30_000 };

/** Two tenants, `a` and `b`. */
export interface Tenants {
  readonly a: string;
  readonly b: string;
  /** Lets the operator do everything in a namespace with these resources, and with no others. Default: all resources */
  allow(namespace: string, resources?: readonly string[]): Promise<void>;
  /** Deletes the role binding of a namespace, as a tenant may. */
  forbid(namespace: string): Promise<void>;
  /** Creates an operator of these controllers, which watch both namespaces unless they say otherwise; it is not started. */
  operator(controllers: readonly ControllerDefinition[], options?: Partial<OperatorOptions>): RecordedOperator;
  sample(namespace: string, value?: string, name?: string): Promise<Sample>;
  setValue(namespace: string, value: string): Promise<Sample>;
  valueOf(name: string, namespace: string): Promise<string | undefined>;
  untilValue(name: string, namespace: string, value: string): Promise<DataObject>;
  /** The notes of the Events of a reason about a sample. */
  notesOf(namespace: string, reason: string): Promise<readonly (string | undefined)[]>;
}

/** Creates the namespaces of two tenants, which allow the operator everything. */
export async function createTenants(space: Space): Promise<Tenants> {
  const { client, server } = space;
  const [a, b] = [space.namespace, `${space.namespace}-b`];
  const user = `operator-of-${a}`;
  await client.create(Namespace, { metadata: { name: b } });
  const forbid = (namespace: string) => forbidIn(space, user, namespace);
  const allow = (namespace: string, resources: readonly string[] = ALL_KINDS) =>
    allowIn(space, user, namespace, [{ resources, verbs: ["*"] }]);
  await allow(a);
  await allow(b);
  const { url, token, ca } = server;
  const connection = { url, token, ...(ca !== undefined && { ca }), impersonation: { user } };
  const valueOf = async (name: string, namespace: string) =>
    (await client.get(ConfigMap, { name, namespace }))?.data?.["value"];
  return {
    ...{ a, b, allow, forbid, valueOf },
    operator: (controllers, options) =>
      space.operator(
        controllers.map((controller) => ({ namespaces: [a, b], ...controller })),
        { connection, proofKey: { namespace: a }, ...options },
      ),
    sample: (namespace, value = "first", name = "one") =>
      client.create(Sample, { metadata: { name, namespace }, spec: { value } }),
    setValue: (namespace, value) => client.mergePatch(Sample, { name: "one", namespace }, { spec: { value } }),
    untilValue: (name, namespace, value) =>
      untilObject({ client, kind: ConfigMap, name, namespace, ...HEALING }, ({ data }) => data?.["value"] === value),
    notesOf: async (namespace, reason) =>
      (await client.list(EventKind, { namespace }))
        .filter((each) => each.reason === reason && each.regarding.name === "one")
        .map(({ note }) => note),
  };
}
