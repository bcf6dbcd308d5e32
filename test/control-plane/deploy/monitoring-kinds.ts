import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import type { Connection } from "../../support/api/api-request.js";
import { installCrd } from "../../support/api/api-server.js";

const MODULE = "github.com/prometheus-operator/prometheus-operator@v0.85.0";

/** Installs the kinds of prometheus-operator, from its Go module. */
export async function installMonitoringKinds(server: Connection, workingDirectory: string): Promise<void> {
  const env = { ...process.env, GOWORK: "off" };
  const output = execFileSync("go", ["mod", "download", "-json", MODULE], {
    cwd: workingDirectory,
    env,
    encoding: "utf8",
  });
  const { Dir: folder } = JSON.parse(output) as { Dir: string };
  for (const plural of ["podmonitors", "prometheusrules"]) {
    const file = join(folder, "example/prometheus-operator-crd", `monitoring.coreos.com_${plural}.yaml`);
    await installCrd(server, parse(await readFile(file, "utf8")));
  }
}
