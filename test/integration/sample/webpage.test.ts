// The sample operator, compiled, against an API server; the same on the embedded and on the real one.
import { asStored, createLogger, createOperator, type ApiClient, type Unstored } from "@gen-operator/runtime";
import { ConfigMap, Deployment, Ingress, Service, WebPage, webPageController } from "#webpage/generated/index.js";
import { startTestApiServer, type TestApiServer } from "../../support/api/api-server.js";
import { waitFor } from "#apiserver/wait-for.js";
import { failuresOf } from "../../support/runtime/recorded-operator.js";
import { isThorough } from "../../support/runs.js";
import { assert, shared, suite } from "../../support/suite.js";
import { startRecordedRun, type RecordedRun } from "./recorded-run.js";

const CRD = "fixtures/samples/webpage/crds/webpages.example.com.yaml";

/** Its requests are written down as `METHOD kind/name[/status]`. */
const startRun = ({ kubeconfig }: TestApiServer): Promise<RecordedRun> =>
  startRecordedRun({ controllers: [webPageController], kubeconfig, logger: createLogger("error") }, shortPath);

function shortPath(path: string): string {
  return path.replace(/\?.*$/, "").replace(/^.*\/namespaces\/[^/]+\//, "");
}

/** Lets events arrive that must not cause anything. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 400));

suite("webpage sample", (test) => {
  const server = shared(() => startTestApiServer({ crds: [CRD], simulate: true, tls: true }));
  let pages = 0;

  /** A client of the tests' own, so that the operator's requests are its own. */
  const testClient = async () => {
    const other = createOperator({
      controllers: [],
      kubeconfig: (await server()).kubeconfig,
      logger: createLogger("error"),
    });
    return other.start();
  };
  const newPage = (spec: Partial<WebPage["spec"]> = {}) =>
    WebPage.create({
      metadata: { name: `page-${++pages}`, namespace: "default" },
      spec: { html: "<h1>hello</h1>", host: `page-${pages}.example.com`, ...spec },
    });
  const readyPage = (client: ApiClient, { metadata }: Unstored<WebPage>) =>
    waitFor(
      `${metadata.name} is ready`,
      async () => {
        const page = await client.get(WebPage, metadata);
        const { ready, observedGeneration } = page?.status ?? {};
        return ready === true && observedGeneration === page?.metadata.generation ? page : undefined;
      },
      { timeoutMs: 15_000 },
    );

  test("asStored returns the same metadata fields as a read", async () => {
    await using tester = await testClient();
    const { client } = tester;
    const page = newPage();
    const config = ConfigMap.create({ metadata: page.metadata });
    await client.create(WebPage, page);
    await client.create(ConfigMap, config);
    const read = [await client.get(WebPage, page.metadata), await client.get(ConfigMap, page.metadata)];
    const stored = [asStored(WebPage, page), asStored(ConfigMap, config)];
    const fieldsOf = (object: WebPage | ConfigMap | undefined) => Object.keys(object?.metadata ?? {}).sort();
    assert.equal(stored.map(fieldsOf), read.map(fieldsOf));
    await client.delete(WebPage, page.metadata);
    await client.delete(ConfigMap, page.metadata);
  });

  test("converges with one write per dependent, in the order of the graph", async () => {
    await using tester = await testClient();
    await using run = await startRun(await server());
    const page = newPage({ exposed: true });
    await tester.client.create(WebPage, page);
    const { status } = await readyPage(tester.client, page);
    assert.is(status?.url, `http://${page.spec.host}/`);
    await settle();
    const { name } = page.metadata;
    assert.equal(
      run.requests.filter((request) => !request.endsWith("/status")),
      [`PATCH configmaps/${name}`, `PATCH deployments/${name}`, `PATCH services/${name}`, `PATCH ingresses/${name}`],
    );
    const ingress = await tester.client.get(Ingress, page.metadata);
    assert.is(ingress?.spec?.rules?.[0]?.host, page.spec.host);
    assert.is(ingress?.metadata.ownerReferences?.[0]?.kind, "WebPage");
    await tester.client.delete(WebPage, page.metadata);
  });

  test.thorough("creates the Service once the Deployment is ready", async () => {
    await using tester = await testClient();
    await using run = await startRun(await server());
    const page = newPage();
    await tester.client.create(WebPage, page);
    await readyPage(tester.client, page);
    const first = run.events.find(({ workflow }) => workflow?.dependents["deployment"]?.kind === "created");
    assert.equal(first?.workflow?.dependents["service"], { kind: "waiting", for: ["deployment"] });
    assert.is(first?.workflow?.isReady, false);
    await tester.client.delete(WebPage, page.metadata);
  });

  test.thorough("writes only the dependent that a change affects", async () => {
    await using tester = await testClient();
    await using run = await startRun(await server());
    const page = newPage();
    await tester.client.create(WebPage, page);
    await readyPage(tester.client, page);
    await settle();
    run.requests.length = 0;
    await tester.client.mergePatch(WebPage, page.metadata, { spec: { replicas: 2 } });
    await waitFor(
      "two replicas",
      async () => (await tester.client.get(Deployment, page.metadata))?.spec?.replicas === 2,
    );
    await readyPage(tester.client, page);
    await settle();
    const { name } = page.metadata;
    assert.equal(new Set(run.requests), new Set([`PATCH deployments/${name}`, `PATCH webpages/${name}/status`]));
    await tester.client.delete(WebPage, page.metadata);
  });

  test("restores modified and deleted dependents, and ignores labels added by others", async () => {
    await using tester = await testClient();
    await using run = await startRun(await server());
    const page = newPage();
    await tester.client.create(WebPage, page);
    await readyPage(tester.client, page);
    await tester.client.delete(Service, page.metadata);
    await waitFor("the service is back", () => tester.client.get(Service, page.metadata));
    await tester.client.mergePatch(ConfigMap, page.metadata, { data: { "index.html": "hacked" } });
    await waitFor("the document is back", async () => {
      const configMap = await tester.client.get(ConfigMap, page.metadata);
      return (
        Object.values(configMap?.data ?? {}).includes(page.spec.html) && !JSON.stringify(configMap).includes("hacked")
      );
    });
    await settle();
    run.requests.length = 0;
    const before = run.events.length;
    await tester.client.mergePatch(ConfigMap, page.metadata, { metadata: { labels: { team: "blue" } } });
    await waitFor("the foreign change is seen", () => run.events.length > before);
    await settle();
    assert.equal(run.requests, [], "a pass over what is as desired makes no request");
    assert.is((await tester.client.get(ConfigMap, page.metadata))?.metadata.labels?.["team"], "blue");
    await tester.client.delete(WebPage, page.metadata);
  });

  test.thorough("creates and deletes the Ingress with its precondition", async () => {
    await using tester = await testClient();
    await using run = await startRun(await server());
    const page = newPage({ exposed: true });
    await tester.client.create(WebPage, page);
    await readyPage(tester.client, page);
    await tester.client.mergePatch(WebPage, page.metadata, { spec: { exposed: false } });
    await waitFor("the ingress is gone", async () => (await tester.client.get(Ingress, page.metadata)) === undefined);
    await readyPage(tester.client, page);
    assert.ok(await tester.client.get(Service, page.metadata));
    await tester.client.mergePatch(WebPage, page.metadata, { spec: { exposed: true } });
    await waitFor("the ingress is back", () => tester.client.get(Ingress, page.metadata));
    await tester.client.delete(WebPage, page.metadata);
    assert.equal(failuresOf(run.events), []);
  });

  test("makes no request after a restart if everything is as desired", async () => {
    await using tester = await testClient();
    const page = newPage({ exposed: true, resources: { cpu: "0.5", memory: "1024Mi" } });
    {
      await using first = await startRun(await server());
      await tester.client.create(WebPage, page);
      await readyPage(tester.client, page);
      await settle();
      assert.ok(first.requests.length > 0);
    }
    await using second = await startRun(await server());
    await waitFor("the page is reconciled again", () =>
      second.events.some(({ primary }) => primary.endsWith(page.metadata.name)),
    );
    await settle();
    assert.equal(second.requests, []);
    await tester.client.delete(WebPage, page.metadata);
  });

  test(
    "deletes all dependents with their primary",
    async () => {
      await using tester = await testClient();
      await using run = await startRun(await server());
      const page = newPage({ exposed: true });
      await tester.client.create(WebPage, page);
      await readyPage(tester.client, page);
      await tester.client.delete(WebPage, page.metadata, { propagationPolicy: "Foreground" });
      await waitFor(
        "nothing is left",
        async () => {
          const left = await Promise.all(
            [WebPage, ConfigMap, Deployment, Service, Ingress].map((kind) =>
              tester.client.get<WebPage>(kind as typeof WebPage, page.metadata),
            ),
          );
          return left.every((object) => object === undefined);
        },
        // The real garbage collector learns of new kinds every 30 s.
        { timeoutMs: 60_000 },
      );
      assert.equal(failuresOf(run.events), []);
    },
    { timeoutMs: 90_000 },
  );

  test(
    "reconciles many pages concurrently with three writes each",
    async () => {
      await using tester = await testClient();
      await using run = await startRun(await server());
      const all = Array.from({ length: isThorough ? 20 : 6 }, () => newPage());
      await Promise.all(all.map((page) => tester.client.create(WebPage, page)));
      await Promise.all(all.map((page) => readyPage(tester.client, page)));
      const names = new Set(all.map(({ metadata }) => metadata.name));
      const writes = run.requests.filter(
        (request) => names.has(request.split("/")[1] ?? "") && !request.endsWith("/status"),
      );
      assert.is(writes.length, 3 * all.length, "three dependents for each");
      await Promise.all(all.map(({ metadata }) => tester.client.delete(WebPage, metadata)));
    },
    { timeoutMs: 60_000 },
  );
});
