// What event sources see of an API server; the number of JOSDK's scenario in brackets where there is one.
import { startApiServer, type ApiServer } from "#apiserver/index.js";
import type { KubernetesObject, ObjectKey } from "#runtime/base/kubernetes-object.js";
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { requesterOf, ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import type { EventSource } from "#runtime/sources/event-source.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import { OwnViews } from "#runtime/cache/resource-view.js";
import { ControllerSources, type ControllerSourcesOptions } from "#runtime/sources/controller-sources.js";
import { InformerPool } from "#runtime/watch/shared-informers.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { pollingSource } from "#runtime/sources/polling-sources.js";
import { createPrimarySource } from "#runtime/sources/kind-source.js";
import { byAnnotation } from "#runtime/sources/mappers.js";
import { assert, suite } from "../../../support/suite.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { ConfigMap, Page, pageCrd, Secret, startPageServer, type DataObject } from "../page-operator.js";

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const Namespace = classOf(builtinDefinition("v1", "Namespace"));
/** The longest time until a watch is tried again is 15 s; the first attempts come sooner. */
const RECOVERY = { timeoutMs: 15_000 };
const pageLink = byAnnotation(Page, { name: "page", namespace: "page-namespace" });
const annotationsOf = (page: string) => ({ page, "page-namespace": "default" });

/** The client and the informers of an operator, for the sources of any number of controllers. */
function createOperatorParts(server: ApiServer, namespace?: string) {
  const { url, token, ca } = server;
  const client = new ApiClient(createConnection({ url, token, ca, namespace }));
  const lines: string[] = [];
  const log = (level: string) => (_: object, message: string) => void lines.push(`${level}: ${message}`);
  const logger = { debug: () => {}, info: log("info"), warn: log("warn"), error: log("error") };
  const informers = new InformerPool({ client, fieldManagers: ["page"], logger });
  const running: ControllerSources[] = [];
  const start = async (sources: readonly EventSource[], options: Partial<ControllerSourcesOptions> = {}) => {
    const told: string[] = [];
    const controller = new ControllerSources({
      controller: "page",
      primary: createPrimarySource({ definition: Page.definition }),
      views: new OwnViews(),
      dependents: [],
      sources,
      fieldManager: "page",
      client,
      informers,
      logger,
      ...options,
    });
    running.push(controller);
    await controller.start({
      onPrimaryChange: ({ kind, key }) => void told.push(`${kind} ${key}`),
      forget: () => {},
      onSecondaryChange: (keys, { source }) => void told.push(...[...keys].map((key) => `${source} ${key}`)),
    });
    const untilTold = (line: string) => waitFor(`${line} is told`, () => told.includes(line), RECOVERY);
    return { controller, told, untilTold };
  };
  const stop = async () => {
    await Promise.all(running.map((each) => each.stop()));
    await client.close();
  };
  return { client, informers, lines, start, stop, [Symbol.asyncDispose]: stop };
}

const page = (name: string, namespace = "default") => ({ metadata: { name, namespace }, spec: { text: "first" } });
const config = (name: string, metadata: object = {}) => ({
  metadata: { name, namespace: "default", ...metadata },
  data: { text: "first" },
});
const namesOf = (objects: readonly unknown[]) => objects.map((object) => (object as KubernetesObject).metadata.name);
const watchesOf = (server: ApiServer, path: string) =>
  server.requests.filter((request) => request.verb === "watch" && request.path.endsWith(path)).length;

suite("event sources", (test) => {
  test("share one watch between controllers, which ends with the last of them", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server);
    const create = () => informerSource({ name: "configs", resource: ConfigMap, mapper: pageLink });
    const [a, b] = [await parts.start([create()]), await parts.start([create()])];
    assert.equal(
      [parts.informers.activity().length, watchesOf(server, "/configmaps"), watchesOf(server, "/pages")],
      [2, 1, 1],
    );
    await parts.client.create(ConfigMap, config("a", { annotations: annotationsOf("one") }));
    await Promise.all([a.untilTold("configs default/one"), b.untilTold("configs default/one")]);
    await a.controller.stop();
    await parts.client.mergePatch(
      ConfigMap,
      { name: "a", namespace: "default" },
      { metadata: { annotations: { page: "two" } } },
    );
    await b.untilTold("configs default/two");
    assert.equal(a.told, ["configs default/one"]);
    await b.controller.stop();
    assert.is(parts.informers.activity().length, 0);
  });

  test("filter by fieldSelector and labelSelector on the server [27, 37]", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server);
    const mapper = () => ["default/one"];
    const secrets = informerSource({
      name: "secrets",
      resource: Secret,
      mapper,
      fieldSelector: "type=kubernetes.io/tls-ish",
    });
    const labelled = informerSource({ name: "labelled", resource: ConfigMap, mapper, labelSelector: "tier=front" });
    const { untilTold } = await parts.start([secrets, labelled]);
    const secret = (name: string, type: string) => ({ ...config(name), data: {}, type });
    await parts.client.create(Secret, secret("other", "Opaque"));
    await parts.client.create(Secret, secret("wanted", "kubernetes.io/tls-ish"));
    await parts.client.create(ConfigMap, config("plain"));
    await parts.client.create(ConfigMap, config("front", { labels: { tier: "front" } }));
    await Promise.all([untilTold("secrets default/one"), untilTold("labelled default/one")]);
    assert.equal([namesOf(secrets.list()), namesOf(labelled.list())], [["wanted"], ["front"]]);
    // An object that is no longer selected is gone for this watch.
    await parts.client.mergePatch(
      ConfigMap,
      { name: "front", namespace: "default" },
      { metadata: { labels: { tier: null } } },
    );
    await waitFor("it is gone", () => labelled.list().length === 0);
  });

  test("store only metadata with cache: metadata", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server);
    await parts.client.create(ConfigMap, config("before"));
    const mapper = () => ["default/one"];
    const metadata = informerSource({ name: "metadata", resource: ConfigMap, mapper, cache: "metadata" });
    const full = informerSource({ name: "full", resource: ConfigMap, mapper });
    await parts.start([metadata, full]);
    await parts.client.create(ConfigMap, config("after"));
    await waitFor("both know both", () => metadata.list().length === 2 && full.list().length === 2);
    for (const name of ["before", "after"]) {
      const { apiVersion, kind, metadata: meta, data } = metadata.get(`default/${name}`) as DataObject;
      assert.equal([apiVersion, kind, meta.name, data], ["v1", "ConfigMap", name, undefined]);
      assert.equal(full.get(`default/${name}`)?.data, { text: "first" });
    }
  });

  test("watch an untyped kind [22, 31]", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server);
    const { controller, told, untilTold } = await parts.start([]);
    const Untyped = untypedResource({ apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" });
    const source = informerSource({ name: "untyped", resource: Untyped, mapper: pageLink });
    assert.is(await controller.register(source), source);
    await parts.client.create(ConfigMap, config("a", { annotations: annotationsOf("one") }));
    await untilTold("untyped default/one");
    assert.equal(source.get("default/a")?.["data"], { text: "first" });
    await parts.client.delete(ConfigMap, { name: "a", namespace: "default" });
    await waitFor("the deletion is told", () => told.length === 2);
    await controller.deregister("untyped");
    assert.equal(controller.names(), []);
  });

  test("reject registration of a kind that is not served, and watch it once it is", async () => {
    await using server = await startPageServer({ withoutCrd: true });
    await using parts = createOperatorParts(server);
    const Other = untypedResource({ apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" });
    const { controller, untilTold } = await parts.start([], { primary: createPrimarySource(Other) });
    const source = informerSource({ name: "pages", resource: Page, mapper: ({ metadata }) => [keyOf(metadata)] });
    const error = await controller.register(source).catch((reason: Error) => reason.message);
    assert.match(error as string, "Page.v1.example.com is not served by");
    const requester = requesterOf(parts.client);
    await requester.send({ method: "POST", path: DEFINITIONS, body: JSON.stringify(pageCrd) });
    await waitFor("pages are taken", () => parts.client.create(Page, page("one")), RECOVERY);
    await untilTold("pages default/one");
    assert.is(source.health.status, "healthy");
  });

  test("map objects of another cluster to primaries [34]", async () => {
    await using server = await startPageServer();
    await using remote = await startApiServer({ tls: false });
    await using parts = createOperatorParts(server);
    await using there = createOperatorParts(remote);
    const connection = { url: remote.url, token: remote.token };
    const source = informerSource({ name: "remote", resource: ConfigMap, mapper: pageLink, connection });
    const { controller, told, untilTold } = await parts.start([source]);
    const annotations = annotationsOf("one");
    await parts.client.create(ConfigMap, config("here", { annotations }));
    await there.client.create(ConfigMap, config("there", { annotations }));
    await untilTold("remote default/one");
    const primary = await parts.client.create(Page, page("one"));
    assert.equal(namesOf(source.secondariesOf(primary)), ["there"]);
    assert.equal(
      told.filter((line) => line.startsWith("remote")),
      ["remote default/one"],
    );
    await controller.stop();
    assert.is(parts.informers.activity().length, 0);
  });

  test("notify each source of a kind, and primaries removed from the references, too [45] [71]", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server);
    const ofNames = ({ data = {} }: DataObject): ObjectKey[] => Object.keys(data).map((name) => `default/${name}`);
    const sources = ["first", "second"].map((name) => informerSource({ name, resource: ConfigMap, mapper: ofNames }));
    const { told } = await parts.start(sources);
    await parts.client.create(ConfigMap, { ...config("a"), data: { one: "", two: "" } });
    const ref = { name: "a", namespace: "default" };
    await waitFor("both tell both", () => told.length === 4);
    told.length = 0;
    await parts.client.mergePatch(ConfigMap, ref, { data: { one: null, three: "" } });
    await waitFor("all three are told by both", () => told.length === 6);
    const expected = ["first", "second"].flatMap((name) =>
      ["one", "three", "two"].map((of) => `${name} default/${of}`),
    );
    assert.equal(told.sort(), expected);
  });

  test("follow namespace changes of primaries and secondaries [13]", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server);
    for (const name of ["a", "b"]) {
      await parts.client.create(Namespace, { metadata: { name } });
      await parts.client.create(Page, page("one", name));
      await parts.client.create(ConfigMap, config("config", { namespace: name }));
    }
    const mapper = ({ metadata }: KubernetesObject) => [`${metadata.namespace}/one`];
    const follows = informerSource({ name: "follows", resource: ConfigMap, mapper });
    const everywhere = informerSource({ name: "everywhere", resource: Secret, namespaces: "all", mapper });
    const { controller, told, untilTold } = await parts.start([follows, everywhere], { namespaces: ["a"] });
    assert.equal(told.splice(0), ["added a/one", "follows a/one"]);
    await controller.setNamespaces(["a", "b"]);
    assert.equal(told.splice(0), ["follows b/one", "added b/one"], "the secondaries come first");
    await controller.setNamespaces(undefined);
    assert.equal(told.splice(0), [], "everything was known, but for the namespaces that have none");
    await controller.setNamespaces(["b"]);
    assert.equal([told.splice(0), [...controller.primaries.keys()]], [[], ["b/one"]]);
    await parts.client.mergePatch(Page, { name: "one", namespace: "a" }, { spec: { text: "second" } });
    await parts.client.mergePatch(Page, { name: "one", namespace: "b" }, { spec: { text: "second" } });
    await untilTold("updated b/one");
    assert.equal(told, ["updated b/one"]);
  });

  test("resolve the namespace current from the connection", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server, "home");
    const mapper = ({ metadata }: KubernetesObject) => [`${metadata.namespace}/one`];
    const own = informerSource({ name: "own", resource: ConfigMap, namespaces: "current", mapper });
    for (const name of ["home", "away"]) {
      await parts.client.create(Namespace, { metadata: { name } });
      await parts.client.create(ConfigMap, config("config", { namespace: name }));
    }
    const { told } = await parts.start([own], { namespaces: ["away"] });
    assert.equal(told, ["own home/one"]);
    await using without = createOperatorParts(server);
    const homeless = informerSource({ name: "own", resource: ConfigMap, namespaces: "current", mapper });
    await assert.rejects(without.start([homeless]), "it watches the namespace of its connection, and ");
  });

  test("reject a namespace change without permission if watchFailurePolicy is block, and keep the namespaces", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server);
    const { controller } = await parts.start([], { namespaces: ["a"], watchFailurePolicy: "block" });
    server.faults.add({ verb: ["list", "watch"], namespace: "b", forbid: true });
    const error = await controller.setNamespaces(["a", "b"]).catch((reason: Error) => reason.message);
    assert.match(
      error as string,
      'the namespaces of controller "page" stay as they are: not allowed to list and watch Page.v1.example.com in namespace "b"',
    );
    assert.is(parts.informers.activity().length, 1);
  });
});

suite("watch failures", (test) => {
  test("in one namespace are logged once, and the watch is restored when permission returns", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server);
    const { controller, untilTold } = await parts.start([], { namespaces: ["ours", "theirs"] });
    const fault = server.faults.add({ verb: ["list", "watch"], namespace: "theirs", forbid: true });
    server.faults.endWatches();
    await waitFor("it is unhealthy", () => controller.health()["primary"]?.status === "unhealthy", RECOVERY);
    await waitFor("it is tried again", () => fault.hits >= 2, RECOVERY);
    const what = 'Page.v1.example.com in namespace "theirs"';
    assert.equal(parts.lines.length, 1);
    assert.match(parts.lines[0]!, `warn: not allowed to list and watch ${what}`);
    assert.match(controller.failures[0]!, what);
    await parts.client.create(Page, page("one", "ours")).catch(() => undefined);
    fault.remove();
    await waitFor("it is healthy", () => controller.health()["primary"]?.status === "healthy", RECOVERY);
    assert.equal(parts.lines.slice(1), [`info: ${what}: watch restored`]);
    await parts.client.create(Namespace, { metadata: { name: "theirs" } });
    await parts.client.create(Page, page("one", "theirs"));
    await untilTold("added theirs/one");
  });

  test("after a CRD is deleted remove its objects, and the watch is restored when it is recreated", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server);
    const { controller, untilTold } = await parts.start([]);
    await parts.client.create(Page, page("one"));
    await untilTold("added default/one");
    // Nobody watches when the definition goes: what became of the objects is read from the answer to the next list.
    const fault = server.faults.add({ verb: ["list", "watch"], path: "/pages", answer: { status: 503 } });
    server.faults.endWatches();
    await waitFor("nobody watches", () => fault.hits > 0, RECOVERY);
    const requester = requesterOf(parts.client);
    await requester.send({ method: "DELETE", path: `${DEFINITIONS}/pages.example.com` });
    assert.is(controller.primaries.has("default/one"), true, "a server that is busy says nothing about its objects");
    fault.remove();
    await untilTold("deleted default/one");
    assert.is(controller.primaries.has("default/one"), false);
    assert.match(controller.failures[0]!, "the CustomResourceDefinition pages.example.com is not installed");
    await requester.send({ method: "POST", path: DEFINITIONS, body: JSON.stringify(pageCrd) });
    await waitFor("pages are taken", () => parts.client.create(Page, page("two")), RECOVERY);
    await untilTold("added default/two");
    assert.is(controller.health()["primary"]?.status, "healthy");
    const warnings = parts.lines.filter((line) => line.startsWith("warn") && line.includes("is not installed"));
    assert.is(warnings.length, 1);
    assert.equal(parts.lines.at(-1), "info: Page.v1.example.com: watch restored");
  });

  test("after 401 are logged once, and the watch is restored with accepted credentials", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server);
    const { controller, untilTold } = await parts.start([]);
    server.faults.refuseTokens(true);
    server.faults.endWatches();
    await waitFor("it is unhealthy", () => controller.health()["primary"]?.status === "unhealthy", RECOVERY);
    assert.match(controller.failures[0]!, "rejects the credentials");
    server.faults.refuseTokens(false);
    await waitFor("it is healthy", () => controller.health()["primary"]?.status === "healthy", RECOVERY);
    assert.equal(parts.lines.slice(1), ["info: Page.v1.example.com: watch restored"]);
    await parts.client.create(Page, page("one"));
    await untilTold("added default/one");
  });

  test("do not hide the deletion of an object that existed before its primary", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server);
    const configs = informerSource({
      name: "configs",
      resource: ConfigMap,
      mapper: ({ metadata }, { primaries }) => {
        const key = keyOf({ name: metadata.name, namespace: metadata.namespace });
        return primaries.has(key) ? [key] : [];
      },
    });
    const { controller, told, untilTold } = await parts.start([configs]);
    await parts.client.create(ConfigMap, config("one"));
    await waitFor("the object is known", () => configs.list().length === 1);
    await parts.client.create(Page, page("one"));
    await untilTold("added default/one");
    const primary = controller.primaries.get("default/one")!.object;
    assert.equal([namesOf(configs.secondariesOf(primary)), told], [["one"], ["added default/one"]]);
    const fault = server.faults.add({ verb: ["list", "watch"], path: "/configmaps", answer: { status: 503 } });
    server.faults.endWatches();
    await waitFor("nobody watches", () => fault.hits > 0, RECOVERY);
    await parts.client.delete(ConfigMap, { name: "one", namespace: "default" });
    fault.remove();
    await untilTold("configs default/one");
    assert.equal(configs.secondariesOf(primary), []);
  });

  test("of a hanging poll mark the source as unhealthy until the next poll", async () => {
    await using server = await startPageServer();
    await using parts = createOperatorParts(server);
    let polls = 0;
    let hangs = true;
    const never = new Promise<never>(() => {});
    const prices = pollingSource<string>({
      name: "prices",
      idOf: (text) => text,
      intervalMs: 50,
      fetchTimeoutMs: 300,
      fetch: () => (++polls > 1 && hangs ? never : new Map([["default/one", [`price ${polls}`]]])),
    });
    const { controller, untilTold, told } = await parts.start([prices]);
    const health = () => controller.health()["prices"];
    await waitFor("it is unhealthy", () => health()?.status === "unhealthy", RECOVERY);
    assert.is(health()?.reason, "fetch failed: no answer within 300 ms");
    told.length = 0;
    hangs = false;
    await untilTold("prices default/one");
    assert.is(health()?.status, "healthy");
  });
});
