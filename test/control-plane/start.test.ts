import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { apiRequest, apiRequestOrThrow } from "../support/api/api-request.js";
import { findBinaryOrThrow, kubernetesVersion } from "../support/machine/binaries.js";
import { startControlPlane } from "../support/machine/control-plane.js";
import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../support/suite.js";

suite("control plane", (test) => {
  test("serves the pinned version, and rejects a wrong token with 401", async () => {
    await using plane = await startControlPlane();
    const version = await apiRequestOrThrow<{ gitVersion: string }>(plane, "GET /version");
    assert.is(version.gitVersion, kubernetesVersion());
    const anonymous = await apiRequest({ ...plane, token: "wrong" }, "GET /api/v1/namespaces");
    assert.is(anonymous.status, 401);
  });

  test("is reached by kubectl through its kubeconfig", async () => {
    await using plane = await startControlPlane();
    const output = await outputOf(findBinaryOrThrow("kubectl"), [
      `--kubeconfig=${plane.kubeconfig}`,
      ..."get namespace default -o name".split(" "),
    ]);
    assert.is(output, "namespace/default\n");
  });

  test("leaves no processes or files after close, which may be called twice", async () => {
    const plane = await startControlPlane({ controllers: true });
    await plane.close();
    await plane.close();
    assert.not.ok(isAlive(plane.pids.apiserver));
    assert.not.ok(isAlive(plane.pids.etcd));
    assert.not.ok(existsSync(dirname(plane.kubeconfig)));
  });

  test("leaves no processes or files after the test process is killed", async () => {
    const script = `
      import { startControlPlane } from ${JSON.stringify(new URL("../support/machine/control-plane.js", import.meta.url).href)};
      const { pids, kubeconfig } = await startControlPlane();
      console.log(JSON.stringify({ pids, kubeconfig }));
      process.kill(process.pid, "SIGKILL");`;
    const { pids, kubeconfig } = JSON.parse(
      await outputOf(process.execPath, ["--input-type=module", "--eval", script]),
    ) as { pids: { etcd: number; apiserver: number }; kubeconfig: string };
    await waitFor("processes ended", () => !isAlive(pids.apiserver) && !isAlive(pids.etcd));
    await waitFor("folder removed", () => !existsSync(dirname(kubeconfig)));
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // Where nothing waits for orphans, as in many containers, a killed one stays as a zombie.
  const status = existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, "utf8") : "";
  return !/^State:\s+Z/m.test(status);
}

function outputOf(path: string, args: string[]): Promise<string> {
  return new Promise((done, fail) => {
    const child = spawn(path, args, { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.once("error", fail);
    child.once("close", () => done(output));
  });
}
