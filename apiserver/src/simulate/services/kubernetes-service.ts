// The addresses behind the Service `kubernetes`, which the API server keeps for itself.
import type { Cluster } from "../feed/cluster.js";

const NAME = "kubernetes";
const NAMESPACE = "default";
const SLICES = "endpointslices.discovery.k8s.io";
const ENDPOINTS = "endpoints.";

/** Creates the Endpoints and the EndpointSlice of the server itself, unless they are there. */
export async function writeServerEndpoints(cluster: Cluster, url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const key = `${NAMESPACE}/${NAME}`;
  const metadata = { name: NAME, namespace: NAMESPACE };
  const ports = [{ name: "https", port: Number(port === "" ? 443 : port), protocol: "TCP" }];
  const ip = /^[\d.]+$/.test(hostname) ? hostname : "127.0.0.1";
  if (cluster.get(ENDPOINTS, key) === undefined) {
    const labels = { "endpointslice.kubernetes.io/skip-mirror": "true" };
    // Endpoints may not lead to a loopback address.
    const address = ip.startsWith("127.") ? "10.0.0.1" : ip;
    await cluster.create(ENDPOINTS, {
      metadata: { ...metadata, labels },
      subsets: [{ addresses: [{ ip: address }], ports }],
    });
  }
  if (cluster.get(SLICES, key) === undefined) {
    const labels = { "kubernetes.io/service-name": NAME };
    const address = ip.startsWith("127.") ? "10.0.0.1" : ip;
    const endpoints = [{ addresses: [address], conditions: { ready: true } }];
    await cluster.create(SLICES, { metadata: { ...metadata, labels }, addressType: "IPv4", endpoints, ports });
  }
}
