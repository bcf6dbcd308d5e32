// Finalizers and cleanup, after JOSDK's integration tests.
import { defineController } from "#runtime/api/define-controller.js";
import { defineWorkflow } from "#runtime/api/define-workflow.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { keepFinalizer } from "#runtime/reconcile/reconciler.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { Sample, sampleController } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();
const FINALIZER = "samples.josdk.example.com/finalizer";

interface Service extends KubernetesObject {
  spec: { ports: { port: number }[] };
}
const Service = classOf<Service>(builtinDefinition("v1", "Service"));

suite("finalizers and cleanup", (test) => {
  test("support a primary of a built-in kind", async () => {
    await using space = await openSpace();
    const cleaned: string[] = [];
    const controller = defineController({
      name: "service",
      workflow: defineWorkflow(Service),
      labelSelector: "watched=yes",
      reconciler: {
        reconcile: () => {},
        cleanup: ({ primary }: { primary: Service }) => void cleaned.push(primary.metadata.name),
      },
    });
    await using _ = await space.start([controller]);
    const spec = { ports: [{ port: 80 }] };
    await space.create(Service, { metadata: { name: "web", labels: { watched: "yes" } }, spec });
    await space.until(Service, "web", ({ metadata }) => metadata.finalizers?.length === 1);
    assert.equal(cleaned, []);
    await space.delete(Service, "web");
    await space.untilGone(Service, "web");
    assert.equal(cleaned, ["web"]);
  });

  test("add the finalizer before the first reconcile, and call cleanup once", async () => {
    await using space = await openSpace();
    const calls: string[] = [];
    const controller = sampleController({
      reconcile: ({ primary }) => void calls.push(`reconcile ${String(primary.metadata.finalizers)}`),
      cleanup: () => void calls.push("cleanup"),
    });
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await waitFor("it is reconciled", () => calls.length > 0);
    await running.quiet();
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await running.quiet();
    assert.equal(calls, [`reconcile ${FINALIZER}`, "cleanup"]);
  });

  test("call cleanup again after rescheduleAfterMs until it no longer keeps the finalizer", async () => {
    await using space = await openSpace();
    let cleanups = 0;
    const controller = sampleController({
      reconcile: () => {},
      cleanup: () => (++cleanups < 7 ? keepFinalizer({ rescheduleAfterMs: 10 }) : undefined),
    });
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await space.until(Sample, "one", ({ metadata }) => metadata.finalizers);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await running.quiet();
    assert.is(cleanups, 7);
  });

  test("tolerate the removal of a foreign finalizer during cleanup, which is called once", async () => {
    await using space = await openSpace();
    let cleanups = 0;
    let finish = () => {};
    const controller = sampleController({
      reconcile: () => {},
      cleanup: () => {
        cleanups++;
        return new Promise<void>((resolve) => (finish = resolve));
      },
    });
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one", finalizers: ["example.com/theirs"] }, spec: {} });
    await space.until(Sample, "one", ({ metadata }) => metadata.finalizers?.length === 2);
    await space.delete(Sample, "one");
    await waitFor("the cleanup runs", () => cleanups === 1);
    await space.patch(Sample, "one", { metadata: { finalizers: [FINALIZER] } });
    finish();
    await space.untilGone(Sample, "one");
    await running.quiet();
    assert.is(cleanups, 1);
    assert.equal(
      running.events.map(({ error }) => error).filter((error) => error !== undefined),
      [],
    );
  });

  test("of two controllers are removed concurrently without a retry", async () => {
    await using space = await openSpace();
    const controllers = ["a", "b"].map((name) =>
      sampleController(
        { reconcile: () => {}, cleanup: () => {} },
        { name, finalizer: `${name}.example.com/finalizer`, retry: { maxRetries: 0 } },
      ),
    );
    await using running = await space.start(controllers);
    const names = Array.from({ length: 10 }, (_, round) => `round-${round}`);
    for (const name of names) await space.create(Sample, { metadata: { name }, spec: {} });
    for (const name of names) await space.until(Sample, name, ({ metadata }) => metadata.finalizers?.length === 2);
    await Promise.all(names.map((name) => space.delete(Sample, name)));
    for (const name of names) await space.untilGone(Sample, name);
    await running.quiet();
    assert.equal(
      running.events.filter(({ error }) => error !== undefined).map(({ controller, primary }) => [controller, primary]),
      [],
    );
  });

  test("clean up a primary that is terminating at startup, without a reconcile", async () => {
    await using space = await openSpace();
    await space.create(Sample, { metadata: { name: "one", finalizers: [FINALIZER] }, spec: {} });
    await space.delete(Sample, "one");
    const calls: string[] = [];
    const controller = sampleController({
      reconcile: () => void calls.push("reconcile"),
      cleanup: () => void calls.push("cleanup"),
    });
    await using running = await space.start([controller]);
    await space.untilGone(Sample, "one");
    await running.quiet();
    assert.equal(calls, ["cleanup"]);
  });
});
