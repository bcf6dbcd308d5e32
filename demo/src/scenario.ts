import { waitFor } from "@gen-operator/apiserver";
import type { ApiClient, KubernetesObject, ResourceClass } from "@gen-operator/runtime";
import { kindOf, type OperatorModule } from "./demo-project.js";
import type { LiveTable } from "#generator/dev/live-table.js";

interface Page extends KubernetesObject {
  spec: { html: string; exposed?: boolean; host?: string };
  status?: { ready?: boolean; url?: string; observedGeneration?: number };
}

interface ConfigMap extends KubernetesObject {
  data?: { [key: string]: string };
}

/** Everything that the scenario needs. */
export interface ScenarioOptions {
  readonly operator: OperatorModule;
  readonly client: ApiClient;
  readonly namespace: string;
  readonly table: LiveTable;
  /** How long each step may take. */
  readonly timeoutMs: number;
}

const DEPENDENTS = ["ConfigMap", "Deployment", "Service", "Ingress"];

/** What people do with two pages in their life; throws if anything does not converge. */
export async function playScenario({ operator, client, namespace, table, timeoutMs }: ScenarioOptions): Promise<void> {
  const WebPage = kindOf<Page>(operator, "WebPage") as ResourceClass<Page, Pick<Page, "metadata" | "spec">>;
  const ConfigMap = kindOf<ConfigMap>(operator, "ConfigMap");
  const ref = (name: string) => ({ name, namespace });
  const until = (what: string, check: () => Promise<unknown>) => waitFor(what, check, { timeoutMs });
  const isReady = (name: string) => async () => {
    const page = await client.get(WebPage, ref(name));
    return page?.status?.ready === true && page.status.observedGeneration === page.metadata.generation;
  };
  const create = (name: string, spec: Page["spec"]) =>
    client.create(WebPage, WebPage.create({ metadata: ref(name), spec }));

  table.step("Create two web pages, one of them exposed");
  await create("hello", { html: "<h1>hello</h1>", exposed: true, host: "hello.example.com" });
  await create("world", { html: "<h1>world</h1>" });
  await until('web page "hello" is ready', isReady("hello"));
  await until('web page "world" is ready', isReady("world"));
  table.note(`hello is served at ${(await client.get(WebPage, ref("hello")))?.status?.url}`);

  table.step("Change the document of hello");
  await client.mergePatch(WebPage, ref("hello"), { spec: { html: "<h1>hello again</h1>" } });
  await until('the ConfigMap of "hello" holds the new document', async () => {
    const { data = {} } = (await client.get(ConfigMap, ref("hello"))) ?? {};
    return Object.values(data).includes("<h1>hello again</h1>");
  });
  await until('web page "hello" is ready again', isReady("hello"));

  table.step("Break the Service of world by hand");
  const Service = kindOf(operator, "Service");
  const before = await client.get(Service, ref("world"));
  await client.delete(Service, ref("world"));
  await until('the Service of "world" is repaired', async () => {
    const after = await client.get(Service, ref("world"));
    return after !== undefined && after.metadata.uid !== before?.metadata.uid;
  });

  table.step("Expose hello no longer");
  await client.mergePatch(WebPage, ref("hello"), { spec: { exposed: false } });
  await until(
    'the Ingress of "hello" is gone',
    async () => (await client.get(kindOf(operator, "Ingress"), ref("hello"))) === undefined,
  );
  await until('web page "hello" is ready without its Ingress', isReady("hello"));

  table.step("Delete both");
  for (const name of ["hello", "world"]) await client.delete(WebPage, ref(name), { propagationPolicy: "Background" });
  for (const name of ["hello", "world"]) {
    for (const kind of ["WebPage", ...DEPENDENTS]) {
      const what = `the ${kind} of "${name}" is gone`;
      await until(what, async () => (await client.get(kindOf(operator, kind), ref(name))) === undefined);
    }
    table.remove(name);
  }
  const left = await Promise.all(
    ["WebPage", ...DEPENDENTS].map((kind) => client.list(kindOf(operator, kind), { namespace })),
  );
  // Every namespace of a real cluster has a ConfigMap of its own.
  const names = left
    .flat()
    .flatMap(({ kind, metadata }) => (metadata.name === "kube-root-ca.crt" ? [] : [`${kind} ${metadata.name}`]));
  if (names.length > 0) throw new Error(`something is left: ${names.join(", ")}`);
  table.note("nothing is left");
}
