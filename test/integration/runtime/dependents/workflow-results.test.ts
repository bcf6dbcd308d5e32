// What the functions of a workflow share, and what becomes known of a run, against an API server.
import { requesterOf } from "#runtime/client/api-client.js";
import { waitFor } from "#apiserver/wait-for.js";
import { updateStatus, withoutRetry } from "#runtime/reconcile/reconciler.js";
import { crdPresent, deleted } from "#runtime/workflow/conditions.js";
import type { WorkflowError, WorkflowResult } from "#runtime/workflow/run.js";
import { classOf, customDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import {
  bulkOf,
  configOf,
  dependentController,
  untilOutcome,
  untilValues,
  wantedOf,
  type SampleArguments,
} from "./sample-dependents.js";
import { ConfigMap, crdOf, Sample, type DataObject } from "../sample-kind.js";
import { spacesOf, type Space } from "../space.js";

const openSpace = spacesOf();
const sample = (value: string, number = 0) => ({ metadata: { name: "one" }, spec: { value, number } });

interface Args extends SampleArguments {
  readonly workflow?: WorkflowResult;
}

suite("workflow result", (test) => {
  test("contains the details of conditions per dependent and item, each evaluated once per run", async () => {
    await using space = await openSpace();
    const asked: string[] = [];
    const results: WorkflowResult[] = [];
    const lengthOf = ({ item, live }: { item?: string; live: Partial<DataObject> | undefined }) => {
      asked.push(item ?? "a");
      return { isMet: true, detail: live?.data?.["value"]?.length };
    };
    const dependents = [
      configOf("a", { readyPostcondition: lengthOf }),
      bulkOf("many", { readyPostcondition: lengthOf, dependsOn: ["a"] }),
      configOf("never", { reconcilePrecondition: () => ({ isMet: false, detail: "not now" }) }),
    ];
    const reconcile = ({ workflow }: Args) => void results.push(workflow!);
    await using running = await space.start([dependentController(dependents, { reconciler: { reconcile } })]);
    await space.create(Sample, sample("four", 2));
    const [result] = await waitFor("it is reconciled", () => (results.length > 0 ? results : undefined));
    await running.quiet();
    assert.is(result!.detailOf("a", "readyPostcondition", { type: "number" }), 4);
    assert.is(result!.detailOf("many", "readyPostcondition", { item: "item-1", type: "number" }), 4);
    assert.is(result!.detailOf("never", "reconcilePrecondition", { type: "string" }), "not now");
    assert.throws(() => result!.detailOf<string>("a", "readyPostcondition", { type: "string" }), /of dependent "a"/);
    assert.equal([result!.reconciled, result!.deleted, result!.isReady], [["a", "many"], ["never"], true]);
    assert.equal(asked.sort(), ["a", "item-0", "item-1"]);
    const { dependents: outcomes } = result!;
    assert.equal(
      [outcomes["a"]?.kind, outcomes["many"]?.kind, outcomes["never"]?.kind],
      ["created", "created", "deleted"],
    );
  });

  test("aggregates all errors into one, thrown after all independent dependents have been reconciled", async () => {
    await using space = await openSpace();
    const broken = () => {
      throw new Error("no idea");
    };
    const errors: WorkflowError[] = [];
    let calls = 0;
    const reconciler = {
      reconcile: () => void calls++,
      updateErrorStatus: ({ error }: { error: unknown }) => {
        errors.push(error as WorkflowError);
        return withoutRetry(updateStatus({ message: "failed" }));
      },
    };
    const dependents = [
      configOf("one", { desired: broken }),
      configOf("two", { readyPostcondition: broken }),
      configOf("above", { dependsOn: ["one"] }),
      configOf("beside"),
    ];
    await using running = await space.start([dependentController(dependents, { reconciler })]);
    await space.create(Sample, sample("x"));
    await space.until(Sample, "one", ({ status }) => status?.message === "failed");
    await untilValues(space, { "one-beside": "x", "one-two": "x" });
    await running.quiet();
    assert.match(errors[0]!.message, /"one".*no idea[^]*"two".*no idea/);
    const { errors: byName, notReady, waiting } = running.events[0]!.workflow!;
    assert.equal([...byName.keys()], ["one", "two"]);
    assert.equal([notReady, waiting, calls], [["one", "two", "above"], ["above"], 0]);
  });

  test("lists deleted, remaining and waiting dependents of a cleanup", async () => {
    await using space = await openSpace();
    const results: WorkflowResult[] = [];
    const reconciler = {
      reconcile: () => {},
      cleanup: ({ workflow }: Args) => void results.push(workflow!),
    };
    const dependents = [
      configOf("first", { deletion: "ordered" }),
      configOf("last", { deletion: "ordered", dependsOn: ["first"], deletePostcondition: deleted }),
    ];
    await using running = await space.start([dependentController(dependents, { reconciler })]);
    await space.create(Sample, sample("x"));
    await untilValues(space, { "one-first": "x", "one-last": "x" });
    await running.quiet();
    await space.patch(ConfigMap, "one-last", { metadata: { finalizers: ["example.com/hold"] } });
    await space.delete(Sample, "one");
    const [{ isReady, deleted: asked, remaining, waiting }] = (await waitFor("a cleanup", () =>
      results.length > 0 ? results : undefined,
    )) as [WorkflowResult];
    assert.equal([isReady, asked, remaining, waiting], [false, ["last"], ["last"], ["first"]]);
    await running.quiet();
    assert.ok(await space.get(Sample, "one"), "the finalizer stays");
    await space.patch(ConfigMap, "one-last", { metadata: { finalizers: null } });
    await space.untilGone(Sample, "one");
    assert.is(results.at(-1)!.isReady, true);
  });
});

suite("context attributes", (test) => {
  test("pass values from initContext() to desired(), and from desired() to the reconciler", async () => {
    await using space = await openSpace();
    const seen: unknown[] = [];
    const reconciler = {
      initContext: ({ context }: Args) => void context.attributes.set("told", "by initContext"),
      reconcile: ({ context }: Args) => void seen.push(context.attributes.get("seen")),
    };
    const desired = ({ primary, context }: Args) => {
      context.attributes.set("seen", "by desired");
      return { metadata: { name: primary.metadata.name }, data: { value: String(context.attributes.get("told")) } };
    };
    const controller = dependentController([configOf("a", { desired: desired })], {
      reconciler,
    });
    await using _ = await space.start([controller]);
    await space.create(Sample, sample("x"));
    await untilValues(space, { one: "by initContext" });
    await waitFor("it is reconciled", () => seen.length > 0);
    assert.is(seen[0], "by desired");
  });
});

suite("restricted dependent", (test) => {
  test("with mode: createOnly creates missing items and deletes surplus ones, but updates none", async () => {
    await using space = await openSpace();
    const dependents = [bulkOf("many", { mode: "createOnly", deletion: "ordered" })];
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample("first", 2));
    await untilValues(space, wantedOf("many", 2));
    await space.patch(Sample, "one", { spec: { value: "second", number: 3 } });
    await untilValues(space, { ...wantedOf("many", 2), "one-many-2": "second" });
    await running.quiet();
    await space.patch(Sample, "one", { spec: { value: "third", number: 1 } });
    await untilValues(space, wantedOf("many", 1));
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await untilValues(space, {});
  });

  test("is inactive while its CRD is not installed, and created afterwards", async () => {
    await using space = await openSpace();
    const crd = crdOf("Book", "Namespaced");
    const Book = classOf<Sample>(customDefinition(crd));
    const desired = ({ primary }: SampleArguments) => ({ metadata: { name: "book" }, spec: primary.spec });
    const book = configOf("book", { resource: Book.definition, activationCondition: crdPresent, desired });
    await using running = await space.start([dependentController([configOf("a"), book])]);
    await space.create(Sample, sample("x"));
    await untilValues(space, { "one-a": "x" });
    await untilOutcome(running, "book", "inactive");
    assert.not(running.events.some(({ error }) => error !== undefined));
    await sendCrd(space, "POST", crd);
    await space.until(Book, "book", ({ spec }) => spec.value === "x");
    await sendCrd(space, "DELETE", crd);
    await untilOutcome(running, "book", "inactive");
  });
});

async function sendCrd({ client }: Space, method: "POST" | "DELETE", crd: ReturnType<typeof crdOf>): Promise<void> {
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  if (method === "DELETE") await requesterOf(client).send({ method, path: `${path}/${crd.metadata.name}` });
  else await requesterOf(client).send({ method, path, body: JSON.stringify(crd) });
}
