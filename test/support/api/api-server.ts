// The API server for tests: the embedded one, or a kube-apiserver with TEST_API_SERVER=real. The same tests run on both, so they must not depend on
// which one it is. The embedded server uses plain HTTP, because TLS takes up to a third of the CPU time; with TEST_API_SERVER=tls it uses HTTPS for
// all tests.
import { startSimulation } from "#apiserver/simulate/index.js";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseAllDocuments } from "yaml";
import { apiRequest, apiRequestOrThrow, type Connection } from "./api-request.js";
import { borrowControlPlane } from "../machine/borrow-control-plane.js";
import { waitFor } from "#apiserver/wait-for.js";
import { repositoryRoot } from "../repository.js";

/** An API server for a test. */
export interface TestApiServer extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  readonly ca?: string;
  /** The path of a kubeconfig of the administrator. */
  readonly kubeconfig: string;
  close(): Promise<void>;
}

/** The options of a test server. */
export interface TestApiServerOptions {
  /** CRDs to install: files, relative to the root of the repository, or objects. */
  crds?: (string | object)[];
  /** Whether to run the controllers of a cluster; Pods become ready. Default: false */
  simulate?: boolean;
  /** Whether to use HTTPS, for tests of certificates or of a whole operator. Default: false on the embedded server */
  tls?: boolean;
}

/** The controllers of kube-controller-manager that `simulate` enables on a real API server. */
export const REAL_CONTROLLERS = [
  ...["garbage-collector", "namespace", "serviceaccount", "root-ca-certificate-publisher"],
  ...["deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob", "ttl-after-finished"],
  ...["endpoints", "endpointslice", "disruption", "horizontal-pod-autoscaler"],
  ...["persistentvolume-binder", "persistentvolumeclaim-protection", "persistentvolume-protection"],
  ...["certificatesigningrequest-signing", "resourcequota", "clusterrole-aggregation"],
  "validatingadmissionpolicy-status",
].map((name) => `${name}-controller`);

/** Whether tests run on a real kube-apiserver. */
export const isRealApiServer = process.env["TEST_API_SERVER"] === "real";

/** Starts the API server that TEST_API_SERVER selects: `embedded` (the default), `tls`, or `real`. */
export async function startTestApiServer(options: TestApiServerOptions = {}): Promise<TestApiServer> {
  const crds = (await Promise.all((options.crds ?? []).map(readCrds))).flat();
  const simulate = options.simulate ?? false;
  if (isRealApiServer) return startReal(crds, simulate);
  const tls = options.tls === true || process.env["TEST_API_SERVER"] === "tls";
  return startEmbedded({ crds, simulate, tls });
}

async function startEmbedded(options: { crds: object[]; simulate: boolean; tls: boolean }): Promise<TestApiServer> {
  // Load the embedded server only if it is used, so that a run on a real server does not depend on it.
  const { startApiServer } = await import("#apiserver/index.js");
  const server = await startApiServer(options);
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-api-server-"));
  const kubeconfig = join(folder, "kubeconfig");
  await server.writeKubeconfig(kubeconfig);
  const close = async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  };
  const { url, token, ca } = server;
  return { url, token, ...(ca === undefined ? {} : { ca }), kubeconfig, close, [Symbol.asyncDispose]: close };
}

async function startReal(crds: object[], simulate: boolean): Promise<TestApiServer> {
  // Run the real controllers, and simulate only the scheduler and the kubelet, because there are no nodes.
  const plane = await borrowControlPlane(simulate ? { controllerNames: REAL_CONTROLLERS } : {});
  try {
    await Promise.all(crds.map((crd) => installCrd(plane, crd as Crd)));
    if (!simulate) return plane;
    // The controllers take seconds to start, and Pods cannot be created without the default ServiceAccount.
    const account = "GET /api/v1/namespaces/default/serviceaccounts/default";
    const hasAccount = async () => (await apiRequest(plane, account)).status === 200;
    await waitFor("the controllers create accounts", hasAccount, { timeoutMs: 40_000 });
    const simulation = await startSimulation(plane, { only: ["pods", "events", "load-balancers"] });
    const close = async () => {
      await simulation.close();
      await plane.close();
    };
    return { ...plane, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await plane.close();
    throw error;
  }
}

/** The fields that tests read from a CRD. */
export interface Crd {
  metadata: { name: string };
  spec: { group: string; names: { plural: string }; versions: readonly { name: string; served: boolean }[] };
}

async function readCrds(crd: string | object): Promise<object[]> {
  if (typeof crd !== "string") return [crd];
  const text = await readFile(resolve(repositoryRoot, crd), "utf8");
  const documents = parseAllDocuments(text).map((document) => document.toJS() as { kind?: string } | null);
  return documents.filter((document) => document?.kind === "CustomResourceDefinition") as object[];
}

/** Creates a CRD, and waits until its kind is served. */
export async function installCrd(connection: Connection, crd: Crd): Promise<void> {
  const { group, names, versions } = crd.spec;
  await apiRequestOrThrow(connection, "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: crd });
  // The versions of a CRD are served a moment after its creation, each at its own time.
  for (const { name } of versions.filter(({ served }) => served)) {
    const path = `/apis/${group}/${name}`;
    await waitFor(`${names.plural} are served at ${path}`, async () => {
      const isListed = (await apiRequest(connection, `GET ${path}/${names.plural}`)).status === 200;
      return isListed && (await apiRequest(connection, `GET ${path}`)).text.includes(`"${names.plural}"`);
    });
  }
}
