// Events about primaries: those of the user's reconciler, and those of the runtime.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { Events } from "#runtime/workflow/context.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { assert, suite } from "../../../support/suite.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { configMapOf, createPage, createPageOperator, pageCrd, type PageOperator } from "../page-operator.js";

interface EventObject extends KubernetesObject {
  readonly reason: string;
  readonly note?: string;
  readonly type: string;
  readonly reportingController: string;
  readonly regarding: { readonly kind: string; readonly name: string; readonly uid: string };
  readonly series?: { readonly count: number };
}

const EventKind = classOf<EventObject>(builtinDefinition("events.k8s.io/v1", "Event"));

const eventsOf = async ({ operator }: PageOperator, reason: string) =>
  (await operator.client.list(EventKind, { namespace: "default" })).filter((each) => each.reason === reason);

const options = { crds: [pageCrd] };

suite("Events", (test) => {
  test("with one reason and 50 notes become one Event with a series of 50, in at most 3 requests", async () => {
    await using server = await startTestApiServer(options);
    const reconcile = ({ context }: { context: { events: Events } }) => {
      for (let index = 0; index < 50; index++)
        context.events.record({ type: "Warning", reason: "Slow", note: `attempt ${index}`, action: "Call" });
    };
    await using page = createPageOperator(server, { dependents: [], reconciler: { reconcile } });
    await page.operator.start();
    const { metadata } = await createPage(page);
    const [event] = await waitFor("it is counted", async () => {
      const found = await eventsOf(page, "Slow");
      return found[0]?.series?.count === 50 ? found : undefined;
    });
    assert.is((await eventsOf(page, "Slow")).length, 1);
    assert.equal([event?.type, event?.note, event?.reportingController], ["Warning", "attempt 0", "page"]);
    assert.is(event?.regarding.uid, metadata.uid);
    const requests = page.requests.filter((line) => line.includes("/events") && !line.startsWith("GET"));
    assert.ok(requests.length <= 3, requests.join("; "));
    assert.is(page.requests.filter((line) => line.startsWith("GET") && /\/events\/./.test(line)).length, 0);
  });

  test("report a dependent that the API server rejects with 422", async () => {
    await using server = await startTestApiServer(options);
    const desired = () => ({ metadata: { name: "Not A Name" }, data: {} });
    await using page = createPageOperator(server, { dependents: [configMapOf("text", { desired })] });
    await page.operator.start();
    await createPage(page);
    const [event] = await waitFor("it is told", async () => {
      const found = await eventsOf(page, "Rejected");
      return found.length > 0 ? found : undefined;
    });
    assert.match(event?.note ?? "", /Not A Name.*422|422.*Not A Name/s);
  });

  test("with a pending count are written on shutdown", async () => {
    await using server = await startTestApiServer(options);
    let events: Events | undefined;
    const reconcile = ({ context }: { context: { events: Events } }) => {
      events = context.events;
      events.record({ reason: "Seen", note: "" });
    };
    await using page = createPageOperator(server, { dependents: [], reconciler: { reconcile } });
    await using reader = createPageOperator(server);
    await page.operator.start();
    await createPage(page);
    await waitFor("it is there", async () => (await eventsOf(page, "Seen")).length === 1);
    for (let index = 0; index < 4; index++) events?.record({ reason: "Seen", note: "" });
    await page.operator.stop();
    assert.is((await eventsOf(reader, "Seen"))[0]?.series?.count, 5);
  });
});
