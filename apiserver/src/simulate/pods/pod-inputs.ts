// Secrets and ConfigMaps without which the kubelet does not start a Pod.
import { isNotFound } from "../feed/api-client.js";
import type { ControllerContext } from "../feed/controller.js";
import type { KubernetesObject } from "../feed/kubernetes-object.js";
import { ROOT_CA } from "../namespace-contents.js";
import type { Container, KeySelector, Pod, ProjectedSource, Volume } from "./pod.js";

/** Inputs that prevent the start of a Pod. */
export interface MissingInputs {
  /** Messages of failed volume mounts. */
  mounts: string[];
  /** Messages of containers whose environment cannot be created, by container name. */
  containers: ReadonlyMap<string, string>;
}

type InputKind = "secret" | "configmap";

interface Input extends KubernetesObject {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
}

const KINDS: Record<InputKind, { plural: string; kind: string; keys: string }> = {
  secret: { plural: "secrets", kind: "Secret", keys: "secret key" },
  configmap: { plural: "configmaps", kind: "ConfigMap", keys: "config key" },
};

type Reader = Pick<ControllerContext, "ca" | "client" | "cluster">;

/** Returns missing inputs with the messages of the kubelet. Objects that are not cached are read from the server, as most Pods need none. */
export async function findMissingInputs(pod: Pod, reader: Reader): Promise<MissingInputs> {
  const inputs = new Inputs(reader, pod.metadata.namespace ?? "");
  const mounts: string[] = [];
  for (const volume of pod.spec.volumes ?? []) {
    const problem = await volumeProblem(volume, inputs);
    if (problem !== undefined) mounts.push(`MountVolume.SetUp failed for volume "${volume.name}" : ${problem}`);
  }
  const containers = new Map<string, string>();
  for (const container of [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])]) {
    const problem = await environmentProblem(container, inputs);
    if (problem !== undefined) containers.set(container.name, problem);
  }
  return { mounts, containers };
}

/** Reads each object once per check. */
class Inputs {
  readonly #reader: Reader;
  readonly namespace: string;
  readonly #known = new Map<string, Promise<Input | undefined>>();

  constructor(reader: Reader, namespace: string) {
    this.#reader = reader;
    this.namespace = namespace;
  }

  get(kind: InputKind, name: string): Promise<Input | undefined> {
    // A server without TLS has no CA, but every token volume refers to the ConfigMap.
    const isAuthority = kind === "configmap" && name === ROOT_CA && this.#reader.ca === undefined;
    if (isAuthority) return Promise.resolve({ data: { "ca.crt": "" } } as unknown as Input);
    const { plural } = KINDS[kind];
    const cached = this.#reader.cluster.get<Input>(`${plural}.`, `${this.namespace}/${name}`);
    if (cached !== undefined) return Promise.resolve(cached);
    const path = `/api/v1/namespaces/${this.namespace}/${plural}/${encodeURIComponent(name)}`;
    const known = this.#known.get(path) ?? this.#read(path);
    this.#known.set(path, known);
    return known;
  }

  async #read(path: string): Promise<Input | undefined> {
    try {
      return await this.#reader.client.request<Input>({ method: "GET", path });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

interface Source {
  kind: InputKind;
  name: string;
  isOptional: boolean;
  keys: string[];
}

async function volumeProblem(volume: Volume, inputs: Inputs): Promise<string | undefined> {
  const { secret, configMap, projected } = volume;
  if (secret !== undefined) return sourceProblem(sourceOf("secret", { ...secret, name: secret.secretName }), inputs);
  if (configMap !== undefined) return sourceProblem(sourceOf("configmap", configMap), inputs);
  const problems: string[] = [];
  for (const source of projected?.sources ?? []) {
    const problem = await projectedProblem(source, inputs);
    if (problem !== undefined) problems.push(problem);
  }
  return problems.length > 1 ? `[${problems.join(", ")}]` : problems[0];
}

async function projectedProblem({ secret, configMap }: ProjectedSource, inputs: Inputs): Promise<string | undefined> {
  if (secret !== undefined) return sourceProblem(sourceOf("secret", secret), inputs);
  return configMap === undefined ? undefined : sourceProblem(sourceOf("configmap", configMap), inputs);
}

function sourceOf(
  kind: InputKind,
  {
    name = "",
    optional = false,
    items = [],
  }: { name?: string | undefined; optional?: boolean; items?: { key: string }[] },
): Source {
  return { kind, name, isOptional: optional, keys: items.map(({ key }) => key) };
}

async function sourceProblem({ kind, name, isOptional, keys }: Source, inputs: Inputs): Promise<string | undefined> {
  if (isOptional) return undefined;
  const input = await inputs.get(kind, name);
  if (input === undefined) return `${kind} "${name}" not found`;
  const missing = keys.find((key) => !(key in (input.data ?? {})) && !(key in (input.binaryData ?? {})));
  return missing === undefined ? undefined : `references non-existent ${KINDS[kind].keys}: ${missing}`;
}

async function environmentProblem({ env = [], envFrom = [] }: Container, inputs: Inputs): Promise<string | undefined> {
  for (const { secretRef, configMapRef } of envFrom) {
    const reference = secretRef ?? configMapRef;
    const kind = secretRef === undefined ? "configmap" : "secret";
    if (reference === undefined || reference.optional === true) continue;
    const { name = "" } = reference;
    if ((await inputs.get(kind, name)) === undefined) return `${kind} "${name}" not found`;
  }
  for (const { valueFrom } of env) {
    const { secretKeyRef, configMapKeyRef } = valueFrom ?? {};
    const problem = await keyProblem(secretKeyRef ?? configMapKeyRef, {
      kind: secretKeyRef === undefined ? "configmap" : "secret",
      inputs,
    });
    if (problem !== undefined) return problem;
  }
  return undefined;
}

async function keyProblem(
  reference: KeySelector | undefined,
  { kind, inputs }: { kind: InputKind; inputs: Inputs },
): Promise<string | undefined> {
  if (reference === undefined || reference.optional === true) return undefined;
  const { name = "", key } = reference;
  const input = await inputs.get(kind, name);
  if (input === undefined) return `${kind} "${name}" not found`;
  if (key in (input.data ?? {})) return undefined;
  return `couldn't find key ${key} in ${KINDS[kind].kind} ${inputs.namespace}/${name}`;
}
