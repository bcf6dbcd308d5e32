// Admission webhooks for a test, configured for a namespace of its own; they review its ConfigMaps unless the test overrides that.
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow, type Connection } from "./api/api-request.js";
import { startWebhookServer, type ReviewRequest, type WebhookAnswer } from "./api/webhook-server.js";

/** The path of the webhook configurations. */
export const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
/** The resources of the webhook configurations. */
export const PLURALS = { Mutating: "mutatingwebhookconfigurations", Validating: "validatingwebhookconfigurations" };
/** Allows a request. */
export const ALLOWED: WebhookAnswer = { response: { allowed: true } };

/** Returns the response of a webhook to an AdmissionReview. */
export type Answer = (request: ReviewRequest) => WebhookAnswer | Promise<WebhookAnswer>;
type Type = keyof typeof PLURALS;

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");
/** Allows a request with changes to the object. */
export const patchOf = (...operations: object[]): WebhookAnswer => ({
  response: { allowed: true, patchType: "JSONPatch", patch: base64(operations) },
});
/** Returns a ConfigMap for a test. */
export const configMap = (name: string, data: Record<string, string> = {}, labels: Record<string, string> = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, labels },
  data,
});

/** A namespace whose ConfigMaps are reviewed by the webhooks of a test. */
export interface Hooked extends AsyncDisposable {
  to: Connection;
  namespace: string;
  /** The path of the ConfigMaps. */
  configMaps: string;
  requests: { path: string; apiVersion: string; request: ReviewRequest }[];
  /** Returns the number of connections to the webhooks. */
  connections: () => number;
  /** The path of the configuration of the first webhook. */
  configuration: string;
}

let namespaces = 0;

/** Configures a webhook for each answer, in order, and waits until they are called. */
export async function hookedOn(
  to: Connection,
  answers: { type: Type; answer: Answer; over?: object }[],
): Promise<Hooked> {
  const name = `hooked-${++namespaces}`;
  await apiRequestOrThrow(to, "POST /api/v1/namespaces", { body: { metadata: { name } } });
  const isReady = new Set<string>();
  const hooks = await startWebhookServer((path, request) => {
    if (request.name?.startsWith("probe") === true) {
      isReady.add(path);
      return ALLOWED;
    }
    return (answers[Number(path.slice(1))] as { answer: Answer }).answer(request);
  });
  for (const [index, { type, over = {} }] of answers.entries()) {
    const webhook = {
      name: `hook-${index}.example.com`,
      clientConfig: { url: `${hooks.url}/${index}`, caBundle: hooks.caBundle },
      rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["configmaps"] }],
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } },
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
      ...over,
    };
    const body = { kind: `${type}WebhookConfiguration`, metadata: { name: `${name}-${index}` }, webhooks: [webhook] };
    await apiRequestOrThrow(to, `POST ${ADMISSION}/${PLURALS[type]}`, { body });
  }
  const configMaps = `/api/v1/namespaces/${name}/configmaps`;
  // A real API server takes about a second to notice a new configuration.
  const reached = answers.filter(
    ({ over = {} }) =>
      !("clientConfig" in over || "objectSelector" in over || /"rules":(?!.*configmaps)/.test(JSON.stringify(over))),
  );
  await waitFor(
    "every webhook is asked",
    async () => {
      await apiRequest(to, `POST ${configMaps}?dryRun=All`, { body: configMap("probe") });
      return isReady.size >= reached.length;
    },
    { timeoutMs: 15_000 },
  );
  if (reached.length < answers.length) await new Promise((resolve) => setTimeout(resolve, 1_500));
  hooks.requests.length = 0;
  return {
    to,
    namespace: name,
    configMaps,
    requests: hooks.requests,
    connections: hooks.connections,
    configuration: `${ADMISSION}/${PLURALS[(answers[0] as { type: Type }).type]}/${name}-0`,
    async [Symbol.asyncDispose]() {
      for (const [index, { type }] of answers.entries())
        await apiRequestOrThrow(to, `DELETE ${ADMISSION}/${PLURALS[type]}/${name}-${index}`);
      await hooks[Symbol.asyncDispose]();
    },
  };
}
