// What others make of a write: list entries that keep it from being accepted, and admission policies that change it.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { messageOf } from "#runtime/base/logger.js";
import { waitFor } from "#apiserver/wait-for.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import {
  admitChanged,
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  startPageServer,
  textOf,
  untilText,
  type Page,
} from "../page-operator.js";

interface ServiceObject extends KubernetesObject {
  spec: { ports: { name: string; port: number; protocol?: string }[] };
}

const Service = classOf<ServiceObject>(builtinDefinition("v1", "Service"));

suite("conflicting list entries", (test) => {
  test("of another manager are removed before an apply, with one warning", async () => {
    await using server = await startPageServer();
    const desired = ({ primary }: { primary: Page }) => ({
      metadata: { name: primary.metadata.name },
      spec: { ports: [{ name: "http", port: 80, protocol: "TCP" }] },
    });
    const service = configMapOf("service", { resource: Service.definition, desired });
    await using page = createPageOperator(server, { dependents: [service] });
    await page.operator.start();
    await createPage(page);
    const ref = { name: "one", namespace: "default" };
    const { client } = page.operator;
    const portsOf = async () =>
      (await client.get(Service, ref))?.spec.ports.map(({ name, port }) => `${name} ${port}`).join();
    await waitFor("the Service", async () => (await portsOf()) === "http 80");
    const ports = [
      { name: "http", port: 8080, protocol: "TCP" },
      { name: "admin", port: 9090, protocol: "TCP" },
    ];
    await client.jsonPatch(Service, ref, {
      fieldManager: "somebody",
      operations: [{ op: "replace", path: "/spec/ports", value: ports }],
    });
    await waitFor("our port is back", async () => /http 80(,|$)/.test((await portsOf()) ?? ""));
    const found = (await portsOf())!.split(",").sort();
    assert.equal(found, ["admin 9090", "http 80"]);
    const told = page.logs.filter((line) => line.startsWith("warn removed spec.ports[port=8080"));
    assert.is(told.length, 1, page.logs.join("\n"));
    assert.match(told[0]!, '(owned by "somebody") from Service "default/one"');
  });

  test("are kept if the dry run fails with 400, and the error of the dependent says so", async () => {
    await using server = await startPageServer();
    const spec = { ports: [{ name: "http", port: 80, protocol: "TCP" }] };
    const desired = ({ primary }: { primary: Page }) => ({ metadata: { name: primary.metadata.name }, spec });
    const service = configMapOf("service", { resource: Service.definition, desired });
    await using page = createPageOperator(server, { dependents: [service] });
    await page.operator.start();
    await createPage(page);
    const { client } = page.operator;
    const ref = { name: "one", namespace: "default" };
    await waitFor("the Service", () => client.get(Service, ref));
    await page.quiet();
    const message = 'admission webhook "a.example.com" does not support dry run';
    // After the patch of the other manager, and the apply.
    const answer = { status: 400, reason: "BadRequest", message };
    server.faults.add({ kind: "Service", verb: "patch", after: 2, times: 1, answer });
    const ports = [{ name: "http", port: 8080, protocol: "TCP" }];
    const operations = [{ op: "replace" as const, path: "/spec/ports", value: ports }];
    await client.jsonPatch(Service, ref, { fieldManager: "somebody", operations });
    const { error } = await waitFor("a failure", () => page.events.find((event) => event.error !== undefined));
    assert.match(
      messageOf((error as AggregateError).errors[0]),
      `cannot check whether fields of other field managers cause this: patch of`,
    );
    assert.match(messageOf((error as AggregateError).errors[0]), message);
    assert.equal(
      (await client.get(Service, ref))?.spec.ports.map(({ port }) => port),
      [8080],
    );
  });
});

suite("rollback of removed list entries", (test) => {
  for (const [title, times] of [
    ["restores the entries if the apply fails, and the next reconcile removes them", 1],
    ["lets the next reconcile apply if restoring the entries failed as well", 2],
  ] as const)
    test(title, async () => {
      await using server = await startPageServer();
      const spec = { ports: [{ name: "http", port: 80, protocol: "TCP" }] };
      const desired = ({ primary }: { primary: Page }) => ({ metadata: { name: primary.metadata.name }, spec });
      const service = configMapOf("service", { resource: Service.definition, desired });
      await using page = createPageOperator(server, { dependents: [service] });
      await page.operator.start();
      await createPage(page);
      const { client } = page.operator;
      const ref = { name: "one", namespace: "default" };
      await waitFor("the Service", () => client.get(Service, ref));
      await page.quiet();
      // The patch of the other manager, the apply, the dry run and the change of the managed fields come before.
      const answer = { status: 403, reason: "Forbidden", message: "not now" };
      server.faults.add({ kind: "Service", verb: "patch", after: 4, times, answer });
      const ports = [{ name: "http", port: 8080, protocol: "TCP" }];
      const operations = [{ op: "replace" as const, path: "/spec/ports", value: ports }];
      await client.jsonPatch(Service, ref, { fieldManager: "somebody", operations });
      const { error } = await waitFor("a failure", () => page.events.find((event) => event.error !== undefined));
      assert.match(messageOf((error as AggregateError).errors[0]), "not now");
      const portsOf = async () => (await client.get(Service, ref))?.spec.ports.map(({ port }) => port).join();
      await waitFor("our port alone", async () => (await portsOf()) === "80");
      await waitFor("the reconcile succeeds", () => page.events.at(-1)?.error === undefined);
      const removals = page.logs.filter((line) => line.startsWith("warn removed"));
      assert.is(removals.length, times === 1 ? 1 : 0, page.logs.join("\n"));
    });
});

suite("admission policy", (test) => {
  const replaced = (path: string, value: string) => `[JSONPatch{op: 'add', path: '${path}', value: ${value}}]`;
  const annotations = ["dependent", "object", "primary-name", "primary-type", "primary-namespace", "primary-uid"];
  const named = annotations.map((name) => `annotation gen-operator.dev/${name}`).join(", ");
  const owners = { path: "/metadata/ownerReferences", value: "[]", parts: 'owner reference Page "one"' };
  const links: readonly [Parameters<typeof configMapOf>[1], { path: string; value: string; parts: string }][] = [
    [{}, owners],
    [{ serverSideApply: false }, owners],
    [{ mode: "createOnly" }, owners],
    [{ deletion: "ordered" }, { path: "/metadata/annotations", value: "{'a': 'b'}", parts: named }],
    [{}, { path: "/metadata/labels", value: "{'a': 'b'}", parts: "label gen-operator.dev/controller" }],
  ];
  for (const [stated, { path, value, parts }] of links)
    test(`that removes ${path} fails every write of the dependent until it is deleted: ${JSON.stringify(stated)}`, async () => {
      await using server = await startPageServer();
      await using page = createPageOperator(server, { dependents: [configMapOf("text", stated)] });
      await page.operator.start();
      {
        await using _policy = await admitChanged(server, "configmaps", replaced(path, value));
        await createPage(page);
        await waitFor("three attempts", () => page.events.length >= 3);
      }
      const failures = page.events.slice(0, 3).map(({ error }) => messageOf((error as AggregateError).errors[0]));
      const what = `dependent "text": ConfigMap "default/one-text" was stored without ${parts}: an admission policy`;
      assert.equal(
        failures.map((failure) => failure.slice(0, what.length)),
        [what, what, what],
      );
      await waitFor("it is tied", () => page.events.at(-1)?.error === undefined);
      const { metadata } = (await page.operator.client.get(ConfigMap, { name: "one-text", namespace: "default" }))!;
      assert.is(metadata.labels?.["gen-operator.dev/controller"], "page");
      assert.equal(
        page.logs.filter((line) => line.startsWith("warn") && line.includes("differs from the applied object")),
        [],
      );
    });

  test("that removes annotations fails the repair of a createOnly dependent", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { dependents: [configMapOf("text", { mode: "createOnly" })] });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    await using _policy = await admitChanged(server, "configmaps", replaced("/metadata/annotations", "{'a': 'b'}"));
    const ref = { name: "one-text", namespace: "default" };
    await page.operator.client.mergePatch(ConfigMap, ref, { metadata: { annotations: { x: "y" } } });
    const failed = await waitFor("a failure", () => page.events.find(({ error }) => error !== undefined));
    assert.match(messageOf((failed.error as AggregateError).errors[0]), "was stored without annotation");
  });

  for (const serverSideApply of [true, false])
    test(`that changes a field causes one warning and one write, as the stored value is accepted: ${serverSideApply ? "apply" : "PUT"}`, async () => {
      await using server = await startPageServer();
      const dependents = [configMapOf("text", { serverSideApply })];
      await using page = createPageOperator(server, { dependents, maxReconciliationIntervalMs: 50 });
      await page.operator.start();
      await using _policy = await admitChanged(server, "configmaps", replaced("/data/text", "'policy'"));
      await createPage(page);
      await waitFor("some reconciles", () => page.events.length >= 6);
      assert.equal(
        page.events.flatMap(({ error }) => error ?? []),
        [],
      );
      assert.is(await textOf(page), "policy");
      const told = page.logs.filter((line) => line.startsWith("warn"));
      assert.equal(told, [
        'warn ConfigMap "default/one-text" differs from the applied object (data.text): an admission policy or webhook, or the API server, ' +
          "changes it. Accepting the stored values, next apply in 10m at the earliest; exempt the object or " +
          "change desired()",
      ]);
      assert.is(page.requests.filter((line) => /^(PATCH|POST|PUT) .*configmaps/.test(line)).length, 1);
    });
});
