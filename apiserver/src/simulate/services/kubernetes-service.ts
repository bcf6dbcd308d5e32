// Endpoints of the Service `kubernetes`, which kube-apiserver maintains itself.
import { ApiError } from "../feed/api-client.js";
import type { Cluster } from "../feed/cluster.js";

const NAME = "kubernetes";
const NAMESPACE = "default";

/** Creates the Endpoints and EndpointSlice of the API server if they do not exist. */
export async function writeServerEndpoints(cluster: Pick<Cluster, "get" | "create">, url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const ports = [{ name: "https", port: Number(port === "" ? 443 : port), protocol: "TCP" }];
  const ip = /^[\d.]+$/.test(hostname) ? hostname : "127.0.0.1";
  // Validation of Endpoints rejects loopback addresses.
  const address = ip.startsWith("127.") ? "10.0.0.1" : ip;
  const create = async (kind: string, labels: Record<string, string>, content: object) => {
    if (cluster.get(kind, `${NAMESPACE}/${NAME}`) !== undefined) return;
    try {
      await cluster.create(kind, { metadata: { name: NAME, namespace: NAMESPACE, labels }, ...content });
    } catch (error) {
      // A real API server that has just started creates these objects itself, possibly concurrently.
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
    }
  };
  await create(
    "endpoints.",
    { "endpointslice.kubernetes.io/skip-mirror": "true" },
    { subsets: [{ addresses: [{ ip: address }], ports }] },
  );
  await create(
    "endpointslices.discovery.k8s.io",
    { "kubernetes.io/service-name": NAME },
    { addressType: "IPv4", endpoints: [{ addresses: [address], conditions: { ready: true } }], ports },
  );
}
