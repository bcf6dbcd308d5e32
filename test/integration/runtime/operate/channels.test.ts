// What tools see of an operator whose code says nothing about them.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../../../support/suite.js";
import { createPage, Page, startPageOperator } from "../page-operator.js";

/** Keeps the messages of a channel. */
function follow(name: string): Disposable & { readonly messages: Record<string, unknown>[] } {
  const messages: Record<string, unknown>[] = [];
  const keep = (message: unknown) => void messages.push(message as Record<string, unknown>);
  subscribe(name, keep);
  return { messages, [Symbol.dispose]: () => unsubscribe(name, keep) };
}

suite("diagnostics channels", (test) => {
  test("publish the start, each reconcile, and each deleted primary", async () => {
    using started = follow("gen-operator.started");
    using reconciled = follow("gen-operator.reconcile");
    using deleted = follow("gen-operator.primary-deleted");
    await using page = await startPageOperator();
    const [{ controllers } = {}] = started.messages;
    assert.is(started.messages.length, 1);
    await createPage(page);
    await waitFor("a reconcile", () => page.events.length > 0);
    await page.quiet();
    // The user's observer is told the same.
    assert.ok(page.events.length > 0);
    assert.equal(reconciled.messages, page.events);
    await page.operator.client.delete(Page, { name: "one", namespace: "default" });
    await waitFor("the end of the primary", () => deleted.messages.length > 0);
    assert.equal(deleted.messages, [{ controller: (controllers as string[])[0], primary: "default/one" }]);
  });
});
