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
      "$0 [options]\n\nServes the Kubernetes API. Objects are kept in memory and are lost when it stops, unless there is --data-dir.\n" +
        'Prints "ready URL" when it serves. Ctrl+C stops it.',
    )
    .option("port", { type: "number", default: 0, describe: "The port to listen on; 0 for any free port" })
    .option("host", {
      type: "string",
      default: "127.0.0.1",
      describe: "The address to listen on, e.g. 0.0.0.0 to be reached from containers",
    })
    .option("certificate-names", {
      type: "string",
      array: true,
      default: [],
      describe: "Names and addresses of the certificate besides localhost; kubeconfigs have the first one",
    })
    .option("until-stdin-ends", {
      type: "boolean",
      default: false,
      describe: "Stop when standard input ends, as it does when the process that holds it is killed",
    })
    .option("kubeconfig", { type: "string", describe: "Write a kubeconfig to this file, for kubectl and operators" })
    .option("crds", {
      type: "string",
      array: true,
      default: [],
      describe: "Install the CustomResourceDefinitions of these YAML or JSON files",
    })
    .option("objects", {
      type: "string",
      array: true,
      default: [],
      describe: "Create the objects of these YAML or JSON files, such as roles and bindings",
    })
    .option("as", {
      type: "string",
      describe: "The user of the kubeconfig, e.g. system:serviceaccount:web:operator [default: the administrator]",
    })
    .option("token-auth-file", {
      type: "string",
      describe: 'Users with their tokens: lines of token,user,uid,"group1,group2"',
    })
    .option("client-ca-file", {
      type: "string",
      describe: "Trust certificates of clients that these authorities have signed, beside those of its own",
    })
    .option("data-dir", {
      type: "string",
      describe: "Keep all that is written in this folder and go on from there; needs the package classic-level",
    })
    .option("audit-log", { type: "string", describe: "Write a line of JSON for each request to this file" })
    .option("simulate", {
      type: "string",
      describe:
        "Run the controllers of a cluster: all, or those with these names, or all but those after a minus, e.g. " +
        "--simulate=deployments,pods or --simulate=-events",
    })
    .option("service-account-admission", {
      type: "boolean",
      describe:
        "Let only Pods in whose ServiceAccount exists, and mount its token [default: with --simulate=namespace-contents]",
    })
    .option("tls", {
      type: "boolean",
      default: true,
      describe: "Serve HTTPS with a certificate made for this run; --no-tls: HTTP, which kubectl cannot log in to",
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
      `--simulate: there is no controller "${text}"; there are ${simulatedControllers.join(", ")}` +
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
  return code === "EADDRINUSE" ? `port ${port} is in use` : (message ?? String(error));
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
