// The registry of one controller: JOSDK's EventSourceManagerTest and EventSourcesTest, and the part of ControllerEventSourceTest that is not about
// filters.
import type { KubernetesObject, ObjectKey } from "#runtime/base/kubernetes-object.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import type { ExternalWatch } from "#runtime/sources/dependent-sources.js";
import { inboundSource } from "#runtime/sources/trigger-sources.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { assert, suite } from "../../../support/suite.js";
import { keysOf, objectOf, ownedBy } from "./simulated-informers.js";
import { createSources, recordingSource } from "./controller-support.js";
import { primaryOf } from "./source-context.js";

const ConfigMap = untypedResource({ apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" });
const Secret = untypedResource({ apiVersion: "v1", kind: "Secret", plural: "secrets", scope: "Namespaced" });

const dependent = (name: string, rest: object = {}) => ({
  name,
  resource: ConfigMap.definition,
  isActivatedLater: false,
  ...rest,
});

async function messageOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "nothing was thrown",
    (error: Error) => error.message,
  );
}

suite("event source names", (test) => {
  test("reject duplicates with the types of both sources (E10)", () => {
    const secrets = () => informerSource({ name: "configs", resource: Secret });
    assert.throws(
      () => createSources({ dependents: [dependent("configs")], sources: [secrets()] }),
      'controller "pages" has two event sources named "configs": one of ConfigMap.v1 and one of Secret.v1; give one of them another name',
    );
    assert.throws(
      () => createSources({ sources: [inboundSource({ name: "primary" })] }),
      /two event sources named "primary": that of its primaries and one without resources/,
    );
  });

  test("find sources by type, by name, and by any dependent of a shared watch", () => {
    const secrets = informerSource({ name: "secrets", resource: Secret });
    const dependents = [dependent("first"), dependent("second"), dependent("selected", { labelSelector: "a=b" })];
    const { sources } = createSources({ dependents, sources: [secrets] });
    assert.equal(sources.names(), ["first", "selected", "secrets"]);
    assert.equal(sources.find(Secret.definition), [secrets]);
    assert.equal(
      sources.find(ConfigMap.definition).map(({ name }) => name),
      ["first", "selected"],
    );
    assert.equal(
      sources.find(ConfigMap.definition, "second").map(({ name }) => name),
      ["first"],
    );
    assert.equal([sources.find(Secret.definition, "first"), sources.find("Price")], [[], []]);
    assert.equal([sources.get("second")?.name, sources.get("third")], ["first", undefined]);
  });
});

suite("start and stop of event sources", (test) => {
  test("starts custom sources after primaries and dependents have synced, those with startPriority first (E11)", async () => {
    const history: string[] = [];
    const first = recordingSource("loader", history, { startPriority: "first" });
    const { sources, informers, listener, sync, settle } = createSources({
      dependents: [dependent("configs")],
      sources: [recordingSource("a", history), recordingSource("b", history), first],
    });
    const started = sources.start(listener);
    await settle();
    assert.equal([history, informers.namespacesOf("ConfigMap")], [[], [undefined]]);
    await sync();
    await started;
    assert.equal(history.splice(0), ["start loader", "started loader", "start a", "start b", "started a", "started b"]);
    await sources.stop();
    assert.equal(history, ["stop a", "stop b", "stopped a", "stopped b", "stop loader", "stopped loader"]);
    assert.is(informers.all.length, 0);
  });

  test("fetches external dependents after all other sources have synced", async () => {
    const history: string[] = [];
    const accounts: ExternalWatch = {
      name: "accounts",
      origin: { kind: "poll", intervalMs: 1000, fetch: () => (history.push("fetch accounts"), new Map()) },
      idOf: () => "",
      isActivatedLater: false,
      isWritten: false,
    };
    const { start, sources } = createSources({ externals: [accounts], sources: [recordingSource("keys", history)] });
    await start();
    assert.equal(history, ["start keys", "started keys", "fetch accounts"]);
    await sources.stop();
  });

  test("stops the other sources if one fails to stop", async () => {
    const history: string[] = [];
    const stuck = recordingSource("stuck", history, { stop: () => Promise.reject(new Error("no way")) });
    const { sources, start, lines } = createSources({ sources: [stuck, recordingSource("a", history)] });
    await start();
    await sources.stop();
    assert.ok(history.includes("stopped a"));
    assert.equal(lines, ['warn: event source "stuck" could not be stopped: no way']);
  });

  test("reports the health of each source by name with the reason", async () => {
    const { sources, informers, start } = createSources({ dependents: [dependent("configs")] });
    assert.equal(sources.health(), { primary: { status: "unknown" }, configs: { status: "unknown" } });
    await start();
    informers.of("ConfigMap").fail("not allowed");
    const configs = { status: "unhealthy" as const, reason: "not allowed" };
    assert.equal([sources.health(), sources.failures], [{ primary: { status: "healthy" }, configs }, ["not allowed"]]);
    await sources.stop();
  });
});

suite("events of a controller", (test) => {
  test("notify the sources before the controller of a change of a primary (E13) (broadcastsToResourceEventAware)", async () => {
    const told: string[] = [];
    const aware = recordingSource("aware", [], { onPrimaryChange: ({ kind }) => void told.push(`aware ${kind}`) });
    const { sources, informers, start } = createSources({
      sources: [aware],
      onPrimaryChange: ({ kind }) => void told.push(`controller ${kind}`),
    });
    await start({ Page: [primaryOf("home/one")] });
    assert.equal(told.splice(0), ["controller added"], "the source was not started then");
    informers.of("Page").observe(objectOf("home/one", { resourceVersion: "11" }));
    informers.of("Page").delete(objectOf("home/one", { resourceVersion: "12" }));
    assert.equal(told, ["aware updated", "controller updated", "aware deleted", "controller deleted"]);
    await sources.stop();
  });

  test("notify only the sources of an own write of the controller", async () => {
    const told: string[] = [];
    const aware = recordingSource("aware", [], { onPrimaryChange: ({ kind }) => void told.push(`aware ${kind}`) });
    const { sources, informers, start } = createSources({
      sources: [aware],
      onPrimaryChange: ({ kind }) => void told.push(`controller ${kind}`),
    });
    await start({ Page: [primaryOf("home/one")] });
    told.splice(0);
    const endWrite = sources.primaries.beginWrite("home/one", { madeFor: "home/one" });
    const object = objectOf("home/one", { resourceVersion: "11" });
    informers.of("Page").observe(object);
    endWrite({ entry: { object }, isOwn: true });
    assert.equal(told, ["aware updated"]);
    await sources.stop();
  });

  test("mark a source as unhealthy while its onPrimaryChange throws, and still notify the controller", async () => {
    let fails = true;
    const onPrimaryChange = () => {
      if (fails) throw new Error("oops");
    };
    const { sources, informers, start, told } = createSources({
      sources: [recordingSource("aware", [], { onPrimaryChange })],
    });
    await start();
    informers.of("Page").observe(objectOf("home/one", { resourceVersion: "11" }));
    assert.equal(sources.health()["aware"], { status: "unhealthy", reason: "onPrimaryChange failed: oops" });
    fails = false;
    informers.of("Page").observe(objectOf("home/one", { resourceVersion: "12" }));
    assert.equal([sources.health()["aware"]?.status, told.length], ["healthy", 2]);
    await sources.stop();
  });

  test("map dependents by their links and are emitted once per shared watch", async () => {
    const { sources, start, told } = createSources({ dependents: [dependent("first"), dependent("second")] });
    await start({ ConfigMap: [objectOf("home/a", ownedBy("one"))] });
    assert.equal(told, ["first home/a home/one"]);
    assert.is(sources.dependents.get("first")?.cache, sources.dependents.get("second")?.cache);
    assert.equal(keysOf(sources.get("second")!.secondariesOf(primaryOf("home/one")) as KubernetesObject[]), ["home/a"]);
    await sources.stop();
  });

  test("of a shared watch name the dependent of the object, also a removed one", async () => {
    const dependents = [dependent("first"), dependent("second", { movedFrom: ["before"] })];
    const { sources, start, told } = createSources({ dependents });
    const of = (name: string) => ({ ...ownedBy("one"), annotations: { "gen-operator.dev/dependent": name } });
    const names = ["first", "second", "before", "gone"];
    await start({ ConfigMap: names.map((name) => objectOf(`home/${name}`, of(name))) });
    const named = ["first home/first", "second home/second", "second home/before", "gone home/gone"];
    assert.equal(told.sort(), named.map((each) => `${each} home/one`).sort());
    await sources.stop();
  });
});

suite("activation of dependents", (test) => {
  const later = (name: string) => dependent(name, { isActivatedLater: true });

  test("starts a watch with the first primary that needs it and stops it with the last", async () => {
    const { sources, informers, start, sync } = createSources({ dependents: [later("first"), later("second")] });
    await start();
    assert.equal(informers.namespacesOf("ConfigMap"), []);
    const [first, second] = [sources.dependents.get("first"), sources.dependents.get("second")];
    const activated = Promise.all([first!.activate("home/one"), second!.activate("home/one")]);
    await sync({ ConfigMap: [objectOf("home/a")] });
    await activated;
    assert.equal([...first!.cache.keys()], ["home/a"]);
    await first!.deactivate("home/one");
    assert.equal(informers.namespacesOf("ConfigMap"), [undefined]);
    await second!.deactivate("home/one");
    assert.equal([informers.namespacesOf("ConfigMap"), [...first!.cache.keys()]], [[], []]);
    await sources.stop();
  });

  test("keeps a watch that another dependent always needs", async () => {
    const sharing = dependent("second", { eventSource: "first", isActivatedLater: true });
    const { sources, informers, start } = createSources({ dependents: [dependent("first"), sharing] });
    await start();
    await sources.dependents.get("second")!.activate("home/one");
    await sources.dependents.get("second")!.deactivate("home/one");
    assert.equal(informers.namespacesOf("ConfigMap"), [undefined]);
    await sources.stop();
  });

  test("enqueues primaries whose activation failed when the watch works", async () => {
    const { sources, informers, start, told, settle } = createSources({ dependents: [later("configs")] });
    await start();
    informers.onCreate = (informer) => informer.fail("not served");
    const configs = sources.dependents.get("configs");
    assert.is(await messageOf(configs!.activate("home/one")), "not served");
    assert.is(await messageOf(configs!.activate("home/two")), "not served");
    informers.of("ConfigMap").sync("20");
    await settle();
    assert.equal(told, ["configs  home/one,home/two"]);
    await sources.stop();
  });
});

suite("registration of event sources at runtime", (test) => {
  test("registers a source once for concurrent callers, which wait until it has synced (E12)", async () => {
    const { sources, start, sync, told, informers } = createSources();
    await start();
    const create = () => informerSource({ name: "configs", resource: ConfigMap });
    const registered = Promise.all([sources.register(create()), sources.register(create())]);
    await sync({ ConfigMap: [objectOf("home/a", ownedBy("one"))] });
    const [a, b] = await registered;
    assert.is(a, b);
    assert.equal([told, informers.of("ConfigMap").users], [["configs home/a home/one"], 1]);
    assert.is(await sources.register(create()), a);
    await sources.deregister("configs");
    assert.equal([sources.names(), informers.namespacesOf("ConfigMap")], [[], []]);
    await sources.deregister("configs");
    await sources.stop();
  });

  test("rejects each caller while the source cannot be started, and succeeds later", async () => {
    const { sources, start, informers, told } = createSources();
    await start();
    informers.onCreate = (informer) => informer.fail("not served");
    const create = () => informerSource({ name: "configs", resource: ConfigMap });
    assert.is(await messageOf(sources.register(create())), "not served");
    assert.is(await messageOf(sources.register(create())), "not served");
    informers.of("ConfigMap").sync("20", objectOf("home/a", ownedBy("one")));
    assert.is((await sources.register(create())).name, "configs");
    assert.equal(told, ["configs home/a home/one"]);
    let fails = true;
    const flaky = recordingSource("flaky", [], {
      start: () => (fails ? Promise.reject(new Error("not yet")) : Promise.resolve()),
    });
    const refused = 'event source "flaky" of controller "pages" could not be started: not yet';
    assert.is(await messageOf(sources.register(flaky)), refused);
    fails = false;
    assert.is(await sources.register(flaky), flaky);
    await sources.stop();
  });

  test("neither replaces nor deregisters the source of a dependent", async () => {
    const { sources, start } = createSources({ dependents: [dependent("configs")] });
    await start();
    const other = informerSource({ name: "configs", resource: Secret });
    assert.is(await sources.register(other), sources.get("configs"));
    assert.is(
      await messageOf(sources.deregister("configs")),
      'event source "configs" belongs to a dependent of controller "pages"',
    );
    await sources.stop();
  });

  test("loads a started source before each reconcile", async () => {
    const loaded: ObjectKey[] = [];
    const load = async ({ metadata }: KubernetesObject) => void loaded.push(metadata.name);
    const { sources, start } = createSources({ sources: [recordingSource("a", [], { load })] });
    const { signal } = new AbortController();
    await sources.load(primaryOf("home/one"), signal);
    assert.equal(loaded, [], "it is not started");
    await start();
    await sources.load(primaryOf("home/one"), signal);
    assert.equal(loaded, ["one"]);
    await sources.stop();
  });
});

suite("namespaces of a controller", (test) => {
  const kinds = ["Page", "ConfigMap", "Secret"];

  test("change for primaries, dependents and inheriting sources, but for no others (N2, N3)", async () => {
    const changed: unknown[] = [];
    const custom = recordingSource("custom", [], {
      setNamespaces: async (namespaces) => void changed.push(namespaces),
    });
    const fixed = informerSource({ name: "fixed", resource: Secret, namespaces: ["vault"] });
    const all = informerSource({ name: "all", resource: Secret, namespaces: "all", labelSelector: "a=b" });
    const { sources, informers, start, sync } = createSources({
      namespaces: ["a"],
      dependents: [dependent("configs"), dependent("elsewhere", { namespace: "x" })],
      sources: [fixed, all, custom],
    });
    await start();
    const watched = () => kinds.map((kind) => informers.namespacesOf(kind));
    assert.equal(watched(), [["a"], ["a", "x"], ["vault", undefined]]);
    const following = sources.setNamespaces(["b"]);
    await sync();
    await following;
    assert.equal([watched(), changed], [[["b"], ["x", "b"], ["vault", undefined]], [["b"]]]);
    await sources.stop();
  });

  test("have their secondaries synced before primaries are emitted", async () => {
    const seen: unknown[] = [];
    const { sources, start, sync } = createSources({
      namespaces: ["a"],
      dependents: [dependent("configs")],
      onPrimaryChange: ({ key }) =>
        void seen.push([key, keysOf(sources.get("configs")!.secondariesOf(primaryOf(key)) as KubernetesObject[])]),
    });
    await start();
    const following = sources.setNamespaces(["home"]);
    await sync({ Page: [primaryOf("home/one")], ConfigMap: [objectOf("home/a", ownedBy("one"))] });
    await following;
    assert.equal(seen, [["home/one", ["home/a"]]]);
    await sources.stop();
  });

  test("stay unchanged if one source cannot watch a new one with watchFailurePolicy: block", async () => {
    const { sources, informers, start, sync } = createSources({
      namespaces: ["a"],
      dependents: [dependent("configs")],
      watchFailurePolicy: "block",
    });
    await start();
    informers.onCreate = (informer) => {
      if (informer.request.definition.kind === "ConfigMap") informer.fail("no rights in b");
    };
    const change = messageOf(sources.setNamespaces(["b"]));
    await sync();
    assert.is(await change, 'the namespaces of controller "pages" stay as they are: no rights in b');
    assert.equal(
      kinds.map((kind) => informers.namespacesOf(kind)),
      [["a"], ["a"], []],
    );
    await sources.stop();
  });

  test("are added as far as possible if one source fails, and their primaries wait for it", async () => {
    const { sources, informers, start, sync } = createSources({
      namespaces: ["a"],
      dependents: [dependent("configs")],
    });
    await start();
    informers.onCreate = (informer) => {
      if (informer.request.definition.kind === "ConfigMap") informer.fail("no rights in b");
    };
    const change = sources.setNamespaces(["a", "b"]);
    await sync();
    await change;
    assert.equal(
      [informers.namespacesOf("Page"), informers.namespacesOf("ConfigMap")],
      [
        ["a", "b"],
        ["a", "b"],
      ],
    );
    const unknownIn = (namespace: string) => sources.unknownFor(primaryOf(`${namespace}/one`));
    assert.equal([unknownIn("a"), unknownIn("b")], [undefined, "no rights in b"]);
    informers.of("ConfigMap", "b").sync("20");
    assert.is(unknownIn("b"), undefined);
    await sources.stop();
  });

  test("stay unchanged if a change between a list and all namespaces fails", async () => {
    for (const [from, to] of [
      [["a"], undefined],
      [undefined, ["a"]],
    ] as const) {
      const { sources, informers, start, sync } = createSources({ namespaces: from });
      await start();
      informers.onCreate = (informer) => informer.fail("no rights");
      const change = messageOf(sources.setNamespaces(to));
      await sync();
      assert.is(await change, 'the namespaces of controller "pages" stay as they are: no rights');
      assert.equal(informers.namespacesOf("Page"), from ?? [undefined]);
      await sources.stop();
    }
  });

  test("apply to a source that is registered later", async () => {
    const { sources, informers, start, sync } = createSources({ namespaces: ["a"] });
    await start();
    const following = sources.setNamespaces(undefined);
    await sync();
    await following;
    const registered = sources.register(informerSource({ name: "configs", resource: ConfigMap }));
    await sync();
    await registered;
    assert.equal(informers.namespacesOf("ConfigMap"), [undefined]);
    await sources.stop();
  });

  test("change one after the other if calls overlap", async () => {
    const { sources, informers, start, sync } = createSources({ namespaces: ["a"] });
    await start();
    const changes = Promise.all([sources.setNamespaces(["b"]), sources.setNamespaces(["c"])]);
    await sync();
    await sync();
    await changes;
    assert.equal(informers.namespacesOf("Page"), ["c"]);
    await sources.stop();
  });
});
