import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow, type ApiObject, type Connection } from "../support/api/api-request.js";
import { assert } from "../support/suite.js";
import { startFlags } from "../support/projects/start-flags.js";
import { startCommand } from "../support/machine/started-program.js";

const PAGES = "POST /apis/example.com/v1/namespaces/default/webpages";
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const WAIT = { timeoutMs: 40_000 };
const page = { apiVersion: "example.com/v1", kind: "WebPage", metadata: { name: "home" }, spec: { html: "x" } };

/** A project of WebPages as `init` makes it, and an API server that has their CRD. */
export interface ProjectOnServer {
  readonly folder: string;
  readonly server: Connection;
  readonly kubeconfig: string;
  /** The `node` that the operator runs on. */
  readonly node: string;
  generate(): Promise<void>;
  compile(): Promise<void>;
}

/** Runs an operator; renames its dependent by `moved`, and runs it again on the same API server: the object has to be the same one. */
export async function keepMovedObject(project: ProjectOnServer): Promise<void> {
  const { folder, server, kubeconfig, node, generate, compile } = project;
  const env = { ...process.env, KUBECONFIG: kubeconfig };
  const start = () => startCommand(folder, [node, ...startFlags, "dist/src/main.js"], env);
  const configMap = async () => (await apiRequest<ApiObject>(server, `GET ${CONFIG_MAPS}/home`)).body;
  const dependentOf = ({ metadata }: ApiObject) => metadata?.annotations?.["gen-operator.dev/dependent"];

  await compile();
  await using first = start();
  await apiRequestOrThrow(server, PAGES, { body: page });
  await waitFor("the config map", async () => dependentOf(await configMap()) === "configMap", WAIT);
  const before = await configMap();
  first.stop();
  assert.is(await first.ended, 0, first.output());

  const workflow = join(folder, "workflow.yaml");
  const text = (await readFile(workflow, "utf8")).replace("    configMap:", "    page:");
  await writeFile(workflow, `${text}  moved:\n    - { from: configMap, to: page }\n`);
  await generate();
  assert.match(await readFile(join(folder, "src/webpage/dependents/page.ts"), "utf8"), "PageDesired");
  await compile();
  await using second = start();
  await waitFor("the config map under its new name", async () => dependentOf(await configMap()) === "page", WAIT);
  assert.is((await configMap()).metadata.uid, before.metadata.uid);
  const { body } = await apiRequest<{ items: ApiObject[] }>(server, `GET ${CONFIG_MAPS}`);
  const own = body.items.filter((each) => dependentOf(each) !== undefined);
  assert.equal(
    own.map(({ metadata }) => metadata.name),
    ["home"],
  );
  second.stop();
  assert.is(await second.ended, 0, second.output());
}
