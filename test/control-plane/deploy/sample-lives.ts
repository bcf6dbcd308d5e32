// All that the samples do, for an operator that runs already: what is made, changed, and what goes again.
import type { KubernetesObject, ResourceClass } from "@gen-operator/runtime";
import { Fleet } from "#bulk/generated/index.js";
import { Console } from "#external/service/console.js";
import { Tenant, Zone } from "#external/src/generated/index.js";
import { MySQLSchema, Secret } from "#mysql-schema/generated/index.js";
import { Pod, PodWatch } from "#podwatch/generated/index.js";
import type { ApiClient } from "#runtime/client/api-client.js";
import { Preview, Site } from "#standalone/generated/index.js";
import { Tomcat, Webapp } from "#tomcat/generated/index.js";
import { Deployment, Ingress, WebPage } from "#webpage/generated/index.js";
import { untilNoObject, untilObject } from "../../support/runtime/clients.js";
import { builtinDefinition, classOf } from "../../support/kinds/kind-definitions.js";
import { problemWithMariaDb, startMariaDb } from "../../support/machine/mariadb.js";
import { isConditionTrue } from "../../integration/sample/conditions.js";

const Namespace = classOf(builtinDefinition("v1", "Namespace"));
const PATIENCE = { timeoutMs: 90_000 };
const namespace = "default";

/** A part of the world that a sample needs besides the API server. */
export interface Surroundings extends AsyncDisposable {
  readonly environment: { readonly [name: string]: string };
}

/** One sample. */
export interface SampleLife {
  readonly name: string;
  /** Why it cannot run here. */
  readonly problem?: string | undefined;
  /** Starts what it needs; nothing if absent. */
  surround?(client: ApiClient): Promise<Surroundings>;
  /** Makes its primaries, and waits until they are as they should be. */
  begin(client: ApiClient): Promise<void>;
  /** Changes them so that something goes and something is written, and waits for it. */
  change(client: ApiClient): Promise<void>;
  /** The primaries. */
  readonly primaries: readonly { readonly kind: ResourceClass<KubernetesObject>; readonly name: string }[];
}

const until = <R extends KubernetesObject>(
  client: ApiClient,
  object: { readonly kind: ResourceClass<R>; readonly name: string },
  holds: (object: R) => unknown,
) => untilObject({ client, ...object, namespace, ...PATIENCE }, holds);

/** Waits until an object is gone. */
export const untilGone = (client: ApiClient, object: SampleLife["primaries"][number]) =>
  untilNoObject({ client, ...object, namespace, ...PATIENCE });

const metadata = (name: string, labels?: { [name: string]: string }) => ({
  name,
  namespace,
  ...(labels && { labels }),
});
const patched = (client: ApiClient, kind: ResourceClass<KubernetesObject>, name: string) => (patch: object) =>
  client.mergePatch(kind, { name, namespace }, patch);

/** Every sample. */
export const SAMPLE_LIVES: readonly SampleLife[] = [
  {
    name: "webpage",
    primaries: [{ kind: WebPage, name: "page" }],
    async begin(client) {
      const spec = { html: "<h1>hello</h1>", host: "page.example.com", exposed: true };
      await client.create(WebPage, WebPage.create({ metadata: metadata("page"), spec }));
      await until(client, { kind: WebPage, name: "page" }, ({ status }) => status?.ready);
    },
    async change(client) {
      await patched(client, WebPage, "page")({ spec: { exposed: false, html: "<h1>bye</h1>" } });
      await untilGone(client, { kind: Ingress, name: "page" });
      await client.delete(Deployment, metadata("page"));
      await until(client, { kind: Deployment, name: "page" }, () => true);
    },
  },
  {
    name: "podwatch",
    primaries: [{ kind: PodWatch, name: "watch" }],
    async begin(client) {
      await client.create(PodWatch, PodWatch.create({ metadata: metadata("watch"), spec: { mode: "active" } }));
      await until(client, { kind: PodWatch, name: "watch" }, ({ status }) => status?.running === 0);
    },
    async change(client) {
      const labels = { "example.com/watched-by": "watch" };
      const spec = { restartPolicy: "Always", containers: [{ name: "main", image: "example.com/app:1" }] } as const;
      await client.create(
        Pod,
        Pod.create({ metadata: metadata("pod", labels), spec: { ...spec, containers: [...spec.containers] } }),
      );
      const operations = [{ op: "add" as const, path: "/status/phase", value: "Running" }];
      await client.jsonPatch(Pod, metadata("pod"), { subresource: "status", operations });
      await until(client, { kind: PodWatch, name: "watch" }, ({ status }) => status?.running === 1);
    },
  },
  {
    name: "tomcat",
    primaries: [
      { kind: Webapp, name: "shop" },
      { kind: Tomcat, name: "main" },
    ],
    async begin(client) {
      await client.create(Tomcat, Tomcat.create({ metadata: metadata("main"), spec: { version: "11.0" } }));
      const spec = { tomcat: "main", contextPath: "shop", url: "https://archives.example.com/shop.war" };
      await client.create(Webapp, Webapp.create({ metadata: metadata("shop"), spec }));
      await until(client, { kind: Webapp, name: "shop" }, (webapp) => isConditionTrue(webapp) && webapp.status?.url);
    },
    async change(client) {
      await patched(client, Tomcat, "main")({ spec: { replicas: 2 } });
      await until(client, { kind: Tomcat, name: "main" }, ({ status }) => status?.readyReplicas === 2);
    },
  },
  {
    name: "mysql-schema",
    problem: problemWithMariaDb(),
    primaries: [{ kind: MySQLSchema, name: "shop" }],
    async surround(client) {
      const server = await startMariaDb();
      const login = { username: "operator", password: "first" };
      await server.query("CREATE USER ?@'%' IDENTIFIED BY ?", [login.username, login.password]);
      await server.query("GRANT ALL ON *.* TO ?@'%' WITH GRANT OPTION", [login.username]);
      await client.create(Namespace, { metadata: { name: "mysql-operator" } });
      const stringData = { host: server.host, port: String(server.port), ...login };
      const ref = { name: "mysql-administrator", namespace: "mysql-operator" };
      await client.create(Secret, Secret.create({ metadata: ref, stringData }));
      return { environment: {}, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
    },
    async begin(client) {
      await client.create(
        MySQLSchema,
        MySQLSchema.create({ metadata: metadata("shop"), spec: { encoding: "utf8mb4" } }),
      );
      await until(client, { kind: MySQLSchema, name: "shop" }, ({ status }) => status?.status === "CREATED");
    },
    async change(client) {
      await client.delete(Secret, metadata("shop-secret"));
      await until(client, { kind: Secret, name: "shop-secret" }, () => true);
    },
  },
  {
    name: "bulk",
    primaries: [{ kind: Fleet, name: "main" }],
    async begin(client) {
      const spec = { image: "nginx:1.29", members: [{ name: "a" }, { name: "b" }] };
      await client.create(Fleet, Fleet.create({ metadata: metadata("main"), spec }));
      await until(client, { kind: Fleet, name: "main" }, ({ status }) => status?.readyCount === 2);
    },
    async change(client) {
      await patched(client, Fleet, "main")({ spec: { members: [{ name: "a" }] } });
      await untilGone(client, { kind: Deployment, name: "main-b" });
    },
  },
  {
    name: "external",
    primaries: [
      { kind: Tenant, name: "one" },
      { kind: Zone, name: "home" },
    ],
    async surround() {
      const console = await new Console().start();
      return { environment: { CONSOLE_URL: console.url }, [Symbol.asyncDispose]: () => console.stop() };
    },
    async begin(client) {
      const users = { ann: "admin", bob: "reader" };
      await client.create(Tenant, Tenant.create({ metadata: metadata("one"), spec: { plan: "free", users } }));
      const spec = { domain: "home.example.com", hasReplica: true, records: { www: "10.0.0.1" } };
      await client.create(Zone, Zone.create({ metadata: metadata("home"), spec }));
      await until(client, { kind: Tenant, name: "one" }, ({ status }) => status?.users === 2);
      await until(client, { kind: Zone, name: "home" }, ({ status }) => status?.servers?.length === 2);
    },
    async change(client) {
      await patched(client, Tenant, "one")({ spec: { plan: "team", users: { ann: null } } });
      await until(client, { kind: Tenant, name: "one" }, ({ status }) => status?.users === 1);
    },
  },
  {
    name: "standalone",
    primaries: [
      { kind: Site, name: "site" },
      { kind: Preview, name: "preview" },
    ],
    async begin(client) {
      await client.create(Site, Site.create({ metadata: metadata("site"), spec: { html: "<h1>hello</h1>" } }));
      const spec = { image: "nginx:1.29", settings: { A: "1" } };
      await client.create(Preview, Preview.create({ metadata: metadata("preview"), spec }));
      await until(client, { kind: Site, name: "site" }, ({ status }) => status?.phase === "Ready");
      await until(client, { kind: Preview, name: "preview" }, ({ status }) => status?.state === "Awake");
    },
    async change(client) {
      await patched(client, Preview, "preview")({ spec: { awake: false } });
      await until(client, { kind: Preview, name: "preview" }, ({ status }) => status?.state === "Asleep");
    },
  },
];
