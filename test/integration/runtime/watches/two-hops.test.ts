// Page → ConfigMap "users" → Secret: what a primary refers to stands in an object to which it refers itself.
import { waitFor } from "#apiserver/wait-for.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { configMapsWith } from "../../../support/runtime/config-maps.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  createPage,
  createPageOperator,
  Page,
  Secret,
  setText,
  pageSpacesOf,
  startInSpace,
  untilText,
  type DataObject,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

interface Found {
  readonly users: readonly DataObject[];
  readonly secrets: readonly DataObject[];
}

const openSpace = pageSpacesOf();
const start = async (options: PageOperatorOptions) => startInSpace(await openSpace(), options);
const keyOf = ({ metadata }: Page, name: string | undefined) =>
  name === undefined ? [] : [`${metadata.namespace}/${name}`];
const encoded = (text: string) => Buffer.from(text).toString("base64");

// What the Secret says stands in the ConfigMap of the page.
const copies = () =>
  configMapsWith<Page>((_, secondary) => {
    const [secret] = (secondary as unknown as Found).secrets;
    return { text: secret?.data?.["password"] ?? "none" };
  })("copy");

/** The user is the object that the text of a page names; `isQuiet`: its changes cause no reconcile. */
const sources = ({ isQuiet = false } = {}) => [
  informerSource({
    name: "users",
    resource: ConfigMap,
    labelSelector: "kind=user",
    primaryToSecondary: (page: Page) => keyOf(page, page.spec.text),
    ...(isQuiet && { filters: { onUpdate: () => false } }),
  }),
  informerSource({
    name: "secrets",
    resource: Secret,
    primaryToSecondary: (page: Page, { secondary }: { readonly secondary: Found }) =>
      secondary.users.flatMap(({ data }) => keyOf(page, data?.["secret"])),
  }),
];

const createUser = ({ operator, namespace = "" }: PageOperator, secret: string, name = "first") =>
  operator.client.create(ConfigMap, {
    metadata: { name, namespace, labels: { kind: "user" } },
    data: { secret },
  });
const createSecret = ({ operator, namespace = "" }: PageOperator, name: string, password: string) =>
  operator.client.create(Secret, { metadata: { name, namespace }, data: { password: encoded(password) } });
const setPassword = ({ operator, namespace = "" }: PageOperator, name: string, password: string) =>
  operator.client.mergePatch(Secret, { name, namespace }, { data: { password: encoded(password) } });
const setSecret = ({ operator, namespace = "" }: PageOperator, secret: string) =>
  operator.client.mergePatch(ConfigMap, { name: "first", namespace }, { data: { secret } });

const settings = (options?: { isQuiet?: boolean }) => ({
  dependents: [copies()],
  reconciler: { reconcile: () => {} },
  eventSources: () => sources(options),
});

suite("secondaries referenced by other secondaries", (test) => {
  test("are found in any order of creation, and their changes are reconciled while they are referenced", async () => {
    await using page = await start(settings());
    await createPage(page);
    await untilText(page, "none", "one-copy");
    await createSecret(page, "s1", "p1");
    await createUser(page, "s1");
    await untilText(page, encoded("p1"), "one-copy");
    await setPassword(page, "s1", "p2");
    await untilText(page, encoded("p2"), "one-copy");
    await setSecret(page, "s2");
    await untilText(page, "none", "one-copy");
    await createSecret(page, "s2", "q1");
    await untilText(page, encoded("q1"), "one-copy");
    await page.quiet();
    const { length } = page.events;
    await setPassword(page, "s1", "p3");
    await page.quiet();
    assert.is(page.events.length, length, "what is named no more causes no reconcile");
    assert.equal(failuresOf(page.events), []);
  });

  test("are found although a filter rejects the change of the reference", async () => {
    await using page = await start(settings({ isQuiet: true }));
    await createSecret(page, "s1", "p1");
    await createSecret(page, "s2", "q1");
    await createUser(page, "s1");
    await createPage(page);
    await untilText(page, encoded("p1"), "one-copy");
    await page.quiet();
    await setSecret(page, "s2");
    await untilText(page, encoded("q1"), "one-copy");
    await setPassword(page, "s2", "q2");
    await untilText(page, encoded("q2"), "one-copy");
  });

  test("are shared by all primaries that reference them", async () => {
    await using page = await start(settings());
    await createSecret(page, "s1", "p1");
    await createUser(page, "s1");
    for (const name of ["one", "two"]) await createPage(page, name);
    for (const name of ["one", "two"]) await untilText(page, encoded("p1"), `${name}-copy`);
    await setText(page, "nobody", "two");
    await untilText(page, "none", "two-copy");
    await setPassword(page, "s1", "p2");
    await untilText(page, encoded("p2"), "one-copy");
  });

  test("are found after a restart during which the reference changed", async () => {
    const space = await openSpace();
    {
      await using page = createPageOperator(space, settings());
      await page.operator.start();
      await createSecret(page, "s1", "p1");
      await createUser(page, "s1");
      await createPage(page);
      await untilText(page, encoded("p1"), "one-copy");
      await page.quiet();
    }
    await using other = createPageOperator(space, { ...settings(), dependents: [], eventSources: () => [] });
    await other.operator.start();
    await createSecret(other, "s2", "q1");
    await setSecret(other, "s2");
    await other.operator.stop();
    await using page = createPageOperator(space, settings());
    await page.operator.start();
    await untilText(page, encoded("q1"), "one-copy");
    await setPassword(page, "s2", "q2");
    await untilText(page, encoded("q2"), "one-copy");
  });

  test("are found through a dependent that another client completes", async () => {
    const user = configMapsWith<Page>(({ spec }) => ({ text: spec.text }))("user");
    const secrets = informerSource({
      name: "secrets",
      resource: Secret,
      primaryToSecondary: (page: Page, { secondary }: { readonly secondary: { readonly user?: DataObject } }) =>
        keyOf(page, secondary.user?.data?.["secret"]),
    });
    const dependents: readonly KubernetesDependent[] = [user, copies()];
    await using page = await start({ ...settings(), dependents, eventSources: () => [secrets] });
    await createSecret(page, "s1", "p1");
    await createPage(page);
    await untilText(page, "none", "one-copy");
    await page.operator.client.mergePatch(
      ConfigMap,
      { name: "one-user", namespace: page.namespace ?? "" },
      { data: { secret: "s1" } },
    );
    await untilText(page, encoded("p1"), "one-copy");
    await setPassword(page, "s1", "p2");
    await untilText(page, encoded("p2"), "one-copy");
  });

  test("are found through a further hop of the same source", async () => {
    const chain = informerSource({
      name: "chain",
      resource: Secret,
      primaryToSecondary: (
        page: Page,
        { secondary }: { readonly secondary: Found & { readonly chain: readonly DataObject[] } },
      ) => [
        ...secondary.secrets.flatMap(({ data }) =>
          keyOf(page, data?.["next"] && Buffer.from(data["next"], "base64").toString()),
        ),
        ...secondary.chain.flatMap(() => []),
      ],
    });
    const ends = configMapsWith<Page>((_, secondary) => ({
      text: (secondary as unknown as { chain: readonly DataObject[] }).chain[0]?.data?.["password"] ?? "none",
    }))("copy");
    await using page = await start({
      ...settings(),
      dependents: [ends],
      eventSources: () => [...sources({ isQuiet: true }), chain],
    });
    await createSecret(page, "end", "e1");
    await createUser(page, "s1");
    await createPage(page);
    await untilText(page, "none", "one-copy");
    await page.operator.client.create(Secret, {
      metadata: { name: "s1", namespace: page.namespace ?? "" },
      data: { next: encoded("end") },
    });
    await untilText(page, encoded("e1"), "one-copy");
    await setPassword(page, "end", "e2");
    await untilText(page, encoded("e2"), "one-copy");
    await setSecret(page, "nothing");
    await untilText(page, "none", "one-copy");
    await waitFor("all is quiet", async () => (await page.quiet(), true));
  });
});
