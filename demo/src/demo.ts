// npm run demo [-- --kubeconfig FILE [--simulate]]: from a CRD and a workflow spec to an operator that converges.
import { parseArgs } from "node:util";
import { createLogger, createOperator, messageOf } from "@gen-operator/runtime";
import { openCluster } from "./cluster.js";
import { DemoProject } from "./demo-project.js";
import { LiveTable } from "#generator/dev/live-table.js";
import { reportOf } from "#generator/dev/operator/reports.js";
import { RequestCounts } from "./request-counts.js";
import { playScenario } from "./scenario.js";

const STEP_TIMEOUT_MS = 20_000;
// The garbage collector of a real cluster learns of new kinds every 30 s.
const REAL_STEP_TIMEOUT_MS = 90_000;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      kubeconfig: { type: "string" },
      simulate: { type: "boolean", default: false },
      plain: { type: "boolean", default: false },
    },
  });
  const startedAt = performance.now();
  const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`;
  const isTerminal = process.stdout.isTTY && !values.plain;
  const table = new LiveTable({ isTerminal, write: (text) => void process.stdout.write(text) });

  const interrupted = awaitInterruption();
  await using project = await DemoProject.create();
  // First, so that a cluster that cannot be reached is told at once.
  await using cluster = await openCluster({
    kubeconfig: values.kubeconfig,
    simulatesWorkloads: values.simulate,
    crdFile: project.crdFile,
  });
  let since = performance.now();
  table.step("Generate the operator from crds/webpages.example.com.yaml and workflow.yaml");
  for (const line of (await project.generate()).trim().split("\n").slice(-1)) table.note(line);
  table.note(seconds(since));

  since = performance.now();
  table.step("Type-check and compile it");
  await project.compile();
  const operatorModule = await project.load();
  table.note(seconds(since));

  since = performance.now();
  table.step(`Start it against the ${cluster.description}`);
  const counts = new RequestCounts();
  await using operator = createOperator({
    controllers: operatorModule.controllers.map((controller) => ({ ...controller, namespaces: [cluster.namespace] })),
    connection: cluster.connection,
    logger: createLogger("error"),
    onRequest: (request) => counts.add(request),
    observer: (event) => {
      const report = reportOf(event);
      // There is one namespace.
      table.update({ ...report, primary: report.primary.replace(/^.*\//, "") });
    },
  });
  await Promise.race([operator.start(), interrupted]);
  table.note(seconds(since));

  since = performance.now();
  const timeoutMs = values.kubeconfig === undefined ? STEP_TIMEOUT_MS : REAL_STEP_TIMEOUT_MS;
  const { client, namespace } = cluster;
  const scenario = playScenario({ operator: operatorModule, client, namespace, table, timeoutMs });
  await Promise.race([scenario, interrupted]);
  table.step(`Done in ${seconds(since)}, ${seconds(startedAt)} with everything before`);
  table.note(`${counts.total} API calls by the operator: ${counts}`);
}

/** Fails when somebody ends the demo, so that it deletes what it has made; whoever asks twice does not want to wait. */
function awaitInterruption(): Promise<never> {
  const interrupted = new Promise<never>((_resolve, reject) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      process.once(signal, () => {
        console.error(`\n${signal}: deletes what the demo has made`);
        reject(new Error(`ended by ${signal}`));
      });
  });
  // It may come while nothing waits for it yet.
  interrupted.catch(() => {});
  return interrupted;
}

try {
  await main();
} catch (error) {
  console.error(`\nthe demo failed: ${messageOf(error)}`);
  // The scenario may still be waiting for something.
  process.exit(1);
}
