import type { DecodedResource } from "#runtime/base/decoded-resource.js";
import { createOwnStatus, OwnStatus } from "#runtime/reconcile/status/own-status.js";
import { assert, suite } from "../../../support/suite.js";
import { createDispatcher, FINALIZER, markForDeletion } from "./page-dispatcher.js";

/** A page on which managers have applied parts of the status. */
function pageWith(parts: { readonly [manager: string]: string }, uid = "u1", status: object = {}): DecodedResource {
  const owned = Object.entries(parts).map(([fieldManager, fieldsV1]) => ({
    ...{ fieldManager, fieldsV1 },
    subresource: "status",
    apiVersion: "v1",
  }));
  return { object: { apiVersion: "v1", kind: "Page", metadata: { name: "one", uid }, status } as never, owned };
}

suite("own status", (test) => {
  test("is overwritten when a field manager of the controller lost a field, until the next reconcile begins", () => {
    const own = new OwnStatus(["page", "page-conditions"]);
    const lost = pageWith({ page: "{text}", other: "{}" });
    assert.is(own.isOverwritten(lost), false, "nothing is known before the first reconcile");
    own.begin(pageWith({ page: "{text}", "page-conditions": "{Ready}" }));
    assert.is(own.isOverwritten(pageWith({ page: "{text}", "page-conditions": "{Ready}", other: "{more}" })), false);
    assert.is(own.isOverwritten(lost), true);
    own.begin(lost);
    assert.is(own.isOverwritten(lost), false);
  });

  test("is what the last own write left", () => {
    const own = new OwnStatus(["page", "page-conditions"]);
    const [before, after] = [pageWith({ page: "{text}" }), pageWith({ page: "{text,more}" })];
    own.begin(before);
    own.note(before.object, "page", after);
    assert.equal(
      [before, after].map((entry) => own.isOverwritten(entry)),
      [true, false],
    );
    own.note(before.object, "page", pageWith({ page: "{other}" }, "u2"));
    own.note(before.object, "theirs", pageWith({ page: "{other}" }));
    assert.is(own.isOverwritten(after), false, "another object, and another manager, say nothing");
    own.note(before.object, "page");
    assert.is(own.isOverwritten(before), false, "a write without an answer leaves nothing to compare with");
  });

  test("of a successor of the same name, or of a primary that is gone, is not known", () => {
    const own = new OwnStatus(["page"]);
    own.begin(pageWith({ page: "{text}" }));
    assert.is(own.isOverwritten(pageWith({}, "u2")), false);
    own.release("one");
    assert.is(own.isOverwritten(pageWith({})), false);
  });

  test("without server-side apply is what the conditions of the controller say", () => {
    const conditions = (...types: string[]) => pageWith({}, "u1", { conditions: types.map((type) => ({ type })) });
    const facts = { fieldManager: "page", conditionsManager: "page-conditions", serverSideApply: false };
    const own = createOwnStatus({ ...facts, names: ["web"] });
    own.begin(conditions("Ready", "WebReady"));
    assert.equal(
      [conditions("Ready", "WebReady", "Theirs"), conditions("Ready"), pageWith({})].map((page) =>
        own.isOverwritten(page),
      ),
      [false, true, true],
    );
  });
});

suite("what a controller writes to a primary", (test) => {
  test("a primary lacks the finalizer, unless it is on its way out", async () => {
    const dispatcher = await createDispatcher({ reconciler: { cleanup: () => {} } });
    assert.is(dispatcher.primary.isUndone(await dispatcher.create("without")), true);
    await dispatcher.create("going", { metadata: { finalizers: [FINALIZER, "example.com/theirs"] } });
    await markForDeletion(dispatcher, "going");
    await dispatcher.edit("going", { metadata: { finalizers: ["example.com/theirs"] } });
    assert.is(dispatcher.primary.isUndone(await dispatcher.observe("going")), false);
  });
});
