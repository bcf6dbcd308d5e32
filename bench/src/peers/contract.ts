// The objects that each operator of the comparison has to create for a WebPage. The figures of an operator that does less would be meaningless.
import { htmlOf, pageName } from "./web-page.js";

type Content = { readonly [member: string]: unknown };

/** Returns the fields that the dependents of a page must contain at least, by plural resource name. */
export function expectedChildren(
  index: number,
  version: string,
  operator: string,
): { readonly [plural: string]: Content } {
  const name = pageName(index);
  const app = { app: name };
  const owner = { apiVersion: "bench.example.com/v1", kind: "WebPage", name, controller: true };
  const metadata = { name, labels: { bench: operator }, ownerReferences: [owner] };
  const container = {
    name: "web",
    image: "nginx:1.29",
    ports: [{ containerPort: 80 }],
    resources: { requests: { cpu: "10m", memory: "16Mi" } },
    volumeMounts: [{ mountPath: "/usr/share/nginx/html" }],
  };
  const backend = { service: { name, port: { number: 80 } } };
  return {
    configmaps: { metadata, data: { "index.html": htmlOf(version, name) } },
    deployments: {
      metadata,
      spec: {
        replicas: 1,
        selector: { matchLabels: app },
        template: { metadata: { labels: app }, spec: { containers: [container], volumes: [{ configMap: { name } }] } },
      },
    },
    services: { metadata, spec: { selector: app, ports: [{ port: 80, targetPort: 80 }] } },
    ingresses: {
      metadata,
      spec: { rules: [{ host: `${name}.example.com`, http: { paths: [{ path: "/", pathType: "Prefix", backend }] } }] },
    },
  };
}

/** Returns the differences from the expected fields, with their paths. Additional fields are ignored; lists must have the same length. */
export function differencesFrom(expected: unknown, actual: unknown, path = ""): string[] {
  if (typeof expected !== "object" || expected === null)
    return expected === actual ? [] : [`${path} is ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`];
  if (typeof actual !== "object" || actual === null) return [`${path} is ${JSON.stringify(actual)}`];
  if (Array.isArray(expected) && expected.length !== (actual as unknown[]).length)
    return [`${path} has ${(actual as unknown[]).length} elements, not ${expected.length}`];
  return Object.entries(expected).flatMap(([member, value]) =>
    differencesFrom(value, (actual as Content)[member], path === "" ? member : `${path}.${member}`),
  );
}
