// Dependents whose watch starts only when an activation condition holds.
import { requesterOf } from "#runtime/client/api-client.js";
import { waitFor } from "#apiserver/wait-for.js";
import { crdPresent } from "#runtime/workflow/conditions.js";
import { classOf, customDefinition } from "../../../support/kinds/kind-definitions.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  pageCrd,
  setText,
  startPageServer,
  textOf,
  untilText,
} from "../page-operator.js";

const bookCrd = {
  ...pageCrd,
  metadata: { name: "books.example.com" },
  spec: { ...pageCrd.spec, names: { kind: "Book", plural: "books", singular: "book", listKind: "BookList" } },
} as const;

const book = (rest: Parameters<typeof configMapOf>[1] = {}) =>
  configMapOf("book", {
    resource: customDefinition(bookCrd),
    desired: ({ primary }) => ({ metadata: { name: primary.metadata.name }, spec: { text: primary.spec.text } }),
    ...rest,
  });

suite("activationCondition", (test) => {
  test("keeps dependents of an active primary while it is false for two others", async () => {
    await using server = await startPageServer();
    const dependents = [
      configMapOf("text", {
        activationCondition: ({ primary }: { primary: Page }) => primary.spec.text !== "off",
      }),
    ];
    await using page = createPageOperator(server, { dependents });
    await page.operator.start();
    await createPage(page, "one");
    await untilText(page, "first");
    for (const name of ["two", "three"]) {
      await page.operator.client.create(Page, { metadata: { name, namespace: "default" }, spec: { text: "off" } });
      await waitFor(`${name} is reconciled`, () => page.events.find(({ primary }) => primary === `default/${name}`));
    }
    await page.quiet();
    await page.operator.client.mergePatch(
      ConfigMap,
      { name: "one-text", namespace: "default" },
      { data: { text: "theirs" } },
    );
    await untilText(page, "first");
    await setText(page, "second");
    await untilText(page, "second");
    assert.equal(failuresOf(page.events), []);
  });

  test("ends the watch with its last active primary, keeps the object, and watches again once one is active", async () => {
    await using server = await startPageServer();
    const dependents = [
      configMapOf("text", {
        activationCondition: ({ primary }: { primary: Page }) => primary.spec.text !== "off",
      }),
    ];
    await using page = createPageOperator(server, { dependents });
    await page.operator.start();
    const watches = () => server.requests.filter(({ verb, path }) => verb === "watch" && path.includes("configmaps"));
    assert.is(watches().length, 0);
    await createPage(page, "one");
    await untilText(page, "first");
    assert.is(watches().length, 1);
    await setText(page, "off");
    await waitFor("it is inactive", () => page.events.at(-1)?.workflow?.dependents["text"]?.kind === "inactive");
    assert.is(await textOf(page), "first", "an inactive dependent is left alone");
    await page.quiet();
    // No watch is left that could be ended, or that would begin again.
    assert.is(server.faults.endWatches({ path: "/configmaps" }), 0);
    assert.is(watches().length, 1);
    await setText(page, "on");
    await untilText(page, "on");
    assert.is(watches().length, 2);
  });

  test("fails only the dependent if its kind is not served, and recovers once the CRD is installed", async () => {
    await using server = await startPageServer();
    const dependents = [configMapOf("text"), book({ activationCondition: () => true })];
    await using page = createPageOperator(server, { dependents, retry: { maxRetries: 1, initialIntervalMs: 20 } });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    const { workflow } = await waitFor("a reconcile", () => page.events[0]);
    const message = (workflow!.errors.get("book") as Error).message;
    assert.match(message, 'dependent "book": Book.v1.example.com is not served');
    assert.match(message, "books.example.com is not installed");
    await waitFor("the attempts are used up", () =>
      page.logs.some((line) => line.includes("retrying with increasing backoff")),
    );
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    await requesterOf(page.operator.client).send({ method: "POST", path, body: JSON.stringify(bookCrd) });
    const last = () => page.events.at(-1)?.workflow?.dependents["book"]?.kind;
    await waitFor("the book is made", () => last() === "created" || last() === "unchanged");
  });

  test("crdPresent makes a dependent inactive without errors if its kind is not served", async () => {
    await using server = await startPageServer();
    const dependents = [configMapOf("text"), book({ activationCondition: crdPresent })];
    await using page = createPageOperator(server, { dependents });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    const { workflow, error } = await waitFor("a reconcile", () => page.events[0]);
    assert.is(error, undefined);
    assert.equal(workflow!.dependents["book"], {
      kind: "inactive",
      conditions: { activationCondition: { isMet: false } },
    });
    assert.ok(workflow!.isReady);
  });

  test("crdPresent activates a dependent when its CRD is installed, and deactivates it when the CRD is deleted", async () => {
    await using server = await startPageServer();
    const dependents = [configMapOf("text"), book({ activationCondition: crdPresent })];
    await using page = createPageOperator(server, { dependents });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    await page.quiet();
    const last = () => page.events.at(-1)?.workflow?.dependents["book"]?.kind;
    assert.is(last(), "inactive");
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const requester = requesterOf(page.operator.client);
    await requester.send({ method: "POST", path, body: JSON.stringify(bookCrd) });
    await waitFor("the book is made", () => last() === "created" || last() === "unchanged");
    // Its finalizer keeps the definition, which serves objects no longer than it takes to delete them.
    const kept = { metadata: { name: "kept", namespace: "default", finalizers: ["example.com/kept"] } };
    await page.operator.client.create(classOf(customDefinition(bookCrd)), { ...kept, spec: { text: "theirs" } });
    await requester.send({ method: "DELETE", path: `${path}/${bookCrd.metadata.name}` });
    await waitFor("the book is inactive", () => last() === "inactive");
    await requester.send({ method: "GET", path: `${path}/${bookCrd.metadata.name}` });
    assert.is(page.operator.controller("page").health()[bookCrd.metadata.name]?.status, "healthy");
  });

  test("crdPresent uses discovery if watching CRDs is forbidden, and the operator stays healthy", async () => {
    await using server = await startPageServer();
    server.faults.add({ verb: ["list", "watch"], path: "/customresourcedefinitions", forbid: true });
    const dependents = [configMapOf("text"), book({ activationCondition: crdPresent })];
    await using page = createPageOperator(server, { dependents });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    const { workflow, error } = await waitFor("a reconcile", () => page.events[0]);
    assert.is(error, undefined);
    assert.is(workflow!.dependents["book"]?.kind, "inactive");
    const { status, reason } = page.operator.controller("page").health()[bookCrd.metadata.name] ?? {};
    assert.is(status, "unknown");
    assert.match(reason ?? "", "cannot");
    assert.not.equal(page.operator.health().status, "unhealthy");
  });
});
