import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { startApiServer, waitFor } from "@gen-operator/apiserver";
import { startSimulation } from "@gen-operator/apiserver/simulate";
import { CustomResourceDefinition } from "@gen-operator/kinds/apiextensions.k8s.io/v1";
import { Namespace } from "@gen-operator/kinds/core/v1";
import { ApiClient, createConnection, loadConnection, type Connection } from "@gen-operator/runtime";

/** Where the demo runs: an embedded API server, or a cluster of the user's. */
export interface Cluster extends AsyncDisposable {
  readonly connection: Connection;
  /** A client besides the operator's, for what people do by hand. */
  readonly client: ApiClient;
  /** A namespace that is made for the demo and deleted after it. */
  readonly namespace: string;
  readonly description: string;
}

/** What the command line says about the cluster. */
export interface ClusterOptions {
  readonly kubeconfig?: string | undefined;
  /** Makes workloads ready on a control plane without nodes. */
  readonly simulatesWorkloads: boolean;
  readonly crdFile: string;
}

/** Starts or finds the cluster, with the CRD installed and a namespace of its own. */
export async function openCluster(options: ClusterOptions): Promise<Cluster> {
  const cleanups: (() => Promise<unknown>)[] = [];
  const dispose = async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  };
  try {
    const { kubeconfig, crdFile, simulatesWorkloads } = options;
    let connection: Connection;
    if (kubeconfig === undefined) {
      const server = await startApiServer({ simulate: true });
      cleanups.push(() => server.close());
      connection = createConnection(server);
    } else connection = await loadConnection({ kubeconfig });
    const client = new ApiClient(connection);
    cleanups.push(() => client.close());
    if (kubeconfig !== undefined && simulatesWorkloads) {
      const simulation = await startSimulation(await simulationConnection(connection), {
        except: ["garbage-collection", "namespaces"],
      });
      cleanups.push(() => simulation.close());
    }
    const isInstalled = await installCrd(client, crdFile);
    if (isInstalled !== undefined) cleanups.push(isInstalled);
    const namespace = `gen-operator-demo-${randomBytes(3).toString("hex")}`;
    await client.create(Namespace, { metadata: { name: namespace } });
    cleanups.push(() => client.delete(Namespace, { name: namespace }));
    const description = `${kubeconfig === undefined ? "embedded API server" : "cluster"} at ${connection.server}`;
    return { connection, client, namespace, description, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Installs the CRD unless it is there; returns how to remove it again if it was not. */
async function installCrd(client: ApiClient, crdFile: string): Promise<(() => Promise<unknown>) | undefined> {
  const crd = CustomResourceDefinition.parse(parse(await readFile(crdFile, "utf8")));
  const { name } = crd.metadata;
  const existing = await client.get(CustomResourceDefinition, { name });
  if (existing === undefined) await client.create(CustomResourceDefinition, crd);
  const { group, names } = crd.spec;
  const served = {
    ...CustomResourceDefinition.definition,
    group,
    version: "v1",
    apiVersion: `${group}/v1`,
    plural: names.plural,
    kind: names.plural,
  };
  await waitFor(`${name} is served`, () => client.isServed(served), { timeoutMs: 30_000 });
  return existing === undefined ? () => client.delete(CustomResourceDefinition, { name }) : undefined;
}

async function simulationConnection(connection: Connection): Promise<{ url: string; token: string; ca?: string }> {
  const { authorization = "" } = await connection.credentials({ isRejected: false });
  if (!authorization.startsWith("Bearer ")) throw new Error("--simulate needs a kubeconfig with a token");
  const ca = connection.ca === undefined ? {} : { ca: connection.ca.toString() };
  return { url: connection.server, token: authorization.slice("Bearer ".length), ...ca };
}
