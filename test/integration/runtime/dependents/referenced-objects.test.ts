// Objects of somebody else that a primary names (ref), against an API server.
import { defineWorkflow } from "#runtime/api/define-workflow.js";
import { defineController } from "#runtime/api/define-controller.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import { startApiServer } from "#apiserver/server.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { createRecordedOperator } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import { untilOutcome } from "./sample-dependents.js";
import { ConfigMap, Sample, sampleCrd, Secret } from "../sample-kind.js";
import { spacesOf, type Space } from "../space.js";

const openSpace = spacesOf();
const Namespace = classOf(builtinDefinition("v1", "Namespace"));
const sample = (spec: Sample["spec"], name = "one") => ({ metadata: { name }, spec });
const settings = (value: string, name = "settings") => ({ metadata: { name }, data: { value } });

interface Wiring {
  readonly name?: string;
  readonly isOptional?: boolean;
  readonly namespace?: string | (({ primary }: { primary: Sample }) => string | undefined);
}

/** A controller whose ConfigMap "out" has the value of the Secret that a Sample names. */
function copying({ name = "sample", isOptional = false, namespace }: Wiring = {}): ControllerDefinition {
  const ref = { name: ({ primary }: { primary: Sample }) => primary.spec.other, ...(namespace && { namespace }) };
  const workflow = defineWorkflow(Sample)
    .reference("settings", {
      resource: Secret,
      ref,
      readyPostcondition: ({ live }) => live?.data?.["value"] !== "bm90IHlldA==",
    })
    .dependent("out", {
      resource: ConfigMap,
      dependsOn: [isOptional ? { name: "settings", optional: true } : "settings"],
      desired: ({ primary, secondary }) => ({
        metadata: { name: `${primary.metadata.name}-out` },
        data: { value: secondary.settings?.data?.["value"] ?? "default" },
      }),
    });
  return defineController({ name, workflow });
}

const untilCopied = (space: Space, value: string, name = "one-out") =>
  space.until(ConfigMap, name, ({ data }) => data?.["value"] === value);

suite("reference", (test) => {
  test("waits until the object exists and is ready, and its changes reconcile only the primaries that reference it", async () => {
    await using space = await openSpace();
    await using running = await space.start([copying()]);
    await space.create(Sample, sample({ other: "settings" }));
    await space.create(Sample, sample({ other: "others" }, "two"));
    assert.equal(await untilOutcome(running, "out", "waiting"), { kind: "waiting", for: ["settings"] });
    await space.create(Secret, settings("bm90IHlldA=="));
    await running.quiet();
    assert.is(await space.get(ConfigMap, "one-out"), undefined, "it is not ready");
    await space.patch(Secret, "settings", { data: { value: "YQ==" } });
    await untilCopied(space, "YQ==");
    await running.quiet();
    const before = running.events.length;
    await space.patch(Secret, "settings", { data: { value: "Yg==" } });
    await untilCopied(space, "Yg==");
    await running.quiet();
    const after = running.events.slice(before).map(({ primary }) => primary);
    assert.equal([...new Set(after)], [`${space.namespace}/one`]);
    assert.is((await space.get(Secret, "settings"))?.metadata.ownerReferences, undefined, "it is never written");
  });

  test("switches to another object when the primary references it, and stops watching the old one", async () => {
    await using space = await openSpace();
    await using running = await space.start([copying()]);
    await space.create(Secret, settings("YQ==", "a"));
    await space.create(Sample, sample({ other: "a" }));
    await untilCopied(space, "YQ==");
    await space.patch(Sample, "one", { spec: { other: "b" } });
    await untilOutcome(running, "out", "waiting");
    await running.quiet();
    assert.is((await space.get(ConfigMap, "one-out"))?.data?.["value"], "YQ==", "what waits is left as it is");
    await space.create(Secret, settings("Yg==", "b"));
    await untilCopied(space, "Yg==");
    await running.quiet();
    const before = running.events.length;
    await space.patch(Secret, "a", { data: { value: "Yw==" } });
    await running.quiet();
    assert.is(running.events.length, before, "nobody names it any more");
  });

  test("leaves dependents unchanged while the referenced object is deleted, until it exists again", async () => {
    await using space = await openSpace();
    await using running = await space.start([copying()]);
    await space.create(Secret, settings("YQ=="));
    await space.create(Sample, sample({ other: "settings" }));
    await untilCopied(space, "YQ==");
    await space.delete(Secret, "settings");
    assert.equal(await untilOutcome(running, "out", "waiting"), { kind: "waiting", for: ["settings"] });
    await running.quiet();
    assert.is((await space.get(ConfigMap, "one-out"))?.data?.["value"], "YQ==");
    await space.create(Secret, settings("Yg=="));
    await untilCopied(space, "Yg==");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is((await space.get(Secret, "settings"))?.data?.["value"], "Yg==", "it outlives whoever names it");
  });

  test("without a name deletes dependents that require it, and keeps those with an optional dependency", async () => {
    await using space = await openSpace();
    const both = [copying(), copying({ name: "second", isOptional: true })];
    await using running = await space.start([both[1]!]);
    await space.create(Secret, settings("YQ=="));
    await space.create(Sample, sample({}));
    await untilCopied(space, "default");
    await space.patch(Sample, "one", { spec: { other: "settings" } });
    await untilCopied(space, "YQ==");
    await space.patch(Sample, "one", { spec: { other: "" } });
    await untilCopied(space, "default");
    await untilOutcome(running, "settings", "left");
    await running.operator.stop();
    await space.delete(Sample, "one");
    await space.delete(ConfigMap, "one-out");
    await using _ = await space.start([both[0]!]);
    await space.create(Sample, sample({ other: "settings" }, "three"));
    await untilCopied(space, "YQ==", "three-out");
    await space.patch(Sample, "three", { spec: { other: null } });
    await space.untilGone(ConfigMap, "three-out");
    assert.ok(await space.get(Secret, "settings"));
  });

  test("reads any namespace that the primary specifies, or the only one of a constant namespace", async () => {
    await using space = await openSpace();
    const elsewhere = `${space.namespace}-elsewhere`;
    await space.client.create(Namespace, { metadata: { name: elsewhere } });
    const create = (value: string, name: string) =>
      space.client.create(Secret, { metadata: { name, namespace: elsewhere }, data: { value } });
    const stated = copying({ namespace: ({ primary }) => primary.spec.value });
    await using running = await space.start([stated]);
    await space.create(Secret, settings("YQ=="));
    await space.create(Sample, sample({ other: "settings", value: elsewhere }));
    await untilOutcome(running, "out", "waiting");
    await create("Yg==", "settings");
    await untilCopied(space, "Yg==");
    await space.patch(Sample, "one", { spec: { value: null } });
    await untilCopied(space, "YQ==");
    await running.operator.stop();
    await using _ = await space.start([copying({ namespace: elsewhere })]);
    await untilCopied(space, "Yg==");
  });

  test("finds an object that another controller manages as its dependent, by a constant name", async () => {
    await using space = await openSpace();
    const making = defineWorkflow(Sample).dependent("made", {
      resource: Secret,
      desired: ({ primary }) => ({ metadata: { name: "shared" }, data: { value: primary.spec.value ?? "" } }),
    });
    const reading = defineWorkflow(Sample)
      .reference("found", { resource: Secret, ref: { name: "shared" } })
      .dependent("out", {
        resource: ConfigMap,
        dependsOn: ["found"],
        desired: ({ secondary }) => ({
          metadata: { name: "one-out" },
          data: { value: secondary.found.data?.["value"] ?? "" },
        }),
      });
    await using _ = await space.start([
      defineController({ name: "making", workflow: making }),
      defineController({ name: "reading", workflow: reading }),
    ]);
    await space.create(Sample, sample({ value: "YQ==" }));
    await untilCopied(space, "YQ==");
  });
});

suite("reference watches", (test) => {
  test("are shared by all dependents and controllers of a kind, and use a field selector for a constant name", async () => {
    await using server = await startApiServer({ crds: [sampleCrd] });
    const named = (name: string) =>
      defineWorkflow(Sample)
        .reference("a", { resource: Secret, ref: { name: ({ primary }) => primary.spec.other } })
        .reference("b", { resource: Secret, ref: { name: ({ primary }) => primary.spec.value } })
        .reference("c", { resource: ConfigMap, ref: { name: "shared", namespace: name } });
    const controllers = ["first", "second"].map((name) => defineController({ name, workflow: named(name) }));
    await using running = createRecordedOperator({ controllers, connection: server });
    await running.operator.start();
    const watched = server.requests.filter(({ verb, path }) => verb === "watch" && /secrets|configmaps/.test(path));
    assert.equal(
      watched
        .map(({ path, query }) => `${path} ${new URLSearchParams(query).get("fieldSelector") ?? ""}`.trim())
        .sort(),
      [
        "/api/v1/namespaces/first/configmaps metadata.name=shared",
        "/api/v1/namespaces/second/configmaps metadata.name=shared",
        "/api/v1/secrets",
      ],
    );
  });
});
