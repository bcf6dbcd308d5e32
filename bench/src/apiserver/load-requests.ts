import type { LoadClient } from "../load-client.js";

/** Returns the name of the ConfigMap with an index. */
export function configMapName(index: number): string {
  return `object-${String(index).padStart(5, "0")}`;
}

/** Creates a Namespace if it does not exist. */
export async function createNamespace(client: LoadClient, name: string): Promise<void> {
  await client
    .send({ method: "POST", path: "/api/v1/namespaces", body: JSON.stringify({ metadata: { name } }) })
    .catch((error: Error) => {
      if (!error.message.includes("AlreadyExists")) throw error;
    });
}

export function createConfigMap(client: LoadClient, namespace: string, index: number): Promise<string> {
  const body = JSON.stringify({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: configMapName(index), labels: { app: "bench" } },
    data: { "index.html": "<h1>hello</h1>".repeat(20) },
  });
  return client.send({ method: "POST", path: `/api/v1/namespaces/${namespace}/configmaps`, body });
}

/** Applies one of `of` Deployments. The first apply of each creates it; later ones change a field. */
export function applyDeployment(
  client: LoadClient,
  namespace: string,
  { index, of }: { index: number; of: number },
): Promise<string> {
  const name = `app-${index % of}`;
  const round = Math.floor(index / of);
  const container = {
    name: "web",
    image: `nginx:1.${round}`,
    ports: [{ containerPort: 80 }],
    resources: { requests: { cpu: "10m", memory: "16Mi" } },
  };
  const body = JSON.stringify({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, labels: { app: name } },
    spec: {
      replicas: round,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [container] } },
    },
  });
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${name}?fieldManager=bench&force=true`;
  return client.send({ method: "PATCH", path, body, contentType: "application/apply-patch+yaml" });
}

/** Installs a validating webhook for all ConfigMaps and Deployments. */
export async function installWebhook(client: LoadClient, hook: { url: string; caBundle: string }): Promise<void> {
  const rules = [
    { apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["configmaps"] },
    { apiGroups: ["apps"], apiVersions: ["v1"], operations: ["*"], resources: ["deployments"] },
  ];
  await create(client, "admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {
    metadata: { name: "bench" },
    webhooks: [
      {
        name: "bench.example.com",
        clientConfig: { url: hook.url, caBundle: hook.caBundle },
        ...{ rules, sideEffects: "None", admissionReviewVersions: ["v1"] },
      },
    ],
  });
}

/** Allows a user to create and patch ConfigMaps and Deployments. */
export async function installRole(client: LoadClient, user: string): Promise<void> {
  const group = "rbac.authorization.k8s.io";
  const rules = [{ apiGroups: ["", "apps"], resources: ["configmaps", "deployments"], verbs: ["create", "patch"] }];
  await create(client, `${group}/v1/clusterroles`, { metadata: { name: "bench" }, rules });
  await create(client, `${group}/v1/clusterrolebindings`, {
    metadata: { name: "bench" },
    roleRef: { apiGroup: group, kind: "ClusterRole", name: "bench" },
    subjects: [{ apiGroup: group, kind: "User", name: user }],
  });
}

async function create(client: LoadClient, path: string, body: object): Promise<void> {
  await client.send({ method: "POST", path: `/apis/${path}`, body: JSON.stringify(body) });
}
