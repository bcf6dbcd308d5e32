// What reconcilers write of their primaries, with server-side apply and without, after JOSDK's integration tests.
import { waitFor } from "#apiserver/wait-for.js";
import { keepFinalizer, patchResource, patchResourceAndStatus, updateStatus } from "#runtime/reconcile/reconciler.js";
import { apiRequest, apiRequestOrThrow } from "../../../support/api/api-request.js";
import { assert, suite } from "../../../support/suite.js";
import { Sample, sampleController } from "../sample-kind.js";
import { spacesOf, type Space } from "../space.js";

const openSpace = spacesOf();
const FINALIZER = "samples.josdk.example.com/finalizer";

interface ManagedFields {
  manager: string;
  operation: string;
  subresource?: string;
  fieldsV1: object;
}

/** Reads the entries of a manager among the managed fields, which no client of the runtime keeps. */
async function managedFieldsOf(space: Space): Promise<ManagedFields[]> {
  const { group, version, plural } = Sample.definition;
  const path = `/apis/${group}/${version}/namespaces/${space.namespace}/${plural}/one`;
  return (await apiRequest(space.server, `GET ${path}`)).body.metadata.managedFields as ManagedFields[];
}

/** Says how the controller wrote, as the server records it. */
async function waysOfWriting(space: Space): Promise<string[]> {
  return (await managedFieldsOf(space))
    .filter(({ manager }) => manager === "sample")
    .map(({ operation, subresource = "" }) => `${operation} ${subresource}`.trim())
    .sort();
}

suite("primary writes without server-side apply", (test) => {
  const serverSideApply = false;

  test("add the finalizer by patch, with one reconcile and one cleanup", async () => {
    await using space = await openSpace();
    const calls: string[] = [];
    const controller = sampleController(
      { reconcile: () => void calls.push("reconcile"), cleanup: () => void calls.push("cleanup") },
      { serverSideApply },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await space.until(Sample, "one", ({ metadata }) => metadata.finalizers?.includes(FINALIZER));
    await running.quiet();
    assert.equal(await waysOfWriting(space), ["Update"]);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await running.quiet();
    assert.equal(calls, ["reconcile", "cleanup"]);
  });

  test("patch annotations and status together in one reconcile", async () => {
    await using space = await openSpace();
    const controller = sampleController(
      {
        reconcile: ({ primary }) => {
          const { note: _note, ...rest } = primary.metadata.annotations ?? {};
          const annotations = primary.spec.value === "with" ? { ...rest, note: "ours" } : rest;
          const { value = "" } = primary.spec;
          return patchResourceAndStatus({ ...primary, metadata: { ...primary.metadata, annotations } }, { value });
        },
      },
      { serverSideApply },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one", annotations: { theirs: "x" } }, spec: { value: "with" } });
    const withNote = await space.until(Sample, "one", ({ status }) => status?.value === "with");
    assert.equal(withNote.metadata.annotations, { theirs: "x", note: "ours" });
    await running.quiet();
    assert.is(running.events.length, 1);
    await space.patch(Sample, "one", { spec: { value: "without" } });
    const without = await space.until(Sample, "one", ({ status }) => status?.value === "without");
    assert.equal(without.metadata.annotations, { theirs: "x" });
    await running.quiet();
    assert.is(running.events.length, 2);
  });

  test("replace the status without optimistic locking", async () => {
    await using space = await openSpace();
    let calls = 0;
    let go = () => {};
    const controller = sampleController(
      {
        reconcile: async ({ primary }) => {
          if (++calls === 1) await new Promise<void>((resolve) => (go = resolve));
          return updateStatus({ value: primary.spec.value ?? "", ...(calls === 1 ? { message: "first" } : {}) });
        },
      },
      { serverSideApply },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "a" } });
    await waitFor("reconcile runs", () => calls === 1);
    await space.patch(Sample, "one", { metadata: { annotations: { changed: "meanwhile" } } });
    go();
    const first = await space.until(Sample, "one", ({ status }) => status?.value === "a");
    assert.equal(first.status, { value: "a", message: "first" });
    await running.quiet();
    assert.equal([calls, running.events[0]?.error], [1, undefined]);
    await space.patch(Sample, "one", { spec: { value: "b" } });
    const second = await space.until(Sample, "one", ({ status }) => status?.value === "b");
    assert.equal(second.status, { value: "b" });
  });

  test("keep fields of a former Update entry after a switch to server-side apply, until it is migrated", async () => {
    await using space = await openSpace();
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "a" } });
    const before = sampleController(
      { reconcile: () => updateStatus({ value: "a", message: "old" }) },
      { serverSideApply },
    );
    const first = await space.start([before]);
    await space.until(Sample, "one", ({ status }) => status?.message === "old");
    await first.quiet();
    await first.operator.stop();
    const after = sampleController({ reconcile: ({ primary }) => updateStatus({ value: primary.spec.value ?? "" }) });
    await using second = await space.start([after]);
    await space.patch(Sample, "one", { spec: { value: "b" } });
    const stale = await space.until(Sample, "one", ({ status }) => status?.value === "b");
    assert.is(stale.status?.message, "old");
    assert.equal(await waysOfWriting(space), ["Apply status", "Update status"]);
    await second.quiet();
    // What JOSDK recommends: the entry of the old way becomes one of the new, and the next apply takes away what it lacks.
    const managedFields = await managedFieldsOf(space);
    const others = managedFields.filter(({ manager }) => manager !== "sample");
    const old = managedFields.find((entry) => entry.manager === "sample" && entry.operation === "Update");
    await space.patch(Sample, "one", {
      metadata: {
        managedFields: [...others, { ...old, operation: "Apply" }],
        resourceVersion: stale.metadata.resourceVersion,
      },
    });
    await space.patch(Sample, "one", { spec: { value: "c" } });
    const clean = await space.until(Sample, "one", ({ status }) => status?.value === "c");
    assert.equal(clean.status, { value: "c" });
  });
});

suite("primary writes with server-side apply", (test) => {
  const cleanup = () => {};

  test("apply a spec field and the status beside the finalizer in one reconcile", async () => {
    await using space = await openSpace();
    const controller = sampleController({
      reconcile: () => patchResourceAndStatus({ spec: { other: "ours" } }, { value: "written" }),
      cleanup,
    });
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "theirs" } });
    await space.until(Sample, "one", ({ status }) => status?.value === "written");
    await running.quiet();
    const { metadata, spec } = (await space.get(Sample, "one"))!;
    assert.equal([metadata.finalizers, spec], [[FINALIZER], { value: "theirs", other: "ours" }]);
    assert.equal(await waysOfWriting(space), ["Apply", "Apply status"]);
    assert.is(running.events.length, 1);
  });

  test("force conflicts, so that the controller takes over a field of another manager", async () => {
    await using space = await openSpace();
    const { group, version, plural } = Sample.definition;
    const path = `/apis/${group}/${version}/namespaces/${space.namespace}/${plural}/one`;
    const body = {
      apiVersion: `${group}/${version}`,
      kind: "Sample",
      metadata: { name: "one" },
      spec: { other: "theirs" },
    };
    await apiRequestOrThrow(space.server, `PATCH ${path}?fieldManager=somebody`, {
      body,
      contentType: "application/apply-patch+yaml",
    });
    await using running = await space.start([
      sampleController({ reconcile: () => patchResource({ spec: { other: "ours" } }) }),
    ]);
    await space.until(Sample, "one", ({ spec }) => spec.other === "ours");
    await running.quiet();
    const owners = (await managedFieldsOf(space)).filter(({ fieldsV1 }) =>
      JSON.stringify(fieldsV1).includes("f:other"),
    );
    assert.equal(
      owners.map(({ manager, operation }) => [manager, operation]),
      [["sample", "Apply"]],
    );
  });

  test("apply a spec field beside the finalizer in one reconcile", async () => {
    await using space = await openSpace();
    const controller = sampleController({ reconcile: () => patchResource({ spec: { other: "ours" } }), cleanup });
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "theirs" } });
    await space.until(Sample, "one", ({ spec }) => spec.other === "ours");
    await running.quiet();
    const { metadata, spec, status } = (await space.get(Sample, "one"))!;
    assert.equal([metadata.finalizers, spec, status], [[FINALIZER], { value: "theirs", other: "ours" }, undefined]);
    assert.equal(await waysOfWriting(space), ["Apply"]);
    assert.is(running.events.length, 1);
  });

  test("add the finalizer without removing fields applied by the same manager", async () => {
    await using space = await openSpace();
    const object = { metadata: { name: "one", namespace: space.namespace }, spec: { value: "applied" } };
    await space.client.apply(Sample, object, { fieldManager: "sample" });
    await using running = await space.start([sampleController({ reconcile: () => {}, cleanup })]);
    await space.until(Sample, "one", ({ metadata }) => metadata.finalizers?.includes(FINALIZER));
    await running.quiet();
    assert.is((await space.get(Sample, "one"))?.spec.value, "applied");
  });

  test("restore a finalizer that the reconciler's own apply removed", async () => {
    await using space = await openSpace();
    let calls = 0;
    const controller = sampleController({
      reconcile: async ({ primary, context }) => {
        if (++calls > 1) return;
        const { name, namespace } = primary.metadata;
        const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
        const applied = { metadata: ref, spec: { other: "ours" } };
        const { object } = await context.client.apply(Sample, applied, { fieldManager: "sample" });
        assert.is(object.metadata.finalizers, undefined, "what is not applied again goes");
      },
      cleanup,
    });
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await waitFor("it is reconciled again", () => calls === 2);
    await space.until(Sample, "one", ({ metadata }) => metadata.finalizers?.includes(FINALIZER));
    await running.quiet();
    assert.is((await space.get(Sample, "one"))?.spec.other, "ours");
    assert.is(calls, 2);
  });

  test("update the status in a cleanup, which is called again after rescheduleAfterMs", async () => {
    await using space = await openSpace();
    const times: number[] = [];
    const written: unknown[] = [];
    const controller = sampleController({
      reconcile: () => {},
      cleanup: async ({ primary, context }) => {
        times.push(Date.now());
        const { name, namespace = "" } = primary.metadata;
        const status = { count: times.length };
        const object = { metadata: { name, namespace }, status };
        await context.client.apply(Sample, object, { fieldManager: "sample", subresource: "status" });
        written.push((await context.client.get(Sample, { name, namespace }))?.status?.count);
        return times.length < 3 ? keepFinalizer({ rescheduleAfterMs: 150 }) : undefined;
      },
    });
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await space.until(Sample, "one", ({ metadata }) => metadata.finalizers);
    await running.quiet();
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.equal(written, [1, 2, 3]);
    const waits = times.slice(1).map((time, index) => time - times[index]!);
    assert.ok(
      waits.every((wait) => wait >= 145),
      `cleanups after ${waits.join(" and ")} ms`,
    );
  });
});
