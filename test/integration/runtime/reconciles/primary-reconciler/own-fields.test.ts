import type { DecodedResource } from "#runtime/base/kubernetes-object.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { conditionTypesOf } from "#runtime/reconcile/status-conditions.js";
import { OwnFields } from "#runtime/reconcile/primary-writes.js";
import { Sender } from "#runtime/apply/sender.js";
import { unusedClient } from "../../../../support/runtime/clients.js";
import { assert, suite } from "../../../../support/suite.js";
import { createDispatcher, FINALIZER, markForDeletion, Page } from "./page-dispatcher.js";

/** A page on which managers have applied parts of the status. */
function pageWith(parts: { readonly [manager: string]: string }, uid = "u1", status: object = {}): DecodedResource {
  const owned = Object.entries(parts).map(([fieldManager, fieldsV1]) => ({
    ...{ fieldManager, fieldsV1 },
    subresource: "status",
    apiVersion: "example.com/v1",
  }));
  const object = { apiVersion: "example.com/v1", kind: "Page", metadata: { name: "one", uid }, status };
  return { object, owned };
}

const senderOf = (fieldManager: string) => new Sender({ client: unusedClient, fieldManager });
const writers = {
  sender: senderOf("page"),
  conditionsSender: senderOf("page-conditions"),
  serverSideApply: true,
  conditionTypes: conditionTypesOf(["web"]),
};
const target = { definition: Page.definition, cache: new ResourceView(Page.definition) };
const TEXT = '{"f:status":{"f:text":{}}}';
const BOTH = '{"f:status":{"f:text":{},"f:more":{}}}';
const READY = '{"f:status":{"f:conditions":{"k:{\\"type\\":\\"Ready\\"}":{".":{}}}}}';

suite("own fields of a primary", (test) => {
  test("are overwritten if a field manager of the controller lost a field, until the next reconcile", () => {
    const own = new OwnFields(target, writers);
    const lost = pageWith({ page: TEXT, other: "{}" });
    assert.is(own.isOverwritten(lost), false, "nothing is known before the first reconcile");
    own.begin(pageWith({ page: TEXT, "page-conditions": READY }));
    assert.is(own.isOverwritten(pageWith({ page: TEXT, "page-conditions": READY, other: BOTH })), false);
    assert.is(own.isOverwritten(lost), true);
    own.begin(lost);
    assert.is(own.isOverwritten(lost), false);
  });

  test("are overwritten if an applied field has another value and no reconcile is in progress", () => {
    const own = new OwnFields(target, writers);
    const states = ["ours", "late"].map((text) => pageWith({ page: TEXT }, "u1", { text, more: text }));
    own.begin(states[0]!);
    assert.is(own.isOverwritten(states[1]!), false, "the client of the user may have written it");
    own.end(states[0]!.object);
    assert.equal(
      [...states, pageWith({ page: TEXT }, "u1", { text: "ours", more: "theirs" })].map((state) =>
        own.isOverwritten(state),
      ),
      [false, true, false],
    );
  });

  test("are updated by the response of the last own write", () => {
    const own = new OwnFields(target, writers);
    const [before, after] = [pageWith({ page: TEXT }), pageWith({ page: BOTH })];
    own.begin(before);
    own.note(before.object, { part: "status", fieldManager: "page", answer: after });
    assert.equal(
      [before, after].map((entry) => own.isOverwritten(entry)),
      [true, false],
    );
    own.note(before.object, { part: "status", fieldManager: "page", answer: pageWith({ page: READY }, "u2") });
    own.note(before.object, { part: "status", fieldManager: "theirs", answer: pageWith({ page: READY }) });
    assert.is(own.isOverwritten(after), false, "another object, and another manager, say nothing");
    own.note(before.object, { part: "status", fieldManager: "page" });
    assert.is(own.isOverwritten(before), false, "a write without an answer leaves nothing to compare with");
  });

  test("are unknown for a new primary of the same name and for a deleted primary", () => {
    const own = new OwnFields(target, writers);
    own.begin(pageWith({ page: TEXT }));
    assert.is(own.isOverwritten(pageWith({}, "u2")), false);
    own.release("one");
    assert.is(own.isOverwritten(pageWith({})), false);
  });

  test("are the conditions of the controller without server-side apply", () => {
    const conditions = (...types: string[]) => pageWith({}, "u1", { conditions: types.map((type) => ({ type })) });
    const own = new OwnFields(target, { ...writers, serverSideApply: false });
    own.begin(conditions("Ready", "WebReady"));
    assert.equal(
      [conditions("Ready", "WebReady", "Theirs"), conditions("Ready"), pageWith({})].map((page) =>
        own.isOverwritten(page),
      ),
      [false, true, true],
    );
  });
});

suite("own writes to a primary", (test) => {
  test("are undone if the finalizer is missing, unless the primary is being deleted or needs none", async () => {
    const dispatcher = await createDispatcher({ reconciler: { reconcile() {}, cleanup() {} } });
    const without = await dispatcher.create("without");
    assert.is(dispatcher.primary.isUndone(without), true);
    const plain = await createDispatcher({ reconciler: { reconcile() {} } });
    assert.is(plain.primary.isUndone(without), false);
    const complete = await dispatcher.create("complete", { metadata: { finalizers: [FINALIZER] } });
    assert.is(dispatcher.primary.isUndone(complete), false);
    await dispatcher.create("going", { metadata: { finalizers: [FINALIZER, "example.com/theirs"] } });
    await markForDeletion(dispatcher, "going");
    await dispatcher.edit("going", { metadata: { finalizers: ["example.com/theirs"] } });
    assert.is(dispatcher.primary.isUndone(await dispatcher.observe("going")), false);
  });
});
