// What a primary waits for becomes an Event, whatever it is.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { apiRequest, apiRequestOrThrow } from "../../../support/api/api-request.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import {
  configMapOf,
  createPage,
  startPageOperator,
  type PageOperatorOptions,
  type StartedPageOperator,
} from "../page-operator.js";

const EventKind = classOf<KubernetesObject & { readonly reason?: string; readonly message?: string }>(
  builtinDefinition("v1", "Event"),
);
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const PAGE = "/apis/example.com/v1/namespaces/default/pages/one";

const start = (options: PageOperatorOptions) => startPageOperator({ stalledAfterMs: 500, ...options });
const notesOf = async ({ operator }: StartedPageOperator) =>
  (await operator.client.list(EventKind)).flatMap(({ reason, message }) => (reason === "Stalled" ? [message] : []));
const untilStalled = (page: StartedPageOperator) =>
  waitFor("an Event Stalled", async () => (await notesOf(page))[0], { timeoutMs: 10_000 });

suite("Stalled Event", (test) => {
  test("names the dependent that is not ready and the one that waits for it", async () => {
    const first = configMapOf("first", { readyPostcondition: () => false });
    await using page = await start({ dependents: [first, configMapOf("second", { dependsOn: ["first"] })] });
    await createPage(page, "one");
    assert.match(await untilStalled(page), /^default\/one has not been ready for \d+ s: .*second: waits for first/);
  });

  test("names a conflicting existing object", async () => {
    await using page = await start({ dependents: [configMapOf("text")] });
    await apiRequestOrThrow(page.server, `POST ${CONFIG_MAPS}`, { body: { metadata: { name: "one-text" } } });
    await createPage(page, "one");
    assert.match(await untilStalled(page), 'ConfigMap "default/one-text" already exists');
  });

  test("names the error of a user function", async () => {
    const reconcile = () => {
      throw new Error("the service is away");
    };
    await using page = await start({ reconciler: { reconcile }, retry: { initialIntervalMs: 50, maxRetries: -1 } });
    await createPage(page, "one");
    assert.match(await untilStalled(page), "the service is away");
  });

  for (const isDeleted of [true, false])
    test(`names an object with a foreign finalizer, of a primary that ${isDeleted ? "is being deleted" : "exists"}`, async () => {
      const deletePostcondition = ({ live }: { live?: unknown }) => live === undefined;
      const held = configMapOf("text", { deletion: "ordered", deletePostcondition: deletePostcondition as never });
      await using page = await start({ dependents: [held] });
      await createPage(page, "one");
      const hold = async () => {
        const body = { metadata: { finalizers: ["example.com/hold"] } };
        const patch = { body, contentType: "application/merge-patch+json" };
        return (await apiRequest(page.server, `PATCH ${CONFIG_MAPS}/one-text`, patch)).status === 200;
      };
      await waitFor("the object is held", hold);
      await page.quiet();
      await apiRequestOrThrow(page.server, `DELETE ${isDeleted ? PAGE : `${CONFIG_MAPS}/one-text`}`);
      const text = isDeleted
        ? /^default\/one has not been cleaned up for \d+ s: text: is being deleted/
        : /^default\/one has not been ready for \d+ s: text: the object is being deleted/;
      assert.match(await untilStalled(page), text);
    });

  test("is not recorded for a ready primary or with stalledAfterMs: 0", async () => {
    for (const options of [
      { dependents: [configMapOf("text")] },
      { dependents: [configMapOf("text", { readyPostcondition: () => false })], stalledAfterMs: 0 },
    ]) {
      await using page = await start(options);
      await createPage(page, "one");
      await page.quiet(1_200);
      assert.equal(await notesOf(page), []);
    }
  });
});
