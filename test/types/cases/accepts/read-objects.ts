import {
  asStored,
  createResource,
  patchResource,
  patchResourceAndStatus,
  updateStatus,
  untypedResource,
  type ApiClient,
  type DependentMatcher,
  type Draft,
  type ResourceOperations,
  type UntypedResource,
  type Unstored,
} from "@gen-operator/runtime";
import { Namespace, Pod, type PodInput, type PodSpec } from "@gen-operator/kinds/core/v1";
import {
  Deployment,
  WebPage,
  type ConfigMapInput,
  type DeploymentInput,
  type IngressInput,
} from "../../../../fixtures/samples/webpage/src/generated/index.js";
import { Fleet } from "../../../../fixtures/samples/bulk/src/generated/index.js";
import type {
  DeploymentDesired,
  WebPageReconciler,
} from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

const Widget = untypedResource({
  apiVersion: "x.example.com/v1",
  kind: "Widget",
  plural: "widgets",
  scope: "Namespaced",
});

// The API server sets these for each object that it stores; a generation has each custom one.
export function identityOf({ metadata }: WebPage): readonly (string | number)[] {
  const generation: number = metadata.generation;
  return [metadata.uid.length, metadata.resourceVersion.length, metadata.creationTimestamp.length, generation];
}
export const startOf = ({ metadata }: Pod | Namespace): number => Date.parse(metadata.creationTimestamp);
export const generationOf = ({ metadata }: Deployment): number | undefined => metadata.generation;

// What is read is desired as it is, with its lists and maps.
export const desired: DeploymentDesired = ({ primary, secondary: { configMap, deployment } }): DeploymentInput => ({
  metadata: { ...configMap.metadata, finalizers: primary.metadata.finalizers },
  spec: {
    selector: { matchLabels: configMap.metadata.labels },
    template: {
      metadata: { labels: configMap.metadata.labels, ownerReferences: configMap.metadata.ownerReferences },
      spec: { containers: deployment?.spec?.template.spec?.containers ?? [] },
    },
  },
});
export const copyOf = (pod: Pod): PodInput => pod;
export const dataOf = (config: ConfigMapInput, page: WebPage): ConfigMapInput => ({
  metadata: { name: "x", labels: page.metadata.labels },
  data: config.data,
});
export const rulesOf = ({ spec, metadata }: IngressInput): IngressInput => ({ metadata, spec: { rules: spec?.rules } });

// Controls, calls of the client and operations take it, too.
export const reconciler: WebPageReconciler = {
  reconcile: ({ primary }) =>
    primary.spec.exposed
      ? updateStatus({ ...primary.status, conditions: primary.status?.conditions })
      : patchResourceAndStatus({ metadata: primary.metadata }, { conditions: primary.status?.conditions }),
  cleanup: ({ primary }) => void patchResource({ metadata: { finalizers: primary.metadata.finalizers } }),
};

export async function write(client: ApiClient, pod: Pod, fleet: Fleet): Promise<void> {
  await client.create(Pod, pod);
  await client.create(Pod, { metadata: { generateName: "x-", namespace: "x" }, spec: pod.spec });
  await client.update(Pod, pod);
  await client.update(Fleet, { metadata: { name: "x", namespace: "x" }, spec: fleet.spec });
  await client.apply(Pod, { metadata: pod.metadata, spec: pod.spec! }, { fieldManager: "me" });
  await client.mergePatch(Fleet, fleet.metadata, { spec: { members: fleet.spec.members } });
  const value = fleet.spec.members;
  await client.jsonPatch(Fleet, fleet.metadata, { operations: [{ op: "replace", path: "/spec/members", value }] });
}

export async function operate(resources: ResourceOperations, fleet: Fleet): Promise<void> {
  const fleets = resources.of(Fleet);
  await fleets.apply({ metadata: fleet.metadata, spec: fleet.spec });
  await fleets.update({ ...fleet, spec: { ...fleet.spec, members: [...fleet.spec.members].reverse() } });
  await fleets.mergePatch({ metadata: fleet.metadata, spec: { members: fleet.spec.members } });
  // A draft is a copy that may be changed.
  await fleets.jsonPatch(fleet, (draft) => {
    draft.spec.members.push(...fleet.spec.members);
    draft.metadata.labels = { ...draft.metadata.labels, a: "b" };
  });
  await fleets.jsonPatch(fleet, ({ spec, ...draft }) => ({ ...draft, spec: { ...spec, image: "" } }));
  await resources.patchWithConflictRetry(fleet, { change: (draft) => void (draft.spec.image = "") });
}

// A copy of the user's own.
export function draftOf(pod: Pod): PodSpec | undefined {
  const draft = structuredClone(pod) as Draft<Pod>;
  draft.spec?.containers.push({ name: "second" });
  const changed: Pod = draft;
  return changed.spec;
}

// What is desired is not stored.
export const matcher: DependentMatcher<WebPage> = (desired, live) =>
  live.metadata.uid.length > 0 && desired.metadata.uid === undefined && desired.spec.html === live.spec.html;

// What a class makes or parses is written, and a test makes it what would be read.
export const created: Unstored<WebPage> = WebPage.create({
  metadata: { name: "x", namespace: "x" },
  spec: { html: "x" },
});
export const parsed: Unstored<Pod> = Pod.parse({}, { namespace: "x" });
export const uid: string | undefined = created.metadata.uid;
export const place: string = parsed.metadata.namespace;
export const unplaced: undefined = Namespace.create({ metadata: { name: "x" } }).metadata.namespace;
export const replicas: number = created.spec.replicas;
export const stored: WebPage = asStored(WebPage, created);
export const storedPod: Pod = asStored(Pod, parsed);
export const storedInput: WebPage = {
  ...asStored(WebPage, { metadata: { name: "x", namespace: "x" }, spec: { html: "x" } }),
  status: { ready: true },
};
export const storedWidget: UntypedResource = asStored(Widget, { metadata: { name: "x" }, spec: {} });
export const pod: Unstored<Pod> = createResource(Pod.definition, { metadata: { name: "x" } });
export const again: WebPage = asStored(WebPage, stored);

export async function store(client: ApiClient): Promise<WebPage> {
  await client.create(Pod, parsed);
  await client.create(Widget, Widget.create({ metadata: { name: "x" }, spec: {} }));
  await client.update(WebPage, created);
  return client.create(WebPage, created);
}
