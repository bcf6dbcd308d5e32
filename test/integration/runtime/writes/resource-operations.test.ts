// The options of a write, and what it is written through: JOSDK's ResourceOperationsTest; the names of the originals stand in brackets.
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import type { OperationOptions } from "#runtime/apply/resource-operations.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap, Page, Secret, type DataObject } from "../page-operator.js";
import {
  newName,
  primaryWays,
  refOf,
  secondaryWays,
  server,
  startWith,
  type Operations,
  type WayToWrite,
} from "./ways-to-write.js";
import { startWrittenKinds, type WrittenKinds } from "./written-kinds.js";

suite("write options", (test) => {
  const [applyPage] = primaryWays as [WayToWrite];

  test("skip the request if the matcher matches (matcherMatchingSkipsUpdateAndReturnsActual, updateWithMatcherMatchingSkipsWrite)", async () => {
    await using with_ = await startWith(secondaryWays[1]!);
    const { live, writes } = with_;
    const operations = with_.operations as unknown as Operations;
    let seen: unknown;
    const matcher: OperationOptions<DataObject & Page>["matcher"] = (args) => {
      seen = { verb: args.verb, isStatus: args.isStatus, desired: args.desired.data, live: args.live.data };
      return true;
    };
    const before = live();
    const { kind, object } = await operations.update({ ...before, data: { text: "other" } }, { matcher });
    assert.is(kind, "unchanged");
    assert.is(object, before);
    assert.equal(writes, []);
    assert.equal(seen, { verb: "update", isStatus: false, desired: { text: "other" }, live: { text: "first" } });
  });

  test("send the request if the matcher does not match (matcherNotMatchingProceedsToEventFilteringUpdate, updateWithMatcherNotMatchingFiltersAndWrites)", async () => {
    await using with_ = await startWith(secondaryWays[1]!);
    const { live, writes, settle, watched } = with_;
    const operations = with_.operations as unknown as Operations;
    await operations.update({ ...live(), data: { text: "other" } }, { mode: "matchAndFilter", matcher: () => false });
    await settle();
    assert.equal(writes, ["PUT 200"]);
    assert.equal(watched.changes, []);
  });

  test("pass the patched object to a user-defined matcher", async () => {
    await using with_ = await startWith(secondaryWays[1]!);
    const operations = with_.operations as unknown as Operations;
    const seen: unknown[] = [];
    const matcher = ({ desired }: { desired: Partial<DataObject> }) => {
      seen.push(desired.data);
      return true;
    };
    await operations.mergePatch({ metadata: refOf(with_.live()), data: { more: "x" } }, { matcher });
    await operations.jsonPatch(with_.live(), (draft) => ({ ...draft, data: {} }), { matcher });
    assert.equal(seen, [{ text: "first", more: "x" }, {}]);
  });

  test("send the request without comparing in mode forceFilter (updateForceFilterFiltersAndCallsClientUpdate)", async () => {
    await using with_ = await startWith(secondaryWays[1]!);
    const operations = with_.operations as unknown as Operations;
    const { kind } = await operations.update(with_.live(), { mode: "forceFilter" });
    assert.is(kind, "unchanged", "the server changed nothing");
    assert.equal(with_.writes, ["PUT 200"]);
  });

  const refused: [string, (operations: Operations, live: DataObject & Page) => Promise<unknown>, RegExp][] = [
    [
      "an update without resourceVersion",
      (operations, live) => operations.update({ ...live, metadata: refOf(live) }),
      /update of Page "default\/object-\d+" states no metadata\.resourceVersion; write the object as it was read/,
    ],
    [
      "an optimistic patch without resourceVersion",
      (operations, live) =>
        operations.mergePatch({ metadata: refOf(live), spec: { text: "x" } }, { mode: "filterWithOptimisticLocking" }),
      /mergePatch of Page ".*" states no metadata\.resourceVersion/,
    ],
    [
      "mode matchAndFilter without a matcher",
      (operations, live) => operations.applyStatus({ metadata: refOf(live) }, { matcher: false }),
      /applyStatus of Page ".*" needs a matcher in mode matchAndFilter; choose forceFilter/,
    ],
    [
      "mode forceFilter with a matcher",
      (operations, live) => operations.apply({ metadata: refOf(live) }, { mode: "forceFilter", matcher: () => true }),
      /compares with nothing in mode forceFilter; leave the matcher out/,
    ],
    [
      "create with a matcher (createRejectsMatcher)",
      (operations, live) => operations.create(live, { mode: "cacheOnly", matcher: () => true } as never),
      /create of Page ".*" has nothing to compare with; use mode forceFilter or cacheOnly, without a matcher/,
    ],
    [
      "a namespaced object without a namespace",
      (operations) => operations.apply({ metadata: { name: "x" } }),
      /^Page "x" states no namespace, which its kind needs$/,
    ],
  ];
  for (const [title, write, message] of refused)
    test(`reject ${title}`, async () => {
      await using with_ = await startWith(applyPage);
      assert.match(await failureOf(() => write(with_.operations as unknown as Operations, with_.live())), message);
      assert.equal(with_.writes, []);
    });
});

suite("event source of a write", (test) => {
  test("is selected by kind, and is the primary source for the primary (resourcePatchWithSingleEventSource)", async () => {
    await using kinds = await startWrittenKinds(await server());
    const metadata = { name: newName(), namespace: "default" };
    await kinds.operations.of(Page).apply({ metadata });
    assert.ok(kinds.pages.view.has(keyOf(metadata)));
    await kinds.operations.of(ConfigMap).apply({ metadata });
    assert.ok(kinds.configMaps.view.has(keyOf(metadata)));
    assert.equal(kinds.warnings, []);
  });

  test("is the first of several, with one warning (resourcePatchUsesFirstEventSourceIfMultipleEventSourcesPresent)", async () => {
    await using other = await startWrittenKinds(await server());
    const more = { name: "more", type: ConfigMap.definition, view: other.configMaps.view };
    await using kinds = await startWrittenKinds(await server(), [more]);
    const metadata = { name: newName(), namespace: "default" };
    await kinds.forget();
    await kinds.operations.of(ConfigMap).apply({ metadata, data: { text: "first" } });
    kinds.operations.of(ConfigMap);
    assert.equal(kinds.warnings, [
      "several event sources watch ConfigMap.v1: config-maps is used; state the source to write through another one",
    ]);
    await kinds.settle();
    assert.equal(kinds.configMaps.changes, []);
  });

  test("is selected by name", async () => {
    await using other = await startWrittenKinds(await server());
    const more = { name: "more", type: ConfigMap.definition, view: other.configMaps.view };
    await using kinds = await startWrittenKinds(await server(), [more]);
    const metadata = { name: newName(), namespace: "default" };
    await Promise.all([kinds.forget(), other.forget()]);
    await kinds.operations.of(ConfigMap, { source: "more" }).apply({ metadata });
    assert.ok(other.configMaps.view.has(keyOf(metadata)));
    assert.equal(kinds.warnings, []);
    await Promise.all([kinds.settle(), other.settle()]);
    assert.equal(other.configMaps.changes, [], "its events are filtered there");
    assert.is(kinds.configMaps.changes.length, 1, "and told by the other");
  });

  test("must store whole objects", async () => {
    const isPartial = new ResourceView(Secret.definition, {}, { isPartial: true });
    await using kinds = await startWrittenKinds(await server(), [
      { name: "names", type: Secret.definition, view: isPartial },
    ]);
    const message =
      /event source "names" keeps only a part of each Secret\.v1, so none can be written through it; register/;
    assert.throws(() => kinds.operations.of(Secret), message);
    await using whole = await startWrittenKinds(await server(), [
      { name: "names", type: Secret.definition, view: isPartial },
      { name: "secrets", type: Secret.definition, view: new ResourceView(Secret.definition) },
    ]);
    whole.operations.of(Secret);
    assert.match(whole.warnings[0]!, "several event sources watch Secret.v1: secrets is used");
  });

  const unknown = { definition: { ...Page.definition, kind: "Book", plural: "books" } };
  const refusals: [string, (kinds: WrittenKinds) => unknown, RegExp][] = [
    [
      "is missing (resourcePatchThrowsWhenNoEventSourceFound)",
      ({ operations }) => operations.of(unknown),
      /no event source watches Book\.v1\.example\.com, only Page\.v1\.example\.com, ConfigMap\.v1, Secret\.v1; register an informer source for Book\.v1\.example\.com, or write it with context\.client/,
    ],
    [
      "is not an informer (resourcePatchThrowsWhenEventSourceIsNotManagedInformer)",
      ({ operations }) => operations.of(Secret),
      /event source "secrets of a vault" is no informer, so Secret\.v1 cannot be written through it; register an informer source/,
    ],
    [
      "has another name",
      ({ operations }) => operations.of(ConfigMap, { source: "nobody" }),
      /there is no event source "nobody" to write ConfigMap\.v1 through; the event sources are config-maps, secrets of a vault/,
    ],
    [
      "watches another kind",
      ({ operations }) => operations.of(Secret, { source: "config-maps" }),
      /event source "config-maps" is of ConfigMap\.v1, so Secret\.v1 cannot be written through it/,
    ],
  ];
  for (const [title, refuse, message] of refusals)
    test(`rejects the write if it ${title}`, async () => {
      await using kinds = await startWrittenKinds(await server());
      assert.throws(() => refuse(kinds), message);
    });
});
