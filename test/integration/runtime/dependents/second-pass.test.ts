// Every kind of fixtures/live-objects as a dependent: once everything is as desired, nothing is written. Runs on a real kube-apiserver,
// too, with TEST_API_SERVER=real.
import { waitFor } from "#apiserver/wait-for.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { builtinDefinition, customDefinition } from "../../../support/kinds/kind-definitions.js";
import { readLiveObjectCases, widgetCrd } from "../../../support/kinds/live-objects.js";
import { assert, suite } from "../../../support/suite.js";
import { configMapOf, createPage, createPageOperator, pageCrd } from "../page-operator.js";

const dependents = readLiveObjectCases().map(({ name, desired: { apiVersion, kind, ...rest } }) =>
  configMapOf(
    name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase()),
    {
      resource: kind === "Widget" ? customDefinition(widgetCrd) : builtinDefinition(apiVersion, kind),
      desired: () => structuredClone(rest),
    },
  ),
);

suite("repeated reconciles", (test) => {
  test("write an object of each kind once, and not again after a restart", async () => {
    await using server = await startTestApiServer({ crds: [pageCrd, widgetCrd] });
    {
      await using page = createPageOperator(server, { dependents, maxReconciliationIntervalMs: 300 });
      await page.operator.start();
      await createPage(page);
      const { workflow } = await waitFor("a reconcile", () => page.events[0]);
      const failures = [...workflow!.errors.values()].map((error) => (error as Error).message);
      assert.equal(failures, []);
      await waitFor("some more reconciles", () => page.events.length >= 4);
      const applies = page.requests.filter((request) => request.startsWith("PATCH") && !request.includes("/pages/"));
      assert.is(applies.length, dependents.length);
    }
    await using again = createPageOperator(server, { dependents });
    await again.operator.start();
    await waitFor("a reconcile", () => again.events[0]);
    await again.quiet();
    const outcomes = Object.values(again.events[0]!.workflow!.dependents);
    assert.ok(
      outcomes.every(({ kind }) => kind === "unchanged"),
      JSON.stringify(again.events[0]!.workflow!.dependents),
    );
    assert.equal(again.requests, []);
  });
});
