// The sample with two controllers, compiled, against an API server; the same on the embedded and on the real one.
import {
  ConfigMap,
  controllers,
  Deployment,
  Service,
  Tomcat,
  Webapp,
  type TomcatInput,
  type WebappInput,
} from "#tomcat/generated/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { failuresOf } from "../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../support/suite.js";
import { spacesOf, type Space, type TestOperator } from "../runtime/space.js";
import { conditionsOf, isConditionTrue } from "./conditions.js";

const openSpace = spacesOf({
  crds: ["tomcats", "webapps"].map((plural) => `fixtures/samples/tomcat/crds/${plural}.example.com.yaml`),
  simulate: true,
});
const LABEL = "example.com/tomcat";
// The real garbage collector learns of new kinds every 30 s.
const COLLECTED = { timeoutMs: 60_000 };

const urlOf = (archive: string) => `https://archives.example.com/${archive}.war`;
const createTomcat = (space: Space, name: string, spec: Partial<TomcatInput["spec"]> = {}) =>
  space.create(Tomcat, { metadata: { name }, spec: { version: "11.0", ...spec } });
const createWebapp = (space: Space, name: string, spec: Partial<WebappInput["spec"]> = {}) =>
  space.create(Webapp, {
    metadata: { name },
    spec: { tomcat: "main", contextPath: name, url: urlOf(name), ...spec },
  });
const untilServed = (space: Space, name: string) =>
  space.until(Webapp, name, (webapp) => isConditionTrue(webapp) && webapp.status?.url !== undefined);
const untilServing = (space: Space, name: string, ...archives: readonly string[]) =>
  space.until(Tomcat, name, (tomcat) => {
    const served = Object.values(tomcat.status?.webapps ?? {});
    return isConditionTrue(tomcat) && served.sort().join() === archives.map(urlOf).join();
  });
const fetchersIn = async (space: Space, name: string) =>
  (await space.get(Deployment, name))?.spec?.template.spec?.initContainers ?? [];
const reconcilesOf = ({ events }: TestOperator, name: string) =>
  events.filter(({ primary }) => primary.endsWith(`/${name}`));

suite("tomcat sample", (declareTest) => {
  // Operators that start and rollouts take seconds, more so when other tests run beside them.
  const test = (title: string, body: () => unknown, timeoutMs = 60_000) => declareTest(title, body, { timeoutMs });
  const thorough = (title: string, body: () => unknown, timeoutMs = 60_000) =>
    declareTest.thorough(title, body, { timeoutMs });

  test("keeps a Webapp waiting with conditions until its Tomcat is ready", async () => {
    await using space = await openSpace();
    await using running = await space.start(controllers);
    await createWebapp(space, "shop");
    const waiting = await space.until(Webapp, "shop", (webapp) => conditionsOf(webapp).length === 3);
    assert.equal(conditionsOf(waiting), [
      "Ready=False NotReady: tomcat: does not exist yet; configMap: waits for tomcat",
      "TomcatReady=False NotReady: does not exist yet",
      "ConfigMapReady=False DependencyNotReady: waits for tomcat",
    ]);
    assert.is(waiting.status?.url, undefined);
    await createTomcat(space, "main", { replicas: 2 });
    const webapp = await untilServed(space, "shop");
    assert.is(webapp.status?.url, `http://main.${space.namespace}.svc/shop/`);
    assert.equal(conditionsOf(webapp), ["Ready=True Ready: everything is as desired"]);
    const tomcat = await untilServing(space, "main", "shop");
    assert.is(tomcat.status?.readyReplicas, 2);
    assert.equal(
      (await fetchersIn(space, "main")).map(({ name, command }) => [name, command?.at(-1)]),
      [["webapp-shop", urlOf("shop")]],
    );
    assert.is((await space.get(ConfigMap, "main.shop"))?.metadata.labels?.[LABEL], "main");
    assert.ok(await space.get(Service, "main"));
    assert.equal(failuresOf(running.events), []);
  });

  thorough("reports Ready per generation, so that kubectl wait ignores an outdated condition", async () => {
    await using space = await openSpace();
    {
      await using _first = await space.start(controllers);
      await createTomcat(space, "main");
      await createWebapp(space, "shop");
      await untilServed(space, "shop");
      await untilServing(space, "main", "shop");
    }
    const tomcat = await space.patch(Tomcat, "main", { spec: { version: "11.1" } });
    const webapp = await space.patch(Webapp, "shop", { spec: { url: urlOf("shop-2") } });
    assert.equal(
      [conditionsOf(tomcat), conditionsOf(webapp)].flat(),
      Array(2).fill("Ready=True Ready: everything is as desired"),
    );
    assert.equal([isConditionTrue(tomcat), isConditionTrue(webapp)], [false, false]);
    await using _second = await space.start(controllers);
    await untilServed(space, "shop");
    await untilServing(space, "main", "shop-2");
    const container = (await space.get(Deployment, "main"))?.spec?.template.spec?.containers[0];
    assert.is(container?.image, "tomcat:11.1");
  });

  thorough("reconciles only the Webapps that reference a changed Tomcat", async () => {
    await using space = await openSpace();
    await using running = await space.start(controllers);
    await createTomcat(space, "main");
    await createTomcat(space, "other");
    await createWebapp(space, "one");
    await createWebapp(space, "two");
    await createWebapp(space, "three", { tomcat: "other" });
    await untilServing(space, "main", "one", "two");
    for (const name of ["one", "two", "three"]) await untilServed(space, name);
    await running.quiet();
    const [one, two, three] = ["one", "two", "three"].map((name) => reconcilesOf(running, name).length);
    await space.patch(Tomcat, "main", { spec: { replicas: 3 } });
    await space.until(Tomcat, "main", ({ status }) => status?.readyReplicas === 3);
    await running.quiet();
    assert.ok(reconcilesOf(running, "one").length > one!);
    assert.ok(reconcilesOf(running, "two").length > two!);
    assert.is(reconcilesOf(running, "three").length, three);
  });

  thorough("keeps a Webapp ready while others are added to its Tomcat", async () => {
    await using space = await openSpace();
    await using running = await space.start(controllers);
    await createTomcat(space, "main");
    await createWebapp(space, "one");
    await untilServed(space, "one");
    await running.quiet();
    const { length } = running.events;
    await createWebapp(space, "two");
    await untilServed(space, "two");
    await untilServing(space, "main", "one", "two");
    await running.quiet();
    const since = { ...running, events: running.events.slice(length) };
    assert.equal([...new Set(reconcilesOf(since, "one").map(({ workflow }) => workflow?.isReady))], [true]);
    assert.equal((await fetchersIn(space, "main")).length, 2);
  });

  thorough("serves a moved Webapp from the old Tomcat until the new one is ready", async () => {
    await using space = await openSpace();
    await using running = await space.start(controllers);
    await createTomcat(space, "main");
    await createWebapp(space, "shop");
    await untilServing(space, "main", "shop");
    await untilServed(space, "shop");
    await space.patch(Webapp, "shop", { spec: { tomcat: "next" } });
    const waiting = await space.until(Webapp, "shop", (webapp) => conditionsOf(webapp).length === 3);
    assert.is(waiting.status?.url, undefined);
    await running.quiet();
    await untilServing(space, "main", "shop");
    await createTomcat(space, "next");
    await untilServing(space, "next", "shop");
    await untilServing(space, "main");
    assert.is((await untilServed(space, "shop")).status?.url, `http://next.${space.namespace}.svc/shop/`);
    assert.equal((await space.list(ConfigMap)).filter(({ metadata }) => metadata.labels?.[LABEL]).length, 1);
    assert.equal(await fetchersIn(space, "main"), []);
  });

  thorough(
    "gives a context path to one Webapp, and to the next one after its deletion",
    async () => {
      await using space = await openSpace();
      await using _running = await space.start(controllers);
      await createTomcat(space, "main");
      await createWebapp(space, "first", { contextPath: "shop" });
      await untilServed(space, "first");
      await createWebapp(space, "second", { contextPath: "shop" });
      await createWebapp(space, "third");
      await untilServed(space, "third");
      const second = await space.until(Webapp, "second", (webapp) => conditionsOf(webapp).length === 2);
      assert.match(
        conditionsOf(second)[1]!,
        /^ConfigMapReady=False Failed: .*main\.shop" already exists and is owned by Webapp "first"/,
      );
      await untilServing(space, "main", "first", "third");
      await space.delete(Webapp, "first");
      await waitFor(
        "the second is served",
        async () => isConditionTrue((await space.get(Webapp, "second"))!),
        COLLECTED,
      );
      await untilServing(space, "main", "second", "third");
    },
    90_000,
  );

  thorough("restores modified and deleted objects", async () => {
    await using space = await openSpace();
    await using _running = await space.start(controllers);
    await createTomcat(space, "main");
    await createWebapp(space, "shop");
    await untilServing(space, "main", "shop");
    await space.patch(ConfigMap, "main.shop", { metadata: { labels: { [LABEL]: "other" } }, data: { url: "hacked" } });
    await space.until(
      ConfigMap,
      "main.shop",
      ({ metadata, data }) => metadata.labels?.[LABEL] === "main" && data?.["url"] === urlOf("shop"),
    );
    await space.delete(ConfigMap, "main.shop");
    await space.until(ConfigMap, "main.shop", ({ data }) => data?.["url"] === urlOf("shop"));
    await space.patch(Deployment, "main", { spec: { template: { spec: { initContainers: null } } } });
    await space.delete(Service, "main");
    await space.until(Service, "main", () => true);
    await untilServing(space, "main", "shop");
    assert.is((await fetchersIn(space, "main")).length, 1);
    await untilServed(space, "shop");
  });

  thorough(
    "deletes the objects of a deleted primary, and Webapps wait for a Tomcat again",
    async () => {
      await using space = await openSpace();
      await using _running = await space.start(controllers);
      await createTomcat(space, "main");
      await createWebapp(space, "one");
      await createWebapp(space, "two");
      await untilServing(space, "main", "one", "two");
      await space.delete(Webapp, "one");
      await waitFor("one is gone from the pods", async () => (await fetchersIn(space, "main")).length === 1, COLLECTED);
      await untilServing(space, "main", "two");
      await space.delete(Tomcat, "main");
      const waiting = await space.until(Webapp, "two", (webapp) => !isConditionTrue(webapp));
      assert.is(waiting.status?.url, undefined);
      await waitFor("the servers are gone", async () => (await space.get(Deployment, "main")) === undefined, COLLECTED);
      assert.ok(await space.get(ConfigMap, "main.two"), "it waits for a Tomcat of the name");
      await createTomcat(space, "main");
      await untilServing(space, "main", "two");
      await untilServed(space, "two");
    },
    150_000,
  );

  thorough("makes no request after a restart if everything is as desired", async () => {
    await using space = await openSpace();
    {
      await using first = await space.start(controllers);
      await createTomcat(space, "main");
      await createWebapp(space, "one");
      await createWebapp(space, "two");
      await untilServing(space, "main", "one", "two");
      await untilServed(space, "one");
      await untilServed(space, "two");
      await first.quiet();
    }
    await using second = await space.start(controllers);
    await waitFor("all are reconciled again", () => new Set(second.events.map(({ primary }) => primary)).size === 3);
    await second.quiet();
    assert.equal(second.requests, []);
  });
});
