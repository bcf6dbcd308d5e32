/** The namespace of all objects of the workload. */
export const NAMESPACE = "bench";

/** The path of the WebPage collection. */
export const PAGES_PATH = `/apis/bench.example.com/v1/namespaces/${NAMESPACE}/webpages`;

/** The paths of the four dependents of a WebPage, by plural resource name. */
export const childPaths: Record<string, string> = {
  configmaps: `/api/v1/namespaces/${NAMESPACE}/configmaps`,
  deployments: `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`,
  services: `/api/v1/namespaces/${NAMESPACE}/services`,
  ingresses: `/apis/networking.k8s.io/v1/namespaces/${NAMESPACE}/ingresses`,
};

/** The CRD of WebPage. */
export const webPageDefinition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "webpages.bench.example.com" },
  spec: {
    group: "bench.example.com",
    scope: "Namespaced",
    names: { kind: "WebPage", listKind: "WebPageList", plural: "webpages", singular: "webpage" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: "object",
            required: ["spec"],
            properties: {
              spec: {
                type: "object",
                required: ["html"],
                properties: {
                  html: { type: "string", description: "Content of index.html" },
                  replicas: { type: "integer", minimum: 0, default: 1 },
                  host: { type: "string", description: "Host name of the ingress rule" },
                },
              },
              status: {
                type: "object",
                properties: { observedGeneration: { type: "integer" }, message: { type: "string" } },
              },
            },
          },
        },
      },
    ],
  },
};

/** Returns the name of a WebPage, which is also that of its dependents. */
export function pageName(index: number): string {
  return `page-${String(index).padStart(5, "0")}`;
}

/** Returns the HTML of a page in a version. */
export function htmlOf(version: string, name: string): string {
  return `<h1>${version} ${name}</h1>`;
}

/** Returns a WebPage in its first version. */
export function webPage(index: number): object {
  const name = pageName(index);
  return {
    apiVersion: "bench.example.com/v1",
    kind: "WebPage",
    metadata: { name, namespace: NAMESPACE },
    spec: { html: htmlOf("one", name), replicas: 1, host: `${name}.example.com` },
  };
}

/** The fields that the driver reads. */
export interface BenchObject {
  metadata: { name: string; uid: string; generation?: number };
  data?: Record<string, string>;
  status?: { observedGeneration?: number };
}
