import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { startProgram } from "#test/control-plane/embedded/apiserver-program.js";
import { createTemporaryFolder } from "#test/support/temporary-folder.js";
import type { MeasuredPlane } from "./counted-cluster.js";

interface Kubeconfig {
  clusters: [{ cluster: { server: string; "certificate-authority-data": string } }];
}

/** Starts the embedded server with all simulated controllers in a separate process. */
export async function startEmbeddedPlane(): Promise<MeasuredPlane> {
  const folder = await createTemporaryFolder();
  const kubeconfig = join(folder.path, "kubeconfig");
  const token = randomUUID();
  const program = startProgram(["--simulate", "--kubeconfig", kubeconfig, "--token", token]);
  const close = async (): Promise<void> => {
    await program[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  };
  try {
    await program.ready();
    const { cluster } = (parse(await readFile(kubeconfig, "utf8")) as Kubeconfig).clusters[0];
    const ca = Buffer.from(cluster["certificate-authority-data"], "base64").toString();
    return { url: cluster.server, token, ca, kubeconfig, pids: { apiserver: program.pid }, close };
  } catch (error) {
    await close();
    throw error;
  }
}
