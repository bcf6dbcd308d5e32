// The sample of workflows that the reconcilers run, compiled, against an API server; the same on the embedded and on the real one.
import {
  ConfigMap,
  Deployment,
  Preview,
  Service,
  Site,
  siteController,
  type PreviewInput,
  type SiteInput,
} from "#standalone/generated/index.js";
import { previewController } from "#standalone/preview/controller.js";
import { waitFor } from "#apiserver/wait-for.js";
import { failuresOf } from "../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../support/suite.js";
import { spacesOf, type Space, type TestOperator } from "../runtime/space.js";

const openSpace = spacesOf({
  crds: ["sites", "previews"].map((plural) => `fixtures/samples/standalone/crds/${plural}.example.com.yaml`),
  simulate: true,
});
const controllers = [siteController, previewController];
// The real garbage collector learns of new kinds every 30 s.
const COLLECTED = { timeoutMs: 60_000 };

// A Site and a Preview of one name are no trouble to each other.
const createSite = (space: Space, spec: Partial<SiteInput["spec"]> = {}) =>
  space.create(Site, { metadata: { name: "main" }, spec: { html: "<h1>hello</h1>", ...spec } });
const createPreview = (space: Space, spec: Partial<PreviewInput["spec"]> = {}) =>
  space.create(Preview, {
    metadata: { name: "main" },
    spec: { image: "nginx:1.29", settings: { A: "1", B: "2" }, ...spec },
  });
const untilPhase = (space: Space, phase: string) =>
  space.until(
    Site,
    "main",
    ({ metadata, status }) => status?.phase === phase && status.observedGeneration === metadata.generation,
  );
const untilState = (space: Space, state: string) =>
  space.until(Preview, "main", ({ status }) => status?.state === state);
/** Which of the objects of a primary exist. */
const kindsOf = async (space: Space, name: string) =>
  [
    (await space.get(ConfigMap, name)) && "ConfigMap",
    (await space.get(Deployment, name)) && "Deployment",
    (await space.get(Service, name)) && "Service",
  ].filter((kind) => kind !== undefined);
const ALL = ["ConfigMap", "Deployment", "Service"];
/** The writes of the operator besides those of primaries, as `METHOD plural/name`. */
const writesOf = ({ requests }: TestOperator) =>
  requests
    .filter((request) => !request.includes("/example.com/"))
    .map((request) => request.replace(/ \d+$/, "").replace(/\/.*\/(\w+\/[\w-]+)$/, "$1"));

suite("standalone sample", (declareTest) => {
  // Operators that start and rollouts take seconds, more so when other tests run beside them.
  const test = (title: string, body: () => unknown, timeoutMs = 60_000) => declareTest(title, body, { timeoutMs });
  const thorough = (title: string, body: () => unknown, timeoutMs = 60_000) =>
    declareTest.thorough(title, body, { timeoutMs });

  test("runs an explicit workflow only when the reconciler calls it", async () => {
    await using space = await openSpace();
    await using running = await space.start(controllers);
    await createSite(space, { paused: true });
    await untilPhase(space, "Paused");
    await running.quiet();
    assert.equal(await kindsOf(space, "site-main"), []);
    await space.patch(Site, "main", { spec: { paused: false } });
    await untilPhase(space, "Ready");
    assert.equal(await kindsOf(space, "site-main"), ALL);
    await space.patch(Site, "main", { spec: { paused: true, replicas: 3, html: "<h1>changed</h1>" } });
    await untilPhase(space, "Paused");
    await space.delete(Service, "site-main");
    await running.quiet();
    assert.is((await space.get(Deployment, "site-main"))?.spec?.replicas, 1);
    assert.equal(
      await kindsOf(space, "site-main"),
      ["ConfigMap", "Deployment"],
      "what somebody does meanwhile is left alone",
    );
    await space.patch(Site, "main", { spec: { paused: false } });
    await untilPhase(space, "Ready");
    assert.is((await space.get(Deployment, "site-main"))?.spec?.replicas, 3);
    assert.is((await space.get(ConfigMap, "site-main"))?.data?.["index.html"], "<h1>changed</h1>");
    assert.equal(await kindsOf(space, "site-main"), ALL);
    assert.equal(failuresOf(running.events), []);
  });

  thorough("lets the reconciler handle the error of a dependent, while others continue", async () => {
    await using space = await openSpace();
    await using running = await space.start(controllers);
    await space.create(ConfigMap, { metadata: { name: "site-main" }, data: { theirs: "yes" } });
    await createSite(space);
    const { status } = await untilPhase(space, "Failed");
    assert.match(status?.message ?? "", /ConfigMap "[\w-]+\/site-main" already exists/);
    await waitFor("the service is there", () => space.get(Service, "site-main"));
    assert.equal(await kindsOf(space, "site-main"), ["ConfigMap", "Service"], "the deployment waits for the document");
    assert.ok(running.events.every(({ error, retryAfterMs }) => error === undefined && retryAfterMs === undefined));
    await space.delete(ConfigMap, "site-main");
    await space.patch(Site, "main", { spec: { replicas: 2 } });
    const ready = await untilPhase(space, "Ready");
    assert.is(ready.status?.message, undefined);
  });

  test("runs a handwritten workflow in order, next to a dependent without a workflow", async () => {
    await using space = await openSpace();
    await using running = await space.start(controllers);
    await createPreview(space);
    const { status } = await untilState(space, "Awake");
    assert.equal(status, { state: "Awake", url: `http://preview-main.${space.namespace}.svc/`, readyReplicas: 1 });
    assert.equal(
      writesOf(running).filter((write) => write.startsWith("PATCH")),
      ["PATCH services/preview-main", "PATCH configmaps/preview-main", "PATCH deployments/preview-main"],
    );
    const [container] = (await space.get(Deployment, "preview-main"))?.spec?.template.spec?.containers ?? [];
    assert.equal(container?.envFrom, [{ configMapRef: { name: "preview-main" } }]);
    assert.equal(failuresOf(running.events), []);
  });

  thorough("deletes the dependents of a sleeping preview in reverse order and keeps its Service", async () => {
    await using space = await openSpace();
    await using running = await space.start(controllers);
    await createPreview(space);
    await untilState(space, "Awake");
    await running.quiet();
    running.requests.length = 0;
    await space.patch(Preview, "main", { spec: { awake: false } });
    const { status } = await untilState(space, "Asleep");
    assert.is(status?.readyReplicas, 0);
    await running.quiet();
    assert.equal(writesOf(running), ["DELETE deployments/preview-main", "DELETE configmaps/preview-main"]);
    assert.equal(await kindsOf(space, "preview-main"), ["Service"]);
    await space.patch(Preview, "main", { spec: { awake: true, settings: null } });
    await untilState(space, "Awake");
    assert.equal(await kindsOf(space, "preview-main"), ALL);
  });

  thorough("restores modified and deleted dependents of all workflows", async () => {
    await using space = await openSpace();
    await using running = await space.start(controllers);
    await createPreview(space);
    await untilState(space, "Awake");
    await running.quiet();
    running.requests.length = 0;
    await space.delete(Service, "preview-main");
    await space.until(Service, "preview-main", () => true);
    await space.patch(ConfigMap, "preview-main", { data: { A: "changed" } });
    await space.until(ConfigMap, "preview-main", ({ data }) => data?.["A"] === "1");
    await running.quiet();
    assert.equal(writesOf(running), ["PATCH services/preview-main", "PATCH configmaps/preview-main"]);
  });

  thorough("retries a workflow that throws", async () => {
    await using space = await openSpace();
    await using running = await space.start(controllers);
    await space.create(ConfigMap, { metadata: { name: "preview-main" }, data: {} });
    await createPreview(space);
    const failed = await waitFor("a reconcile that fails", () =>
      running.events.find(({ error }) => error !== undefined),
    );
    assert.match(String(failed.error), /ConfigMap "[\w-]+\/preview-main" already exists/);
    assert.ok(failed.retryAfterMs! > 0);
    await space.delete(ConfigMap, "preview-main");
    await untilState(space, "Awake");
  });

  test("makes no request after a restart if everything is as desired", async () => {
    await using space = await openSpace();
    {
      await using first = await space.start(controllers);
      await createSite(space);
      await createPreview(space);
      await space.create(Preview, { metadata: { name: "asleep" }, spec: { image: "nginx:1.29", awake: false } });
      await untilPhase(space, "Ready");
      await untilState(space, "Awake");
      await space.until(Preview, "asleep", ({ status }) => status?.state === "Asleep");
      await first.quiet();
    }
    await using second = await space.start(controllers);
    await waitFor("all are reconciled again", () => second.events.length >= 3);
    await second.quiet();
    assert.equal(second.requests, []);
  });

  thorough(
    "deletes all dependents with their primary",
    async () => {
      await using space = await openSpace();
      await using running = await space.start(controllers);
      await createSite(space);
      await createPreview(space);
      await untilPhase(space, "Ready");
      await untilState(space, "Awake");
      await running.quiet();
      await space.delete(Site, "main");
      await space.delete(Preview, "main");
      await waitFor(
        "nothing is left",
        async () => [...(await kindsOf(space, "site-main")), ...(await kindsOf(space, "preview-main"))].length === 0,
        COLLECTED,
      );
      assert.equal(failuresOf(running.events), []);
    },
    90_000,
  );
});
