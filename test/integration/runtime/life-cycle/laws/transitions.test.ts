// What was stated once and is stated no more goes, and what excludes it comes: also where another client set members of the same union.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { ResourceClass } from "#runtime/base/resource-definition.js";
import {
  builtinDefinition,
  classOf,
  customDefinition,
  type AnyObject,
} from "../../../../support/kinds/kind-definitions.js";
import { installCrd } from "../../../../support/api/api-server.js";
import { Page, pageCrd } from "../../page.js";
import { textController } from "./kinds.js";
import { declareLaw, type Scenario } from "./law.js";
import { scenesOf, type Scene } from "./scene.js";

const choiceCrd = {
  ...pageCrd,
  metadata: { name: "choices.example.com" },
  spec: {
    ...pageCrd.spec,
    names: { kind: "Choice", plural: "choices", singular: "choice", listKind: "ChoiceList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                properties: { a: { type: "string" }, b: { type: "string" } },
                "x-kubernetes-validations": [{ rule: "has(self.a) != has(self.b)", message: "exactly one of a and b" }],
              },
            },
          },
        },
      },
    ],
  },
} as const;

const KINDS = {
  Deployment: builtinDefinition("apps/v1", "Deployment"),
  StatefulSet: builtinDefinition("apps/v1", "StatefulSet"),
  Choice: customDefinition(choiceCrd),
};

type Json = { readonly [member: string]: unknown };

/** Two states of an object, and what another client does between them. */
interface Transition {
  readonly title: string;
  readonly kind: keyof typeof KINDS;
  readonly before: Json;
  /** A merge patch of the other client. */
  readonly others?: Json;
  readonly after: Json;
  /** What has to be at a path in the end. */
  readonly expected: { readonly path: string; readonly value: unknown };
  readonly way?: "apply" | "put";
  /** What the next version of the operator states besides. */
  readonly optionsAfter?: Json;
}

const selector = { matchLabels: { app: "one" } };
const podOf = (spec: Json = {}, container: Json = {}) => ({
  metadata: { labels: { app: "one" } },
  spec: { containers: [{ name: "app", image: "app", ...container }], ...spec },
});
const deploymentOf = (pod: Json = podOf(), rest: Json = {}) => ({ spec: { selector, template: pod, ...rest } });
const setOf = (rest: Json = {}) => ({ spec: { selector, serviceName: "one", template: podOf(), ...rest } });
// A merge patch replaces a list, so the other client states the whole container.
const container = (rest: Json) => ({
  spec: { template: { spec: { containers: [{ name: "app", image: "app", ...rest }] } } },
});
const fieldRef = { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } };
const CONTAINER = "spec.template.spec.containers.0";

const recreate = deploymentOf(podOf(), { strategy: { type: "Recreate" } });
const TRANSITIONS: readonly Transition[] = [
  {
    ...{ title: "a strategy in place of the default", kind: "Deployment", before: deploymentOf(), after: recreate },
    expected: { path: "spec.strategy", value: { type: "Recreate" } },
  },
  {
    ...{ title: "a strategy in place of the default", kind: "Deployment", before: deploymentOf(), after: recreate },
    ...{ way: "put", expected: { path: "spec.strategy", value: { type: "Recreate" } } },
  },
  {
    ...{
      title: "a strategy whose other members another client set",
      kind: "Deployment",
      before: recreate,
      after: recreate,
    },
    others: { spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 2, maxUnavailable: 0 } } } },
    expected: { path: "spec.strategy", value: { type: "Recreate" } },
  },
  {
    ...{ title: "an update strategy in place of the default", kind: "StatefulSet", before: setOf() },
    after: setOf({ updateStrategy: { type: "OnDelete" } }),
    expected: { path: "spec.updateStrategy", value: { type: "OnDelete" } },
  },
  {
    ...{ title: "valueFrom where another client set a value", kind: "Deployment", before: deploymentOf() },
    others: container({ env: [{ name: "X", value: "theirs" }] }),
    after: deploymentOf(podOf({}, { env: [{ name: "X", valueFrom: fieldRef }] })),
    expected: { path: `${CONTAINER}.env`, value: [{ name: "X", valueFrom: fieldRef }] },
  },
  {
    ...{ title: "a volume's source where another client set another one", kind: "Deployment", before: deploymentOf() },
    others: { spec: { template: { spec: { volumes: [{ name: "v", emptyDir: {} }] } } } },
    after: deploymentOf(podOf({ volumes: [{ name: "v", configMap: { name: "c", defaultMode: 420 } }] })),
    expected: {
      path: "spec.template.spec.volumes",
      value: [{ name: "v", configMap: { name: "c", defaultMode: 420 } }],
    },
  },
  {
    ...{ title: "a probe's handler where another client set another one", kind: "Deployment", before: deploymentOf() },
    others: container({ livenessProbe: { httpGet: { port: 80 } } }),
    after: deploymentOf(podOf({}, { livenessProbe: { exec: { command: ["true"] } } })),
    expected: { path: `${CONTAINER}.livenessProbe.httpGet`, value: undefined },
  },
  {
    ...{ title: "the one of a custom resource that another client swapped", kind: "Choice" },
    ...{ before: { spec: { a: "ours" } }, others: { spec: { a: null, b: "theirs" } }, after: { spec: { a: "ours" } } },
    expected: { path: "spec", value: { a: "ours" } },
  },
  ...(["apply", "put"] as const).flatMap((way): Transition[] => [
    {
      ...{ title: "a Pod without the privilege that it had", kind: "Deployment", way },
      before: deploymentOf(podOf({ hostNetwork: true })),
      after: deploymentOf(),
      expected: { path: "spec.template.spec.hostNetwork", value: undefined },
    },
    {
      ...{ title: "a Pod without the account that it had", kind: "Deployment", way },
      before: deploymentOf(podOf({ serviceAccountName: "powerful" })),
      after: deploymentOf(),
      expected: { path: "spec.template.spec.serviceAccountName", value: undefined },
    },
    {
      ...{ title: "a container that is not privileged any more", kind: "Deployment", way },
      before: deploymentOf(podOf({}, { securityContext: { privileged: true } })),
      after: deploymentOf(),
      expected: { path: `${CONTAINER}.securityContext.privileged`, value: undefined },
    },
    {
      ...{ title: "replicas that were released to an autoscaler", kind: "Deployment", way },
      ...{ before: deploymentOf(podOf(), { replicas: 3 }), after: deploymentOf() },
      // The version of the operator that hands them over states them no more.
      optionsAfter: { released: ["spec.replicas"] },
      expected: { path: "spec.replicas", value: 3 },
    },
  ]),
];

const at = (object: unknown, path: string): unknown =>
  path.split(".").reduce((value, name) => (value as Json | undefined)?.[name], object);

async function play(
  scene: Scene,
  { kind, before, others, after, expected, way = "apply", optionsAfter }: Transition,
): Promise<void> {
  const resource: ResourceClass<AnyObject> = classOf(KINDS[kind]);
  if (kind === "Choice") await installOnce(scene);
  const metadata = { name: "one", namespace: scene.namespace };
  const desired = ({ primary }: { primary: Page }) => ({
    metadata: { name: "one" },
    ...(primary.spec.text === "before" ? before : after),
  });
  const node = { name: "object", resource: KINDS[kind], dependsOn: [], desired, serverSideApply: way === "apply" };
  await scene.start(textController(scene, { dependents: [node] }));
  await scene.client.create(Page, { metadata, spec: { text: "before" } });
  await scene.until("the object is there", async () => (await scene.get(resource, "one")) !== undefined);
  await scene.quiet();
  if (others !== undefined) await scene.client.mergePatch(resource, metadata, others);
  if (optionsAfter !== undefined) await scene.stop();
  await scene.client.mergePatch(Page, metadata, { spec: { text: "after" } });
  if (optionsAfter !== undefined)
    await scene.start(textController(scene, { dependents: [{ ...node, ...optionsAfter }] }));
  const found = async () => at((await scene.get(resource, "one")) as KubernetesObject, expected.path);
  const differences = async () => {
    const [one, other] = [await found(), expected.value].map((value) => JSON.stringify(value));
    const last = scene.events.at(-1);
    if (one !== other) return [`${expected.path} is ${one}`];
    return last?.error === undefined && last?.workflow?.isReady === true ? [] : ["the page is not ready"];
  };
  await scene.until("as desired", differences);
  await scene.quiet();
  const left = await differences();
  if (scene.problems.length === 0) scene.problems.push(...left);
}

let installing: Promise<void> | undefined;
async function installOnce({ server }: Scene): Promise<void> {
  installing ??= installCrd(server, choiceCrd);
  await installing;
}

declareLaw<Transition>({
  name: "transitions",
  title: "a write that switches to",
  open: scenesOf(),
  scenarios: TRANSITIONS.map((transition, index): Scenario<Transition> => ({
    seed: index + 1,
    title: `${transition.title} succeeds (${transition.way ?? "apply"})`,
    case: transition,
  })),
  play,
});
