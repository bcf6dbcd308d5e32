import type { Agent } from "node:http";
import { startApiServer, waitFor, type ApiServer } from "@gen-operator/apiserver";
import { apiRequestOrThrow, createAgent, type ApiObject } from "#test/support/api/api-request.js";
import type { BenchmarkResult, Measurement } from "../measurement.js";

const COUNTS = [500, 5_000];
const PATH = "/apis/apps/v1/namespaces/default/deployments";
const CLIENTS = 16;
const LONGEST_MS = 900_000;

/** Measures how long simulated Deployments take to become ready. The CPU time per Deployment shows whether the cost is linear. */
export async function measureSimulation(): Promise<BenchmarkResult> {
  const measurements: Measurement[] = [];
  for (const count of COUNTS) {
    const { seconds, cpuMs } = await measureDeployments(count);
    measurements.push(
      { name: `${count} Deployments ready`, unit: "s", ours: seconds, better: "lower" },
      { name: `CPU of one of ${count}`, unit: "ms", ours: cpuMs, better: "lower" },
    );
  }
  const notes = [
    "One replica each, in one namespace, with Events. Server, controllers and the client that creates them are one process.",
  ];
  return { benchmark: "simulate", peers: [], notes, measurements };
}

async function measureDeployments(count: number): Promise<{ seconds: number; cpuMs: number }> {
  await using server = await startApiServer({ simulate: true });
  const agent = createAgent(server);
  await apiRequestOrThrow(server, `GET ${PATH}`, { agent });
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  const names = Array.from({ length: count }, (_, index) => `web-${index}`);
  const client = async (): Promise<void> => {
    for (let name = names.pop(); name !== undefined; name = names.pop())
      await apiRequestOrThrow(server, `POST ${PATH}`, { body: deployment(name), agent });
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  const areReady = async (): Promise<boolean> => (await countReady(server, agent)) === count;
  await waitFor(`${count} Deployments are ready`, areReady, { timeoutMs: LONGEST_MS, intervalMs: 1_000 });
  const { user, system } = process.cpuUsage(cpu);
  agent.destroy();
  return { seconds: (performance.now() - start) / 1_000, cpuMs: (user + system) / 1_000 / count };
}

async function countReady(server: ApiServer, agent: Agent): Promise<number> {
  const { items = [] } = await apiRequestOrThrow<ApiObject>(server, `GET ${PATH}`, { agent });
  return items.filter(({ status }) => status?.["readyReplicas"] === 1).length;
}

function deployment(name: string): object {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "web", image: "nginx" }] } };
  return { metadata: { name }, spec: { selector: { matchLabels: labels }, template } };
}
