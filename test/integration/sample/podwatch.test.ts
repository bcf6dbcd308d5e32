// The sample that reads more than it writes, compiled, against an API server; the same on the embedded and on the real one.
import { createLogger, keyOf, type ApiClient, type Unstored } from "@gen-operator/runtime";
import { Node, Pod, PodWatch, podWatchController } from "#podwatch/generated/index.js";
import { startTestApiServer, type TestApiServer } from "../../support/api/api-server.js";
import { waitFor } from "#apiserver/wait-for.js";
import { failuresOf } from "../../support/runtime/recorded-operator.js";
import { assert, shared, suite } from "../../support/suite.js";
import { startRecordedRun, type RecordedRun } from "./recorded-run.js";

const CRD = "fixtures/samples/podwatch/crds/podwatches.example.com.yaml";
const ZONE = "topology.kubernetes.io/zone";
/** What the two prices of the sample come to for one pod. */
const PRICE = 0.75;

interface Run extends RecordedRun {
  /** The reasons of all reconciles of a watch, in order. */
  reasonsOf(watch: Unstored<PodWatch>): string[];
}

async function startRun({ kubeconfig }: TestApiServer): Promise<Run> {
  const run = await startRecordedRun({ controllers: [podWatchController], kubeconfig, logger: createLogger("error") });
  const reasonsOf = ({ metadata }: Unstored<PodWatch>) =>
    run.events
      .filter(({ primary }) => primary === keyOf(metadata))
      .flatMap(({ reasons }) => reasons.map((each) => (each.kind === "secondary" ? each.source : each.kind)));
  return { ...run, reasonsOf };
}

/** Lets events arrive that must not cause anything. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 400));

suite("podwatch sample", (test) => {
  const server = shared(() => startTestApiServer({ crds: [CRD] }));
  let watches = 0;

  const newWatch = (spec: Partial<PodWatch["spec"]> = {}, annotations?: { [name: string]: string }) =>
    PodWatch.create({
      metadata: {
        name: `watch-${++watches}`,
        namespace: "default",
        ...(annotations === undefined ? {} : { annotations }),
      },
      spec: { mode: "active", ...spec },
    });
  const newPod = (watch: Unstored<PodWatch>, name: string, restartPolicy: "Always" | "Never" = "Always") =>
    Pod.create({
      metadata: {
        name: `${watch.metadata.name}-${name}`,
        namespace: "default",
        labels: { "example.com/watched-by": watch.metadata.name },
      },
      spec: { restartPolicy, containers: [{ name: "main", image: "example.com/app:1" }] },
    });
  const createAll = async (client: ApiClient, pods: readonly Unstored<Pod>[]) => {
    for (const pod of pods) await client.create(Pod, pod);
  };
  const setPhase = (client: ApiClient, { metadata }: Unstored<Pod>, phase: "Pending" | "Running" | "Failed") =>
    client.jsonPatch(Pod, metadata, {
      subresource: "status",
      operations: [{ op: "add", path: "/status/phase", value: phase }],
    });
  const untilRunning = (client: ApiClient, { metadata }: Unstored<PodWatch>, running: number) =>
    waitFor(`${metadata.name} counts ${running}`, async () => {
      const watch = await client.get(PodWatch, metadata);
      return watch?.status?.running === running ? watch : undefined;
    });
  const remove = async (client: ApiClient, watch: Unstored<PodWatch>, pods: readonly Unstored<Pod>[] = []) => {
    for (const { metadata } of pods) await client.delete(Pod, metadata);
    await client.delete(PodWatch, watch.metadata);
  };

  test("finds Pods by label, and fetches prices before the first reconcile", async () => {
    await using run = await startRun(await server());
    const { client } = run;
    const [watch, other] = [newWatch(), newWatch()];
    const pods = [newPod(watch, "a"), newPod(watch, "b"), newPod(other, "c")];
    await createAll(client, pods);
    for (const pod of pods) await setPhase(client, pod, "Running");
    await client.create(PodWatch, watch);
    await client.create(PodWatch, other);
    assert.is((await untilRunning(client, watch, 2)).status?.cost, 2 * PRICE);
    assert.is((await untilRunning(client, other, 1)).status?.cost, PRICE);
    assert.equal(failuresOf(run.events), []);
    await remove(client, watch, pods.slice(0, 2));
    await remove(client, other, pods.slice(2));
  });

  test("reconciles when the phase of a Pod changes, and on no other change", async () => {
    await using run = await startRun(await server());
    const { client } = run;
    const watch = newWatch();
    const pod = newPod(watch, "a");
    await client.create(PodWatch, watch);
    await untilRunning(client, watch, 0);
    await createAll(client, [pod]);
    await setPhase(client, pod, "Running");
    await untilRunning(client, watch, 1);
    await settle();
    const before = run.events.length;
    await client.mergePatch(Pod, pod.metadata, { metadata: { annotations: { note: "changed" } } });
    await waitFor("the cache sees what the filter does not let pass", () => {
      const seen = run.operator.controller("podwatch").sources.get("pods")?.get?.(keyOf(pod.metadata)) as Pod;
      return seen.metadata.annotations?.["note"] === "changed";
    });
    await settle();
    assert.is(run.events.length, before);
    await setPhase(client, pod, "Failed");
    await untilRunning(client, watch, 0);
    assert.ok(run.reasonsOf(watch).includes("pods"));
    await client.delete(Pod, pod.metadata);
    await remove(client, watch);
  });

  test("limits watched Pods and primaries by field selectors", async () => {
    await using run = await startRun(await server());
    const { client } = run;
    const [watch, paused] = [newWatch(), newWatch({ mode: "paused" })];
    const pods = [newPod(watch, "always"), newPod(watch, "never", "Never")];
    await createAll(client, pods);
    for (const pod of pods) await setPhase(client, pod, "Running");
    await client.create(PodWatch, paused);
    await client.create(PodWatch, watch);
    await untilRunning(client, watch, 1);
    await settle();
    const { sources } = run.operator.controller("podwatch");
    assert.ok(sources.get("pods")?.get?.(keyOf(pods[0]!.metadata)) !== undefined);
    assert.is(sources.get("pods")?.get?.(keyOf(pods[1]!.metadata)), undefined);
    assert.equal(run.reasonsOf(paused), []);
    await client.mergePatch(PodWatch, paused.metadata, { spec: { mode: "active" } });
    await untilRunning(client, paused, 0);
    await client.mergePatch(PodWatch, paused.metadata, { spec: { mode: "paused" } });
    await settle();
    const before = run.reasonsOf(paused).length;
    await client.mergePatch(PodWatch, paused.metadata, { metadata: { labels: { note: "changed" } } });
    await settle();
    assert.is(run.reasonsOf(paused).length, before);
    await remove(client, watch, pods);
    await remove(client, paused);
  });

  test("does not reconcile a primary that the filter rejects, until it is accepted", async () => {
    await using run = await startRun(await server());
    const { client } = run;
    const watch = newWatch({}, { ignored: "yes" });
    const pod = newPod(watch, "a");
    await client.create(PodWatch, watch);
    await createAll(client, [pod]);
    await setPhase(client, pod, "Running");
    await settle();
    assert.equal(run.reasonsOf(watch), []);
    await client.mergePatch(PodWatch, watch.metadata, { metadata: { annotations: { ignored: null } } });
    await untilRunning(client, watch, 1);
    await remove(client, watch, [pod]);
  });

  test("reconciles only the primaries that name a Node, and only when its zone changes", async () => {
    await using run = await startRun(await server());
    const { client } = run;
    const node = { name: `node-of-podwatch-${watches}` };
    const [watch, other] = [newWatch({ node: node.name }), newWatch()];
    await client.create(PodWatch, watch);
    await client.create(PodWatch, other);
    const zoneOf = async () => (await client.get(PodWatch, watch.metadata))?.status?.zone;
    const others = async () => (await untilRunning(client, other, 0), await settle(), run.reasonsOf(other).length);
    const before = await others();
    assert.is(await zoneOf(), undefined);
    await client.create(Node, { metadata: { ...node, labels: { [ZONE]: "west" } } });
    await waitFor("the zone is known", async () => (await zoneOf()) === "west");
    await settle();
    const reconciles = run.reasonsOf(watch).length;
    await client.mergePatch(Node, node, { metadata: { labels: { unrelated: "yes" } } });
    await settle();
    assert.is(run.reasonsOf(watch).length, reconciles);
    await client.mergePatch(Node, node, { metadata: { labels: { [ZONE]: "east" } } });
    await waitFor("the zone is the new one", async () => (await zoneOf()) === "east");
    await client.delete(Node, node);
    await waitFor("the zone is gone", async () => (await zoneOf()) === undefined);
    assert.is(await others(), before);
    await remove(client, watch);
    await remove(client, other);
  });

  test("caches only metadata and used fields of Pods and Nodes", async () => {
    await using run = await startRun(await server());
    const { client } = run;
    const node = { name: `node-of-podwatch-${watches}` };
    const watch = newWatch({ node: node.name });
    const pod = newPod(watch, "a");
    await client.create(Node, { metadata: { ...node, labels: { [ZONE]: "west" } } });
    await createAll(client, [pod]);
    await setPhase(client, pod, "Running");
    await client.create(PodWatch, watch);
    await untilRunning(client, watch, 1);
    const { sources } = run.operator.controller("podwatch");
    const keptPod = sources.get("pods")?.get?.(keyOf(pod.metadata)) as Pod;
    const keptNode = sources.get("node")?.get?.(node.name) as Node;
    assert.is(keptPod.metadata.labels?.["example.com/watched-by"], watch.metadata.name);
    assert.equal(keptPod.status, { phase: "Running" });
    assert.is(keptPod.spec, undefined);
    assert.is(keptNode.metadata.labels?.[ZONE], "west");
    assert.is(keptNode.spec, undefined);
    assert.is(keptNode.status, undefined);
    await remove(client, watch, [pod]);
    await client.delete(Node, node);
  });

  test("makes no request after a restart if everything is as desired", async () => {
    const watch = newWatch();
    const pod = newPod(watch, "a");
    {
      await using first = await startRun(await server());
      await createAll(first.client, [pod]);
      await setPhase(first.client, pod, "Running");
      await first.client.create(PodWatch, watch);
      await untilRunning(first.client, watch, 1);
      await settle();
    }
    await using second = await startRun(await server());
    await waitFor("the watch is reconciled again", () => second.reasonsOf(watch).length > 0);
    await settle();
    assert.equal(second.requests, []);
    await remove(second.client, watch, [pod]);
  });
});
