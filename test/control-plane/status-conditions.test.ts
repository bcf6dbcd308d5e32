// The conditions that the runtime keeps are what kubectl waits for, on both API servers.
import { execFile } from "node:child_process";
import { startSimulation } from "#apiserver/simulate/index.js";
import { createLogger, createOperator } from "@gen-operator/runtime";
import { controllers, Tomcat, Webapp } from "#tomcat/generated/index.js";
import { apiRequestOrThrow, type Connection } from "../support/api/api-request.js";
import { startTestApiServer } from "../support/api/api-server.js";
import { findBinaryOrThrow } from "../support/machine/binaries.js";
import { borrowControlPlane } from "../support/machine/borrow-control-plane.js";
import { waitFor } from "#apiserver/wait-for.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";

type Server = AsyncDisposable & Connection & { readonly kubeconfig: string };

const servers: { readonly [name: string]: () => Promise<Server> } = {
  // kubectl sends no token over plain HTTP.
  "the embedded API server": () => startTestApiServer({ tls: true }),
  "a real API server": () => borrowControlPlane(),
};
const CRDS = ["tomcats", "webapps"].map((plural) => `fixtures/samples/tomcat/crds/${plural}.example.com.yaml`);
const NAMESPACE = "default";

function kubectl({ kubeconfig }: Server, command: string): Promise<{ code: number; output: string }> {
  const args = ["--kubeconfig", kubeconfig, ...command.split(" ")];
  return new Promise((done) => {
    execFile(findBinaryOrThrow("kubectl"), args, { cwd: repositoryRoot }, (error, stdout, stderr) =>
      done({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
    );
  });
}

async function runOrThrow(server: Server, command: string): Promise<string> {
  const { code, output } = await kubectl(server, command);
  if (code !== 0) throw new Error(`kubectl ${command} exited with ${code}:\n${output}`);
  return output;
}

suite("kubectl wait --for=condition=Ready", (test) => {
  for (const [name, start] of Object.entries(servers))
    test(
      `waits on ${name} until all dependents are ready, again after a change of the spec`,
      async () => {
        await using server = await start();
        for (const file of CRDS) await runOrThrow(server, `apply -f ${file}`);
        for (const crd of ["tomcats", "webapps"])
          await runOrThrow(server, `wait --for=condition=Established crd/${crd}.example.com --timeout=20s`);
        await using _simulation = await startSimulation(server, { except: ["garbage-collection", "namespaces"] });
        await using operator = createOperator({
          controllers,
          kubeconfig: server.kubeconfig,
          logger: createLogger("error"),
        });
        const { client } = await operator.start();
        const spec = { tomcat: "main", contextPath: "shop", url: "https://archives.example.com/shop.war" };
        await client.create(Webapp, Webapp.create({ metadata: { name: "shop", namespace: NAMESPACE }, spec }));
        const wait = (seconds: number) => `wait --for=condition=Ready webapp/shop --timeout=${seconds}s`;
        const early = await kubectl(server, wait(1));
        assert.is(early.code, 1);
        assert.match(early.output, "timed out waiting for the condition");
        await client.create(
          Tomcat,
          Tomcat.create({ metadata: { name: "main", namespace: NAMESPACE }, spec: { version: "11.0", replicas: 1 } }),
        );
        assert.match(await runOrThrow(server, wait(60)), /webapp\S*\/shop condition met/);

        // What was true of the generation before is not waited for.
        const path = `PATCH /apis/example.com/v1/namespaces/${NAMESPACE}/webapps/shop`;
        await apiRequestOrThrow(server, path, {
          body: { spec: { tomcat: "other" } },
          contentType: "application/merge-patch+json",
        });
        const stopped = await kubectl(server, wait(1));
        assert.is(stopped.code, 1, stopped.output);
        await runOrThrow(server, `get webapp shop -o jsonpath={.status.conditions[?(@.type=="Ready")].message}`).then(
          (message) => assert.match(message, "tomcat"),
        );
        await client.create(
          Tomcat,
          Tomcat.create({ metadata: { name: "other", namespace: NAMESPACE }, spec: { version: "11.0", replicas: 1 } }),
        );
        await runOrThrow(server, wait(60));
        const served = await waitFor("the state of the webapp", () =>
          client.get(Webapp, { name: "shop", namespace: NAMESPACE }),
        );
        assert.match(served.status?.url ?? "", /other/);
      },
      { timeoutMs: 180_000 },
    );
});
