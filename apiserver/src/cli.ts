import { readFile } from "node:fs/promises";
import { printableText } from "@gen-operator/schema";
import yargs from "yargs";
import { setInterval, setTimeout } from "./clock.js";
import { hintOf } from "./did-you-mean.js";
import { readTokenFile } from "./identity/authenticator.js";
import { type ApiServer, startApiServer } from "./server.js";
import type { SimulatedController, SimulationOptions } from "./simulate/index.js";

/** Runs the command line. Prints `ready URL` when the server is ready, or an error on standard error. */
export async function run(args: readonly string[]): Promise<void> {
  try {
    await start(args);
  } catch (error) {
    process.stderr.write(`${printableText(problemOf(error))}\n`);
    process.exitCode = 1;
  }
}

async function start(args: readonly string[]): Promise<void> {
  const options = await yargs(args)
    .scriptName("apiserver")
    .usage(
      "$0 [options]\n\nServes the Kubernetes API. Objects are kept in memory and are lost when the server stops, unless --data-dir is set.\n" +
        'Prints "ready URL" when it is ready. Press Ctrl+C to stop it.',
    )
    .option("port", { type: "number", default: 0, describe: "The port to listen on; 0 for any free port" })
    .option("host", {
      type: "string",
      default: "127.0.0.1",
      describe: "The address to listen on, for example 0.0.0.0 to accept connections from containers",
    })
    .option("certificate-names", {
      type: "string",
      array: true,
      default: [],
      describe:
        "Additional names and addresses of the serving certificate; kubeconfigs use the first one as server address",
    })
    .option("until-stdin-ends", {
      type: "boolean",
      default: false,
      describe: "Stop at the end of standard input, for example when the parent process is killed",
    })
    .option("kubeconfig", { type: "string", describe: "Write a kubeconfig to this file, for kubectl and operators" })
    .option("crds", {
      type: "string",
      array: true,
      default: [],
      describe: "Install the CustomResourceDefinitions in these YAML or JSON files",
    })
    .option("objects", {
      type: "string",
      array: true,
      default: [],
      describe: "Create the objects in these YAML or JSON files, for example roles and bindings",
    })
    .option("as", {
      type: "string",
      describe:
        "The user of the kubeconfig, for example system:serviceaccount:web:operator [default: the administrator]",
    })
    .option("token-auth-file", {
      type: "string",
      describe: 'A file with static tokens, as for kube-apiserver: lines of token,user,uid,"group1,group2"',
    })
    .option("client-ca-file", {
      type: "string",
      describe: "Accept client certificates signed by the CAs in this file, in addition to the CA of the server",
    })
    .option("data-dir", {
      type: "string",
      describe:
        "Store all objects in this folder and continue with them after a restart; requires the package classic-level",
    })
    .option("audit-log", {
      type: "string",
      describe: "Write an audit event for each request to this file, as a line of JSON",
    })
    .option("simulate", {
      type: "string",
      describe:
        "Run simulated controllers: all, the named ones, or all except those with a minus before their name, for example " +
        "--simulate=deployments,pods or --simulate=-events",
    })
    .option("service-account-admission", {
      type: "boolean",
      describe:
        "Enable the ServiceAccount admission plugin: reject Pods without an existing ServiceAccount and mount its token " +
        "[default: with --simulate=namespace-contents]",
    })
    .option("tls", {
      type: "boolean",
      default: true,
      describe: "Serve HTTPS with a generated certificate; --no-tls serves HTTP, to which kubectl sends no credentials",
    })
    .option("token", { type: "string", describe: "The bearer token of the administrator [default: random]" })
    .example("$0 --simulate --crds crds/*.yaml --kubeconfig kubeconfig", "then: KUBECONFIG=kubeconfig kubectl get all")
    .strict()
    .fail((message: string, error: Error | undefined) => {
      throw error ?? new Error(`${message}; see apiserver --help`);
    })
    .parseAsync();
  const { port, crds, objects, as, auditLog, dataDir, simulate, tls, token, kubeconfig } = options;
  const { tokenAuthFile, clientCaFile, serviceAccountAdmission, host, certificateNames, untilStdinEnds } = options;
  const server = await startApiServer({
    ...{ port, host, certificateNames, crds, objects, tls, unref: true },
    ...(typeof simulate !== "string" || simulate === "false" ? {} : { simulate: await simulationOf(simulate) }),
    ...(serviceAccountAdmission === undefined ? {} : { serviceAccountAdmission }),
    ...(token === undefined ? {} : { token }),
    ...(as === undefined ? {} : { as }),
    ...(tokenAuthFile === undefined ? {} : { users: await readTokenFile(tokenAuthFile) }),
    ...(clientCaFile === undefined ? {} : { clientCa: await readFile(clientCaFile, "utf8") }),
    ...(auditLog === undefined ? {} : { auditLog }),
    ...(dataDir === undefined ? {} : { dataDir, onFailure: exitWith }),
  });
  try {
    if (kubeconfig !== undefined) await server.writeKubeconfig(kubeconfig);
  } catch (error) {
    await server.close();
    throw error;
  }
  closeAtEnd(server, { untilStdinEnds });
  process.stdout.write(`ready ${server.url}\n`);
}

function exitWith(error: Error): void {
  process.stderr.write(`${printableText(problemOf(error))}\n`);
  process.exitCode = 1;
  // Leave time to send the responses with the error.
  setTimeout(() => process.exit(), 200);
}

/** Parses `--simulate`: `""` selects all controllers, names select these, names after a minus exclude them. */
async function simulationOf(text: string): Promise<SimulationOptions> {
  const { simulatedControllers } = await import("./simulate/index.js");
  const nameOf = (text: string): SimulatedController => {
    const name = simulatedControllers.find((known) => known === text);
    if (name !== undefined) return name;
    throw new Error(
      `invalid value "${text}" of --simulate: must be one of ${simulatedControllers.join(", ")}` +
        hintOf(text, simulatedControllers),
    );
  };
  const names = text.split(",").filter((name) => name !== "" && name !== "true");
  const only = names.filter((name) => !name.startsWith("-")).map(nameOf);
  const except = names.filter((name) => name.startsWith("-")).map((name) => nameOf(name.slice(1)));
  return { ...(only.length === 0 ? {} : { only }), except };
}

function problemOf(error: unknown): string {
  const { code, message, port } = error as { code?: string; message?: string; port?: number };
  return code === "EADDRINUSE" ? `port ${port} is already in use` : (message ?? String(error));
}

/** Closes the server on a signal or at the end of standard input. */
function closeAtEnd(server: ApiServer, { untilStdinEnds }: { untilStdinEnds: boolean }): void {
  setInterval(() => undefined, LONGEST_INTERVAL_MS);
  const close = (): void => {
    // A second signal terminates the process at once.
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.removeListener(signal, close);
    void server.close().then(() => process.exit(0));
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, close);
  if (!untilStdinEnds) return;
  process.stdin.once("close", close);
  process.stdin.resume();
}

const LONGEST_INTERVAL_MS = 2 ** 31 - 1;
