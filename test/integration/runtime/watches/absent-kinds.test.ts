// Kinds that the cluster does not serve: they have no objects, and hold up nothing.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { type SourceCondition, not } from "#runtime/sources/event-source.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { crdPresent } from "#runtime/workflow/conditions.js";
import { installCrd, startTestApiServer } from "../../../support/api/api-server.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { classOf, customDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  pageCrd,
  setText,
  untilText,
} from "../page-operator.js";
import type { PageOperator, PageOperatorOptions } from "../page-operator.js";

const names = { kind: "Route", plural: "routes", singular: "route", listKind: "RouteList" };
const routeCrd = {
  ...pageCrd,
  metadata: { name: "routes.example.org" },
  spec: { ...pageCrd.spec, group: "example.org", names },
};
const Route = classOf<KubernetesObject & { spec?: { text?: string } }>(customDefinition(routeCrd));
const CRD_PATH = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${routeCrd.metadata.name}`;

const probes = { healthProbeBindAddress: "127.0.0.1:0" };
// The watch of a kind that was absent for a while is tried again every 15 s.
const SLOW = { timeoutMs: 60_000 };
const INSTALLED = { timeoutMs: 30_000 };

/** A source of routes whose labels name their page. */
const routes = (activationCondition?: SourceCondition) => () => [
  informerSource({
    name: "routes",
    resource: Route,
    mapper: ({ metadata }) => [`${metadata.namespace}/${metadata.labels?.["page"] ?? ""}`],
    activationCondition,
  }),
];

const start = async (options: PageOperatorOptions) => {
  const server = await startTestApiServer({ crds: [pageCrd] });
  const page = createPageOperator(server, { operator: probes, ...options });
  const stop = async () => {
    await page[Symbol.asyncDispose]();
    await server.close();
  };
  try {
    await page.operator.start();
    return { server, page, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
};

const countRoutes = {
  desired: ({
    primary,
    context,
  }: {
    primary: KubernetesObject;
    context: { secondaries(type: object): readonly object[] };
  }) => ({
    metadata: { name: `${primary.metadata.name}-text` },
    data: { text: `${context.secondaries(Route).length} routes` },
  }),
};

const createRoute = ({ operator }: PageOperator) =>
  operator.client.create(Route, { metadata: { name: "one", namespace: "default", labels: { page: "one" } } });

const healthOf = ({ operator }: PageOperator) => operator.health().controllers["page"]!.sources;

async function readyz({ logs }: PageOperator) {
  const [, port] = /at 127\.0\.0\.1:(\d+)$/.exec(logs.findLast((line) => line.includes("serves the probes"))!)!;
  const response = await fetch(`http://127.0.0.1:${port}/readyz?verbose`);
  return { status: response.status, text: await response.text() };
}

suite("event source of a kind that is not served", (test) => {
  test(
    "reports no objects and the reason without blocking, and delivers objects once the CRD is installed",
    async () => {
      await using started = await start({
        eventSources: routes(),
        dependents: [configMapOf("text", countRoutes as object)],
      });
      const { page, server } = started;
      await createPage(page);
      await untilText(page, "0 routes");
      const {
        status,
        reason = "",
        isUnserved,
      } = await waitFor("it is known", () =>
        healthOf(page)["routes"]?.isUnserved === true ? healthOf(page)["routes"] : undefined,
      );
      assert.equal([status, isUnserved], ["unhealthy", true]);
      assert.match(reason, "the CustomResourceDefinition routes.example.org is not installed");
      const ready = await readyz(page);
      assert.is(ready.status, 200);
      assert.match(ready.text, /^\[\+\]controller\/page\/routes ok: has no objects: .*routes\.example\.org/m);
      await page.operator.stop();
      await page.operator.start();
      await setText(page, "again");
      await installCrd(server, routeCrd);
      await createRoute(page);
      await waitFor(
        "its route is seen",
        async () => {
          const { data } = (await page.operator.client.get(ConfigMap, { name: "one-text", namespace: "default" }))!;
          return data?.["text"] === "1 routes";
        },
        INSTALLED,
      );
      assert.is(page.operator.health().status, "healthy");
    },
    SLOW,
  );

  test(
    "with crdPresent is watched only while the CRD is installed",
    async () => {
      await using started = await start({
        eventSources: routes(crdPresent),
        dependents: [configMapOf("text", countRoutes as object)],
      });
      const { page, server } = started;
      await createPage(page);
      await untilText(page, "0 routes");
      assert.equal([healthOf(page)["routes"], page.operator.health().status], [{ status: "unknown" }, "healthy"]);
      assert.equal(
        page.logs.filter((line) => line.startsWith("warn")),
        [],
      );
      await installCrd(server, routeCrd);
      await waitFor("it is watched", () => healthOf(page)["routes"]?.status === "healthy", INSTALLED);
      await createRoute(page);
      await untilText(page, "1 routes");
      await apiRequestOrThrow(server, `DELETE ${CRD_PATH}`);
      await untilText(page, "0 routes");
      await waitFor("it is not watched", () => healthOf(page)["routes"]?.status === "unknown");
    },
    SLOW,
  );

  test("depends on the presence or absence of another kind", async () => {
    const configMaps = (name: string, activationCondition: SourceCondition) =>
      informerSource({
        ...{ name, resource: ConfigMap, mapper: () => [] },
        activationCondition,
      });
    await using started = await start({
      eventSources: () => [configMaps("with", crdPresent(Route)), configMaps("without", not(crdPresent(Route)))],
    });
    const { page, server } = started;
    await createPage(page);
    await untilText(page, "first");
    const statuses = () => [healthOf(page)["with"]?.status, healthOf(page)["without"]?.status];
    await waitFor("one of them runs", () => statuses().join() === "unknown,healthy");
    await installCrd(server, routeCrd);
    await waitFor("the other one runs", () => statuses().join() === "healthy,unknown");
  });
});

suite("dependent of a kind that is not served", (test) => {
  const route = (rest: object = {}) =>
    configMapOf("route", {
      resource: Route.definition,
      desired: ({ primary }) => ({ metadata: { name: `${primary.metadata.name}-route` }, spec: { text: "" } }),
      ...rest,
    });

  test(
    "fails alone, and is created once the CRD is installed",
    async () => {
      await using started = await start({ dependents: [configMapOf("text"), route()] });
      const { page, server } = started;
      await createPage(page);
      await untilText(page, "first");
      const failed = await waitFor("it fails", () => page.events.find(({ error }) => error !== undefined));
      assert.match(String(failed.error), 'dependent "route"');
      assert.is(failed.workflow?.dependents["text"]?.kind, "created");
      await installCrd(server, routeCrd);
      await waitFor(
        "it is made",
        () => page.operator.client.get(Route, { name: "one-route", namespace: "default" }),
        INSTALLED,
      );
    },
    SLOW,
  );

  test("is replaced by a fallback with not(crdPresent) until the CRD is installed", async () => {
    const other = configMapOf("other", { reconcilePrecondition: not(crdPresent(Route)) });
    await using started = await start({ dependents: [route({ activationCondition: crdPresent }), other] });
    const { page, server } = started;
    await createPage(page);
    await untilText(page, "first", "one-other");
    assert.equal(
      page.events.flatMap(({ error }) => error ?? []),
      [],
    );
    await installCrd(server, routeCrd);
    await waitFor("the route is made", () =>
      page.operator.client.get(Route, { name: "one-route", namespace: "default" }),
    );
    const ref = { name: "one-other", namespace: "default" };
    await waitFor("the other one goes", async () => (await page.operator.client.get(ConfigMap, ref)) === undefined);
  });
});
