// The objects to match. The first two are also those of the peer's benchmark.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";

type Content = { readonly [member: string]: unknown };

const times = <Item>(count: number, create: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => create(i));

function deployment(podSpec: Content): KubernetesObject {
  const owner = { apiVersion: "bench.example.com/v1", kind: "WebPage", name: "page", uid: "1-2-3", controller: true };
  const metadata = { name: "page", namespace: "default", labels: { bench: "match" }, ownerReferences: [owner] };
  const template = { metadata: { labels: { app: "page" } }, spec: podSpec };
  const spec = { replicas: 1, selector: { matchLabels: { app: "page" } }, template };
  return { apiVersion: "apps/v1", kind: "Deployment", metadata, spec } as KubernetesObject;
}

/** The Deployment of the peer workload: 22 leaf fields. */
function contract(): KubernetesObject {
  const web = {
    name: "web",
    image: "nginx:1.29",
    ports: [{ containerPort: 80 }],
    resources: { requests: { cpu: "10m", memory: "16Mi" } },
    volumeMounts: [{ name: "content", mountPath: "/usr/share/nginx/html" }],
  };
  return deployment({ containers: [web], volumes: [{ name: "content", configMap: { name: "page" } }] });
}

function container(index: number, { settings, mounts }: { settings: number; mounts: number }): Content {
  return {
    name: `web${index}`,
    image: `registry.example.com/web${index}:1.29`,
    imagePullPolicy: "IfNotPresent",
    args: ["--port", `808${index}`],
    resources: { requests: { cpu: "10m", memory: "16Mi" }, limits: { cpu: "1", memory: "64Mi" } },
    readinessProbe: { periodSeconds: 5, httpGet: { path: "/ready", port: 8080 } },
    securityContext: { runAsNonRoot: true, readOnlyRootFilesystem: true },
    ports: times(2, (port) => ({ name: `p${port}`, containerPort: 8080 + 10 * port + (index % 10) })),
    env: times(settings, (setting) => ({ name: `SETTING_${setting}`, value: `value ${setting}` })),
    volumeMounts: times(mounts, (mount) => ({ name: `v${mount}`, mountPath: `/mnt/${mount}` })),
  };
}

/** The large Deployment of the peer's benchmark: three containers and 201 leaf fields. */
function large(): KubernetesObject {
  return deployment({
    serviceAccountName: "web",
    terminationGracePeriodSeconds: 60,
    containers: times(3, (index) => container(index, { settings: 18, mounts: 3 })),
    volumes: times(3, (index) => ({ name: `v${index}`, configMap: { name: `m${index}` } })),
  });
}

/** A pod template with 500 containers. */
function huge(): KubernetesObject {
  return deployment({ containers: times(500, (index) => container(index, { settings: 2, mounts: 0 })) });
}

/** A ConfigMap with 1 MB in sixteen files. */
function megabyte(): KubernetesObject {
  const data = Object.fromEntries(
    times(16, (index) => [`file-${index}.txt`, `${index} `.repeat(65_000 / `${index} `.length)]),
  );
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "files", namespace: "default" },
    data,
  } as KubernetesObject;
}

/** The objects to match, by the name that the peer uses if it has the same one. */
export const shapes: { readonly [name: string]: () => KubernetesObject } = { large, contract, megabyte, huge };
