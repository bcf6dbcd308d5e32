// How long large objects block the event loop of an operator. Everything else waits in the meantime: leases, watches, and probes.
import { setTimeout as sleep } from "node:timers/promises";
import { startApiServer } from "#apiserver/index.js";
import { type Child, startChild } from "../child.js";
import { createLoadClient, type LoadClient } from "../load-client.js";
import type { BenchmarkResult, Measurement } from "../measurement.js";
import { tellProgress } from "../progress.js";
import { crds, ITEMS, NAMESPACE, pathsOf, type StallCase } from "./stall-kinds.js";
import type { StallReport, StallSettings } from "./stall-operator.js";

const CASES: { readonly [name in StallCase]: string } = {
  bulk: `${ITEMS} items of a bulk dependent`,
  list: `list of ${ITEMS} items, by PUT`,
  object: "object of 1.4 MB, by apply",
};
const READ_MS = 250;
const QUIET_READS = 8;

/** Measures the longest stall and the CPU time of each change. */
export async function measureStall(): Promise<BenchmarkResult> {
  const measurements: Measurement[] = [];
  for (const name of Object.keys(CASES) as StallCase[]) {
    tellProgress(`stall: ${CASES[name]}`);
    measurements.push(...(await measureCase(name)));
  }
  return {
    benchmark: "stall",
    peers: [],
    notes: [
      "the longest time for which the event loop of the operator stood still, the CPU of the longest turn, which other processes of the machine do not lengthen, and all CPU, from a change until all is quiet; on the embedded API server, which is another process",
      "created: the operator makes everything; touched: somebody labels a dependent; edited, deleted: somebody changes or deletes a dependent; changed: the primary, and with it one item",
    ],
    measurements,
  };
}

async function measureCase(name: StallCase): Promise<Measurement[]> {
  await using server = await startServer();
  const { client, ...settings } = server;
  const { holders, dependent } = pathsOf(name);
  await using child = startChild(new URL("./stall-operator.js", import.meta.url), {
    name,
    ...settings,
  } satisfies StallSettings);
  const patch = (path: string, body: object) =>
    client.send({ method: "PATCH", path, body: JSON.stringify(body), contentType: "application/merge-patch+json" });
  const phases: readonly (readonly [phase: string, act: () => Promise<unknown>])[] = [
    ["created", () => client.send({ method: "POST", path: holders, body: JSON.stringify(holderOf()) })],
    ["touched", () => patch(dependent, { metadata: { labels: { touched: "yes" } } })],
    ["edited", () => patch(dependent, name === "bulk" ? { data: { index: "x" } } : EDITS[name])],
    ["deleted", () => client.send({ method: "DELETE", path: dependent })],
    ["changed", () => patch(`${holders}/one`, { spec: { version: 2 } })],
  ];
  const measurements: Measurement[] = [];
  for (const [phase, act] of phases) {
    await settle(child, 0);
    const { reconciles } = await ask(child, "reset");
    await act();
    const { stallMs, turnMs, cpuSeconds } = await settle(child, reconciles + 1);
    const rowOf = (figure: string, unit: string, ours: number): Measurement => ({
      name: `${CASES[name]}, ${phase}: ${figure}`,
      ...{ unit, ours, better: "lower" },
    });
    measurements.push(
      rowOf("stall", "ms", stallMs),
      rowOf("longest turn, CPU", "ms", turnMs),
      rowOf("CPU", "s", cpuSeconds),
    );
  }
  return measurements;
}

const EDITS = { list: { spec: { items: [] } }, object: { spec: { texts: { "item-00003": "x" } } } };

function holderOf(): object {
  const metadata = { name: "one", namespace: NAMESPACE };
  return { apiVersion: "bench.example.com/v1", kind: "Holder", metadata, spec: { version: 1 } };
}

/** Waits until this number of reconciles has ended and the operator is idle. */
async function settle(child: Child, reconciles: number): Promise<StallReport> {
  let last = await ask(child, "read");
  for (let quiet = 0; quiet < QUIET_READS || last.reconciles < reconciles;) {
    await sleep(READ_MS);
    const now = await ask(child, "read");
    quiet = now.done === last.done ? quiet + 1 : 0;
    last = now;
  }
  return last;
}

function ask(child: Child, message: "read" | "reset"): Promise<StallReport> {
  child.send(message as unknown as object);
  return child.receive<StallReport>();
}

interface Server extends AsyncDisposable, Omit<StallSettings, "name"> {
  readonly client: LoadClient;
}

async function startServer(): Promise<Server> {
  const { url, token, ca, close } = await startApiServer();
  const connection = { url, token, ...(ca === undefined ? {} : { ca }) };
  const client = createLoadClient(connection, 4);
  for (const crd of crds)
    await client.send({
      method: "POST",
      path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      body: JSON.stringify(crd),
    });
  await client.send({
    method: "POST",
    path: "/api/v1/namespaces",
    body: JSON.stringify({ metadata: { name: NAMESPACE } }),
  });
  return {
    ...connection,
    client,
    async [Symbol.asyncDispose]() {
      client.close();
      await close();
    },
  };
}
