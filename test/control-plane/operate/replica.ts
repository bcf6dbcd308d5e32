// A replica of an operator as a process of its own, with a proxy between it and a real API server.
import { spawn } from "node:child_process";
import { LEASE, type Lease } from "#runtime/operate/lease-lock.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow, type Connection } from "../../support/api/api-request.js";
import { startRecordingProxy, type ProxiedRequest, type RecordingProxy } from "../../support/api/recording-proxy.js";

/** One line of the log of a replica. */
export interface LogLine {
  readonly level: string;
  readonly message: string;
}

/** A process that runs an operator. */
export interface Replica extends AsyncDisposable {
  readonly pid: number;
  readonly proxy: RecordingProxy;
  /** Resolves with the exit code, null for a signal. */
  readonly ended: Promise<number | null>;
  /** When it ended; absent while it runs. */
  readonly endedAt: number | undefined;
  readonly log: readonly LogLine[];
  kill(signal: NodeJS.Signals): void;
  /** The requests that change something, but for the Lease and for questions about permissions. */
  writes(): readonly ProxiedRequest[];
  /** The writes of the Lease. */
  renewals(): readonly ProxiedRequest[];
}

/** How a replica differs from the usual one. */
export interface ReplicaOptions {
  /** What the options of runOperator have besides the connection and the namespace of the Lease. */
  readonly options?: string;
  readonly election?: string;
  readonly reconcile?: string;
  /** What is done before anything is loaded. */
  readonly before?: string;
  /** Another identity than the administrator's. */
  readonly token?: string;
}

/** The namespace of one scenario: a primary, and the replicas that reconcile it. */
export interface Stage {
  readonly namespace: string;
  startReplica(options?: ReplicaOptions): Promise<Replica>;
  /** Starts one and waits until it leads. */
  startLeader(options?: ReplicaOptions): Promise<Replica>;
  lease(): Promise<Lease | undefined>;
  /** Sets the text of the only page, which is created at first. */
  setText(text: string): Promise<void>;
  /** The text of the ConfigMap that the operator makes of the page. */
  text(): Promise<string | undefined>;
}

const isOfLease = ({ path }: ProxiedRequest) => path.includes("/leases");
const isReview = ({ path }: ProxiedRequest) => path.includes("/selfsubjectaccessreviews");

/** Creates a namespace with one page. */
export async function openStage(admin: Connection, namespace: string): Promise<Stage> {
  await apiRequestOrThrow(admin, "POST /api/v1/namespaces", { body: { metadata: { name: namespace } } });
  const pages = `/apis/example.com/v1/namespaces/${namespace}/pages`;
  const setText = async (text: string) => {
    const page = { apiVersion: "example.com/v1", kind: "Page", metadata: { name: "one", namespace }, spec: { text } };
    await apiRequestOrThrow(admin, `PATCH ${pages}/one?fieldManager=user&force=true`, {
      ...{ body: page, contentType: "application/apply-patch+yaml" },
    });
  };
  const lease = async () => {
    const path = `/apis/${LEASE.apiVersion}/namespaces/${namespace}/leases/page-leader`;
    const { status, body } = await apiRequest<Lease>(admin, `GET ${path}`);
    return status === 200 ? body : undefined;
  };
  const startReplica = (options: ReplicaOptions = {}) => startReplicaIn(namespace, admin, options);
  await setText("first");
  return {
    ...{ namespace, setText, lease, startReplica },
    async startLeader(options) {
      const replica = await startReplica(options);
      await untilLeading(replica);
      return replica;
    },
    async text() {
      const path = `/api/v1/namespaces/${namespace}/configmaps/one-text`;
      const { body } = await apiRequest<{ data?: { text?: string } }>(admin, `GET ${path}`);
      return body.data?.text;
    },
  };
}

/** Waits until a replica says that it leads. */
export const untilLeading = (replica: Replica) =>
  waitFor("it leads", () => replica.log.some(({ message }) => message.startsWith("acquired Lease")), {
    timeoutMs: 60_000,
  });

/** Waits until the ConfigMap says what the page says. */
export const untilText = (stage: Stage, text: string) =>
  waitFor(`${stage.namespace} says ${text}`, async () => (await stage.text()) === text, { timeoutMs: 60_000 });

/** Edits the page over and over until it is disposed. */
export function churn(stage: Stage): AsyncDisposable & { readonly edits: number } {
  let isEnding = false;
  const state = { edits: 0 };
  const edited = (async () => {
    while (!isEnding) {
      await stage.setText(`churn ${++state.edits}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  return {
    get edits() {
      return state.edits;
    },
    async [Symbol.asyncDispose]() {
      isEnding = true;
      await edited;
    },
  };
}

async function startReplicaIn(namespace: string, admin: Connection, given: ReplicaOptions): Promise<Replica> {
  const { options = "", election = "", reconcile = "() => {}", before = "", token = admin.token } = given;
  const proxy = await startRecordingProxy(admin);
  const program = `
    ${before}
    const { runOperator } = await import(${JSON.stringify(import.meta.resolve("#runtime/index.js"))});
    const { Page, configMapOf } = await import(${JSON.stringify(import.meta.resolve("../../integration/runtime/page.js"))});
    const workflow = { primary: Page.definition, dependents: [configMapOf("text")] };
    const controller = { name: "page", namespaces: ["${namespace}"], workflow, reconciler: { reconcile: ${reconcile} } };
    await runOperator([controller], {
      connection: { url: "${proxy.url}", token: "${token}" },
      leaderElection: { namespace: "${namespace}", ${election} },
      ${options}
    });`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    env: { ...process.env, LOG_FORMAT: "json" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const log: LogLine[] = [];
  let rest = "";
  child.stderr.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines)
      log.push(line.startsWith("{") ? (JSON.parse(line) as LogLine) : { level: "", message: line });
  });
  let endedAt: number | undefined;
  const ended = new Promise<number | null>((resolve) =>
    child.once("close", (code) => {
      endedAt = performance.now();
      resolve(code);
    }),
  );
  return {
    ...{ pid: child.pid ?? 0, proxy, ended, log },
    get endedAt() {
      return endedAt;
    },
    kill: (signal) => void child.kill(signal),
    writes: () => proxy.requests.filter((each) => each.method !== "GET" && !isOfLease(each) && !isReview(each)),
    renewals: () => proxy.requests.filter((each) => each.method !== "GET" && isOfLease(each)),
    async [Symbol.asyncDispose]() {
      if (endedAt === undefined) child.kill("SIGKILL");
      await ended;
      await proxy[Symbol.asyncDispose]();
    },
  };
}
