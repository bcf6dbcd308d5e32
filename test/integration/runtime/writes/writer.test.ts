// The writer of dependents on an API server: whose an object is that is there already, and answers that are lost.
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { Sender } from "#runtime/apply/sender.js";
import { Writer } from "#runtime/apply/writer.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { ConfigMap, startPageServer, type DataObject } from "../page-operator.js";
import { FIELD_MANAGER, knownIn, startWrittenKinds, type WrittenKinds } from "./written-kinds.js";

const server = shared(() => startPageServer());
let names = 0;

const ANNOTATIONS = {
  "gen-operator.dev/primary-name": "one",
  "gen-operator.dev/primary-namespace": "default",
  "gen-operator.dev/primary-type": "Page.example.com",
};
const owner = (uid: string) => ({ apiVersion: "example.com/v1", kind: "Page", name: "one", uid });

/** A writer, and a ConfigMap that it wants. */
async function startWriter() {
  const kinds = await startWrittenKinds(await server());
  const metadata = { name: `config-${++names}`, namespace: "default" };
  const target = { definition: ConfigMap.definition, cache: kinds.configMaps.view };
  const writer = new Writer(new Sender({ client: kinds.client, fieldManager: FIELD_MANAGER }));
  const key = keyOf(metadata);
  const apply = (desired: object, live = kinds.configMaps.view.get(key)) =>
    writer.apply(target, { ...desired, metadata: { ...metadata, ...(desired as DataObject).metadata } }, { live });
  /** Applies as a workflow does: an object that was not seen before is the live one of the next attempt. */
  const applyAnew = async (desired: object) => {
    const written = await apply(desired, undefined);
    return written.kind === "unseen" ? apply(desired, written.entry) : written;
  };
  return { ...kinds, metadata, target, writer, key, apply, applyAnew };
}

/** Keeps the watches from bringing anything. */
async function holdWatches({ settle }: WrittenKinds): Promise<{ release(): Promise<void> }> {
  const held = (await server()).faults.holdWatches();
  return {
    release: async () => {
      held.release();
      await settle();
    },
  };
}

suite("existing dependent that is not cached", (test) => {
  const links: [string, object, object][] = [
    ["by an owner reference", { ownerReferences: [owner("11")] }, { ownerReferences: [owner("11"), owner("22")] }],
    ["by annotations", { annotations: ANNOTATIONS }, { annotations: { ...ANNOTATIONS, more: "x" } }],
  ];
  for (const [title, wanted, present] of links)
    test(`is updated if it is linked to the same primary ${title}`, async () => {
      await using writing = await startWriter();
      const held = await holdWatches(writing);
      await writing.foreign.create(ConfigMap, { metadata: { ...writing.metadata, ...present }, data: { theirs: "x" } });
      const desired = { metadata: wanted, data: { text: "ours" } };
      const stranger = (await writing.foreign.get(ConfigMap, writing.metadata))?.metadata.resourceVersion;
      assert.is((await writing.apply(desired, undefined)).kind, "unseen");
      assert.is((await writing.foreign.get(ConfigMap, writing.metadata))?.metadata.resourceVersion, stranger);
      assert.is((await writing.applyAnew(desired)).kind, "updated");
      assert.equal(knownIn<DataObject>(writing.configMaps, writing.key).data, { text: "ours", theirs: "x" });
      await held.release();
    });

  const ofNobody =
    "is not owned by this primary; delete it, set existing: adopt, or change the name that desired() returns";
  const strangers: [string, object, object, string?][] = [
    ["not linked to a primary", { ownerReferences: [owner("11")] }, {}],
    ["linked to another primary", { ownerReferences: [owner("11")] }, { ownerReferences: [owner("22")] }],
    [
      "with annotations of another primary",
      { annotations: ANNOTATIONS },
      { annotations: { ...ANNOTATIONS, "gen-operator.dev/primary-namespace": "other" } },
      'is owned by Page.example.com "other/one"; delete it there, or change the name that desired() returns',
    ],
    ["without any link", {}, {}],
  ];
  for (const [title, wanted, present, problem = ofNobody] of strangers)
    test(`is rejected and not written if it is ${title}`, async () => {
      await using writing = await startWriter();
      const held = await holdWatches(writing);
      const stranger = await writing.foreign.create(ConfigMap, { metadata: { ...writing.metadata, ...present } });
      const message = await writing.apply({ metadata: wanted, data: { text: "ours" } }, undefined).then(
        () => "",
        (error: unknown) => (error as Error).message,
      );
      assert.is(message, `ConfigMap "${writing.key}" already exists and ${problem}`);
      const { metadata } = (await writing.foreign.get(ConfigMap, writing.metadata))!;
      assert.is(metadata.resourceVersion, stranger.metadata.resourceVersion);
      await held.release();
    });

  test("is accepted without an error if the response to its creation was lost", async () => {
    for (const wanted of [{ ownerReferences: [owner("11")] }, {}]) {
      await using writing = await startWriter();
      const { faults } = await server();
      const held = await holdWatches(writing);
      faults.add({ verb: "patch", path: `/${writing.metadata.name}`, times: 1, loseAnswer: true });
      const written = await writing.applyAnew({ metadata: wanted, data: { text: "ours" } });
      assert.is(written.kind, "unchanged");
      assert.is(knownIn(writing.configMaps, writing.key), "entry" in written && written.entry.object);
      assert.equal(writing.writes, ["PATCH lost", "PATCH 409"]);
      await held.release();
      assert.is((await writing.apply({ metadata: wanted, data: { text: "ours" } })).kind, "unchanged");
    }
  });

  test("is updated if its content differs from the desired object", async () => {
    await using writing = await startWriter();
    const held = await holdWatches(writing);
    const desired = (text: string) => ({ metadata: { ownerReferences: [owner("11")] }, data: { text } });
    // As before a restart.
    const { metadata, ...content } = desired("old");
    const old = { metadata: { ...writing.metadata, ...metadata }, ...content };
    await writing.foreign.apply(ConfigMap, old, { fieldManager: FIELD_MANAGER });
    assert.is((await writing.applyAnew(desired("new"))).kind, "updated");
    assert.is((await writing.foreign.get(ConfigMap, writing.metadata))?.data?.["text"], "new");
    await held.release();
  });
});
