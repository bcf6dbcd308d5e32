import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { apiRequestOrThrow, type ApiObject, type Connection } from "../support/api/api-request.js";
import { startFlags } from "../support/projects/start-flags.js";
import { waitFor } from "#apiserver/wait-for.js";
import { assert } from "../support/suite.js";
import { createProcessGroup, type ProcessGroup, type Program } from "../support/machine/process-group.js";

/** The embedded API server, a program of its own. */
export interface ProjectServer {
  readonly connection: Connection;
  readonly kubeconfig: string;
  /** Sends a request as the administrator; an answer that is no success is an error. */
  request(methodAndPath: string, body?: object): Promise<ApiObject>;
}

/** A compiled operator beside the embedded API server. */
interface RunningOperator extends AsyncDisposable, Pick<ProjectServer, "request"> {}

/** Which operator runs on what. */
export interface ConvergeOptions {
  readonly node: string;
  /** The folder with the compiled operator, if it is not the project. */
  readonly operatorFolder?: string;
}

/** How they are started. */
interface RunningOperatorOptions extends ConvergeOptions {
  /** Relative to the project. */
  readonly crd: string;
}

interface Kubeconfig {
  clusters: [{ cluster: { server: string; "certificate-authority-data"?: string } }];
  users: [{ user: { token: string } }];
}

/** Creates a web page on an operator that is started for it, and waits until the page has its config map. */
export async function convergeOnePage(project: string, options: ConvergeOptions): Promise<void> {
  await using run = await runOperatorOnServer(project, { ...options, crd: CRD });
  await createPage(run);
}

/** The definition that projects of these tests are made from, relative to the project. */
export const CRD = "crds/webpages.example.com.yaml";

/** Returns a web page of a name. */
export function webPage(name: string): object {
  const spec = { html: "<h1>hello</h1>", host: "home.example.com" };
  return { apiVersion: "example.com/v1", kind: "WebPage", metadata: { name }, spec };
}

/** Creates a web page, and waits until it has its config map. */
export async function createPage({ request }: Pick<ProjectServer, "request">): Promise<void> {
  await request("POST /apis/example.com/v1/namespaces/default/webpages", webPage("home"));
  const find = () => request("GET /api/v1/namespaces/default/configmaps/home").catch(() => undefined);
  const configMap = await waitFor("the config map", find, { timeoutMs: 30_000 });
  assert.is(configMap.metadata.ownerReferences?.[0]?.kind, "WebPage");
}

/** Starts the API server that a project has installed, by its command. */
export async function startProjectServer(
  group: ProcessGroup,
  project: string,
  { node, crd }: { readonly node: string; readonly crd: string },
): Promise<ProjectServer> {
  const kubeconfig = join(group.folder, "kubeconfig");
  const serve = 'cd "$1" && shift && exec npx @gen-operator/apiserver "$@"';
  const options = ["--port", "0", "--kubeconfig", kubeconfig, "--crds", crd, "--simulate"];
  const path = `PATH=${join(node, "..")}:${process.env["PATH"] ?? ""}`;
  const server = group.start("apiserver", "env", [path, "sh", "-c", serve, "sh", project, ...options]);
  const connection = await waitFor("a kubeconfig", () => readConnection(kubeconfig, server), { timeoutMs: 60_000 });
  return {
    connection,
    kubeconfig,
    request: (methodAndPath, body) => apiRequestOrThrow(connection, methodAndPath, body === undefined ? {} : { body }),
  };
}

/** Starts the API server that a project has installed, and the project's compiled operator. */
async function runOperatorOnServer(
  project: string,
  { node, crd, operatorFolder = project }: RunningOperatorOptions,
): Promise<RunningOperator> {
  const group = await createProcessGroup("gen-operator-e2e-");
  try {
    const { request, kubeconfig } = await startProjectServer(group, project, { node, crd });
    const main = join(operatorFolder, "dist/src/main.js");
    group.start("operator", "env", [`KUBECONFIG=${kubeconfig}`, node, ...startFlags, main]);
    return { request, [Symbol.asyncDispose]: () => group.close() };
  } catch (error) {
    await group.close();
    throw error;
  }
}

async function readConnection(file: string, server: Program): Promise<Connection | undefined> {
  const problem = await server.problem();
  if (problem !== undefined) throw new Error(problem);
  const text = await readFile(file, "utf8").catch(() => "");
  if (text === "") return undefined;
  const { clusters, users } = parse(text) as Kubeconfig;
  const { server: url, "certificate-authority-data": authority } = clusters[0].cluster;
  const ca = authority === undefined ? {} : { ca: Buffer.from(authority, "base64").toString() };
  return { url, token: users[0].user.token, ...ca };
}
