import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { ApiClient, ResourceDefinition } from "@gen-operator/runtime";
import { exactJson } from "@gen-operator/schema";
import { CUSTOM_RESOURCE_DEFINITION, openCluster } from "../read/cluster.js";
import { exactObjectOf } from "../read/crd/crd-schema.js";
import type { Crd } from "../read/crd/read-crds.js";
import { readBuiltinKinds } from "../read/kinds.js";
import { isDirectory, readProjectFile } from "../read/project-files.js";
import { parseYaml } from "../read/yaml/parse-yaml.js";
import { isRecord } from "../read/yaml/values.js";
import { DevError, type EmbeddedServer, type ProjectPackages } from "./project-packages.js";

/** Options of {@link DevCluster.open}. */
export interface DevClusterOptions {
  readonly packages: ProjectPackages;
  /** Kubeconfig of an existing cluster. Default: an API server in this process */
  readonly kubeconfig?: string;
  /** File for the kubeconfig of the embedded API server. */
  readonly kubeconfigFile: string;
}

const FIELD_MANAGER = "gen-operator-dev";
const SERVED_TIMEOUT_MS = 10_000;
const POLL_MS = 20;

/** The API server of a session. It keeps running while the operator is restarted. */
export class DevCluster implements AsyncDisposable {
  readonly kubeconfig: string;
  readonly isEmbedded: boolean;
  readonly address: string;
  readonly #client: ApiClient;
  readonly #server: EmbeddedServer | undefined;
  /** Applied CRDs and objects as JSON, by name, so that unchanged files are not applied again. */
  readonly #applied = new Map<string, string>();

  private constructor(parts: { kubeconfig: string; address: string; client: ApiClient; server?: EmbeddedServer }) {
    this.kubeconfig = parts.kubeconfig;
    this.address = parts.address;
    this.#client = parts.client;
    this.#server = parts.server;
    this.isEmbedded = parts.server !== undefined;
  }

  /** Starts an API server, or connects to the cluster of a kubeconfig. */
  static async open({ packages, kubeconfig, kubeconfigFile }: DevClusterOptions): Promise<DevCluster> {
    const connect = (file: string) =>
      openCluster({ kubeconfig: file }, packages.runtime).catch((error: Error) => {
        throw new DevError(error.message, { cause: error });
      });
    if (kubeconfig !== undefined) {
      const client = await connect(kubeconfig);
      return new DevCluster({ kubeconfig, address: client.connection.server, client });
    }
    const { startApiServer } = await packages.loadApiServer();
    const server = await startApiServer({ simulate: true });
    try {
      await server.writeKubeconfig(kubeconfigFile);
      const client = await connect(kubeconfigFile);
      return new DevCluster({ kubeconfig: kubeconfigFile, address: server.url, client, server });
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  /** Writes the kubeconfig of the embedded API server again if it was deleted. */
  async restoreKubeconfig(): Promise<void> {
    if (!existsSync(this.kubeconfig)) await this.#server?.writeKubeconfig(this.kubeconfig);
  }

  /** Applies new and changed CRDs, and waits until their versions are served. Returns the names of the applied CRDs. */
  async applyCrds(crds: readonly Crd[]): Promise<string[]> {
    const applied: string[] = [];
    for (const crd of crds) {
      const name = `${crd.plural}.${crd.group}`;
      const text = exactJson(crd.document);
      if (this.#applied.get(name) === text) continue;
      const object = { ...crd.document, metadata: metadataOf(crd.document, name) };
      await this.#client.apply({ definition: CUSTOM_RESOURCE_DEFINITION }, object, {
        fieldManager: FIELD_MANAGER,
        force: true,
      });
      const deadline = performance.now() + SERVED_TIMEOUT_MS;
      for (const definition of crd.versions
        .filter(({ isServed }) => isServed)
        .map(({ name }) => definitionOf(crd, name)))
        while (!(await this.#client.isServed(definition))) {
          if (performance.now() > deadline) throw new Error(`${name} is not served after ${SERVED_TIMEOUT_MS} ms`);
          await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        }
      this.#applied.set(name, text);
      applied.push(name);
    }
    return applied;
  }

  /** Applies new and changed objects below `examples`. Returns their names, and the problems of objects that could not be applied. */
  async applyExamples(project: string, crds: readonly Crd[]): Promise<{ applied: string[]; problems: string[] }> {
    const applied: string[] = [];
    const problems: string[] = [];
    for (const { file, object } of await readExamples(project, problems)) {
      const { apiVersion, kind, metadata } = object;
      const definition = await findKind(String(apiVersion), String(kind), crds);
      const { name, namespace } = isRecord(metadata) ? metadata : {};
      if (definition === undefined || typeof name !== "string") {
        problems.push(
          `${file}: ${definition === undefined ? `kind ${apiVersion} ${kind} not found` : "metadata.name is required"}`,
        );
        continue;
      }
      const isNamespaced = definition.scope === "Namespaced";
      const ref = {
        name,
        ...(isNamespaced ? { namespace: typeof namespace === "string" ? namespace : "default" } : {}),
      };
      const key = `${kind} ${ref.namespace === undefined ? "" : `${ref.namespace}/`}${name}`;
      const text = exactJson(object);
      if (this.#applied.get(key) === text) continue;
      try {
        const body = { ...object, metadata: { ...(metadata as object), ...ref } };
        await this.#client.apply({ definition }, body, { fieldManager: FIELD_MANAGER, force: true });
        this.#applied.set(key, text);
        applied.push(key);
      } catch (error) {
        problems.push(`${file}: ${(error as Error).message}`);
      }
    }
    return { applied, problems };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close();
    await this.#server?.close();
  }
}

interface Example {
  readonly file: string;
  readonly object: { readonly [field: string]: unknown };
}

async function readExamples(project: string, problems: string[]): Promise<Example[]> {
  const folder = join(project, "examples");
  if (!(await isDirectory(folder))) return [];
  const names = (await readdir(folder)).filter((name) => /\.(?:yaml|yml|json)$/.test(name)).sort();
  const examples: Example[] = [];
  for (const file of names.map((name) => `examples/${name}`)) {
    const read = await readProjectFile(project, file);
    if ("rule" in read) problems.push(read.message);
    else {
      const { documents, diagnostics } = parseYaml(file, read.text);
      for (const { message, position } of diagnostics) problems.push(`${file}:${position?.line ?? 1}: ${message}`);
      for (const document of documents)
        if (isRecord(document.value)) examples.push({ file, object: exactObjectOf(document, document.value) });
    }
  }
  return examples;
}

async function findKind(
  apiVersion: string,
  kind: string,
  crds: readonly Crd[],
): Promise<ResourceDefinition | undefined> {
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  const crd = crds.find((each) => each.group === group && each.kind === kind);
  if (crd !== undefined) return definitionOf(crd, version ?? "");
  const { kinds } = await readBuiltinKinds();
  const found = kinds.find((each) => each.group === group && each.version === version && each.kind === kind);
  return found && { ...found, apiVersion, isCustom: false, schema: {} };
}

function definitionOf({ group, kind, plural, scope }: Crd, version: string): ResourceDefinition {
  const apiVersion = `${group}/${version}`;
  return { group, version, apiVersion, kind, plural, scope, hasStatusSubresource: true, isCustom: true, schema: {} };
}

// Drops metadata that a cluster has set on a copied CRD, which cannot be applied.
function metadataOf(document: object, name: string): { name: string } {
  const { labels, annotations } = (document as { metadata?: { labels?: object; annotations?: object } }).metadata ?? {};
  return { name, ...(labels && { labels }), ...(annotations && { annotations }) };
}
