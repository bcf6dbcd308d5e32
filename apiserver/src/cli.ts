import yargs from "yargs";
import { startApiServer, type ApiServer } from "./server.js";

/** Runs the command line; prints one line, `ready URL`, once the server answers, or on standard error why it does not. */
export async function run(args: readonly string[]): Promise<void> {
  try {
    await start(args);
  } catch (error) {
    process.stderr.write(`${problemOf(error)}\n`);
    process.exitCode = 1;
  }
}

async function start(args: readonly string[]): Promise<void> {
  const options = await yargs(args)
    .scriptName("apiserver")
    .usage("$0 [options]\n\nServes the Kubernetes API from memory on 127.0.0.1.")
    .option("port", { type: "number", default: 0, describe: "port, 0 for one that is free" })
    .option("kubeconfig", { type: "string", describe: "file to write a kubeconfig to" })
    .option("crds", { type: "string", array: true, default: [], describe: "files of CustomResourceDefinitions" })
    .option("simulate", {
      type: "boolean",
      default: false,
      describe: "collect garbage, end namespaces, let workloads become ready",
    })
    .option("tls", {
      type: "boolean",
      default: true,
      describe: "HTTPS with a throw-away certificate; --no-tls for HTTP",
    })
    .option("token", { type: "string", describe: "bearer token, random without" })
    .strict()
    .parseAsync();
  const { port, crds, simulate, tls, token, kubeconfig } = options;
  const server = await startApiServer({ port, crds, simulate, tls, ...(token === undefined ? {} : { token }) });
  try {
    if (kubeconfig !== undefined) await server.writeKubeconfig(kubeconfig);
  } catch (error) {
    await server.close();
    throw error;
  }
  closeOnSignal(server);
  process.stdout.write(`ready ${server.url}\n`);
}

function problemOf(error: unknown): string {
  const { code, message, port } = error as { code?: string; message?: string; port?: number };
  return code === "EADDRINUSE" ? `port ${port} is in use` : (message ?? String(error));
}

function closeOnSignal(server: ApiServer): void {
  const close = (): void => {
    // A second signal ends the process at once.
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.removeListener(signal, close);
    void server.close().then(() => process.exit(0));
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, close);
}
