// A real control plane for tests: etcd and kube-apiserver on the loopback address, ready in about three seconds. Similar to envtest, but with a
// single CA, and with a static token instead of client certificates.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { apiRequest, type Connection } from "../api/api-request.js";
import { findBinaryOrThrow } from "./binaries.js";
import { createCertificates } from "../api/certificates.js";
import { waitFor } from "#apiserver/wait-for.js";
import { freePorts } from "./free-ports.js";
import { writeKubeconfig } from "../api/kubeconfig.js";
import { createProcessGroup, type ProcessGroup, type Program } from "./process-group.js";

/** A control plane that runs until it is closed or the process exits. */
export interface ControlPlane extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  readonly ca: string;
  /** The path of a kubeconfig of the administrator. */
  readonly kubeconfig: string;
  /** The path of the audit log of service accounts; undefined unless `audited` is set. */
  readonly auditLog?: string;
  /** The URL of etcd, which contains the objects of the API server. */
  readonly etcdUrl: string;
  /** The process ids, for measurements. */
  readonly pids: { etcd: number; apiserver: number };
  close(): Promise<void>;
}

/** A control plane whose controllers can be started and stopped while it is running. */
export interface StartedControlPlane extends ControlPlane {
  startControllers(names: readonly string[]): Program;
}

/** The options of a control plane. */
export interface ControlPlaneOptions {
  /** Whether to start kube-controller-manager with the garbage collector and the namespace controller. Default: false */
  controllers?: boolean;
  /** The controllers to start instead of these two. */
  controllerNames?: string[];
  /** Whether Pods need a ServiceAccount. Default: true if the controller that creates those of namespaces is started */
  serviceAccountAdmission?: boolean;
  /** Whether to write an audit log of the requests of service accounts. Default: false */
  audited?: boolean;
  /** Admission plugins to enable in addition to the default ones. */
  admissionPlugins?: string[];
  /** Whether to sync each write to disk. Default: false */
  isDurable?: boolean;
  /** Additional API versions to serve, such as `api/all=true`. */
  runtimeConfig?: string;
}

const START_TIMEOUT_MS = 60_000;
const ATTEMPTS = 3;

/** Starts a control plane, and waits until it accepts requests. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<StartedControlPlane> {
  for (let attempt = 1; ; attempt++) {
    const group = await createProcessGroup("gen-operator-control-plane-");
    try {
      return await startIn(group, options);
    } catch (error) {
      await group.close();
      // Another process may listen on a port after it was found to be free, so try again.
      if (attempt === ATTEMPTS || !String(error).includes("address already in use")) throw error;
    }
  }
}

async function startIn(group: ProcessGroup, options: ControlPlaneOptions): Promise<StartedControlPlane> {
  const files = await writeCredentials(group.folder);
  const [clientPort, peerPort, port] = await freePorts(3);
  const auditLog = options.audited === true ? join(group.folder, "audit.log") : undefined;
  const { admissionPlugins = [] } = options;
  const controllerNames =
    options.controllerNames ?? (options.controllers ? ["garbage-collector-controller", "namespace-controller"] : []);
  const { serviceAccountAdmission = controllerNames.includes("serviceaccount-controller") } = options;
  const etcdUrl = `http://127.0.0.1:${clientPort}`;
  const etcd = group.start("etcd", findBinaryOrThrow("etcd"), [
    `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
    `--listen-client-urls=${etcdUrl}`,
    `--advertise-client-urls=${etcdUrl}`,
    `--data-dir=${join(group.folder, "etcd")}`,
    `--unsafe-no-fsync=${options.isDurable !== true}`,
    "--log-level=error",
  ]);
  const apiserver = group.start("kube-apiserver", findBinaryOrThrow("kube-apiserver"), [
    `--etcd-servers=${etcdUrl}`,
    `--cert-dir=${group.folder}`,
    `--tls-cert-file=${files.serverCertificate}`,
    `--tls-private-key-file=${files.serverKey}`,
    `--client-ca-file=${files.ca}`,
    `--token-auth-file=${files.tokens}`,
    "--bind-address=127.0.0.1",
    `--secure-port=${port}`,
    "--service-cluster-ip-range=10.0.0.0/16",
    "--allow-privileged=true",
    ...(serviceAccountAdmission ? [] : ["--disable-admission-plugins=ServiceAccount"]),
    "--authorization-mode=RBAC",
    `--service-account-issuer=https://127.0.0.1:${port}/`,
    `--service-account-key-file=${files.serviceAccountKey}`,
    `--service-account-signing-key-file=${files.serviceAccountKey}`,
    "--max-requests-inflight=3000",
    "--max-mutating-requests-inflight=1000",
    "--enable-priority-and-fairness=false",
    ...(admissionPlugins.length === 0 ? [] : [`--enable-admission-plugins=${admissionPlugins.join(",")}`]),
    ...(options.runtimeConfig === undefined ? [] : [`--runtime-config=${options.runtimeConfig}`]),
    ...(auditLog === undefined ? [] : [`--audit-policy-file=${files.auditPolicy}`, `--audit-log-path=${auditLog}`]),
  ]);
  const connection = { url: `https://127.0.0.1:${port}`, token: TOKEN, ca: files.caText };
  await ready(connection, [etcd, apiserver]);
  const kubeconfig = join(group.folder, "kubeconfig");
  await writeKubeconfig(kubeconfig, connection);
  const startControllers = (names: readonly string[]) =>
    group.start("kube-controller-manager", findBinaryOrThrow("kube-controller-manager"), [
      `--kubeconfig=${kubeconfig}`,
      "--leader-elect=false",
      `--controllers=${names.join(",")}`,
      `--service-account-private-key-file=${files.serviceAccountKey}`,
      `--root-ca-file=${files.ca}`,
      `--cluster-signing-cert-file=${files.ca}`,
      `--cluster-signing-key-file=${files.caKey}`,
      "--secure-port=0",
    ]);
  if (controllerNames.length > 0) startControllers(controllerNames);
  const close = () => group.close();
  return {
    ...connection,
    kubeconfig,
    ...(auditLog === undefined ? {} : { auditLog }),
    etcdUrl,
    pids: { etcd: etcd.pid, apiserver: apiserver.pid },
    startControllers,
    close,
    [Symbol.asyncDispose]: close,
  };
}

const TOKEN = "admin-token";

// The first matching rule applies. A watch is logged when it starts.
const AUDIT_POLICY = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata", userGroups: ["system:serviceaccounts"] }, { level: "None" }],
};

async function writeCredentials(folder: string) {
  const { ca, caKey, ...certificates } = createCertificates();
  const write = async (name: string, text: string) => {
    const path = join(folder, name);
    await writeFile(path, text, { mode: 0o600 });
    return path;
  };
  return {
    caText: ca,
    ca: await write("ca.crt", ca),
    caKey: await write("ca.key", caKey),
    serverCertificate: await write("apiserver.crt", certificates.serverCertificate),
    serverKey: await write("apiserver.key", certificates.serverKey),
    serviceAccountKey: await write("sa.key", certificates.serviceAccountKey),
    auditPolicy: await write("audit-policy.json", JSON.stringify(AUDIT_POLICY)),
    tokens: await write("tokens.csv", `${TOKEN},admin,admin-uid,system:masters\n`),
  };
}

async function ready(connection: Connection, programs: Program[]): Promise<void> {
  const isReady = async () => {
    for (const program of programs) {
      const problem = await program.problem();
      if (problem !== undefined) throw new Error(problem);
    }
    return (await statusOf(connection, "/readyz")) === 200;
  };
  await waitFor("kube-apiserver is ready", isReady, { timeoutMs: START_TIMEOUT_MS, intervalMs: 50 });
  // The API server creates its namespaces a moment after it reports to be ready.
  await waitFor(
    "namespace default exists",
    async () => (await statusOf(connection, "/api/v1/namespaces/default")) === 200,
  );
}

async function statusOf(connection: Connection, path: string): Promise<number | undefined> {
  try {
    return (await apiRequest(connection, `GET ${path}`)).status;
  } catch {
    return undefined;
  }
}
