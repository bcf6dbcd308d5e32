// What was stated once and is stated no more goes, and what excludes it comes: also where another client set members of the same union.
import { isDeepStrictEqual } from "node:util";
import type { KubernetesObject, ResourceClass } from "#runtime/base/kubernetes-object.js";
import {
  builtinDefinition,
  classOf,
  customDefinition,
  type AnyObject,
} from "../../../../support/kinds/kind-definitions.js";
import { installCrd } from "../../../../support/api/api-server.js";
import fc from "../../../../support/fast-check.js";
import { Page, pageCrd } from "../../page.js";
import { textController } from "./kinds.js";
import { declareLaw, isBroken, type Scenario } from "./law.js";
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
    ...{
      title: "strategy Recreate instead of the default",
      kind: "Deployment",
      before: deploymentOf(),
      after: recreate,
    },
    expected: { path: "spec.strategy", value: { type: "Recreate" } },
  },
  {
    ...{
      title: "strategy Recreate instead of the default",
      kind: "Deployment",
      before: deploymentOf(),
      after: recreate,
    },
    ...{ way: "put", expected: { path: "spec.strategy", value: { type: "Recreate" } } },
  },
  {
    ...{
      title: "strategy Recreate after another client set rollingUpdate",
      kind: "Deployment",
      before: recreate,
      after: recreate,
    },
    others: { spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 2, maxUnavailable: 0 } } } },
    expected: { path: "spec.strategy", value: { type: "Recreate" } },
  },
  {
    ...{ title: "updateStrategy OnDelete instead of the default", kind: "StatefulSet", before: setOf() },
    after: setOf({ updateStrategy: { type: "OnDelete" } }),
    expected: { path: "spec.updateStrategy", value: { type: "OnDelete" } },
  },
  {
    ...{ title: "valueFrom after another client set value", kind: "Deployment", before: deploymentOf() },
    others: container({ env: [{ name: "X", value: "theirs" }] }),
    after: deploymentOf(podOf({}, { env: [{ name: "X", valueFrom: fieldRef }] })),
    expected: { path: `${CONTAINER}.env`, value: [{ name: "X", valueFrom: fieldRef }] },
  },
  {
    ...{ title: "a volume source after another client set another source", kind: "Deployment", before: deploymentOf() },
    others: { spec: { template: { spec: { volumes: [{ name: "v", emptyDir: {} }] } } } },
    after: deploymentOf(podOf({ volumes: [{ name: "v", configMap: { name: "c", defaultMode: 420 } }] })),
    expected: {
      path: "spec.template.spec.volumes",
      value: [{ name: "v", configMap: { name: "c", defaultMode: 420 } }],
    },
  },
  {
    ...{ title: "an empty volume source after another client set another source", kind: "Deployment", way: "put" },
    before: deploymentOf(podOf({ volumes: [{ name: "v", emptyDir: {} }] })),
    others: { spec: { template: { spec: { volumes: [{ name: "v", configMap: { name: "c", defaultMode: 420 } }] } } } },
    after: deploymentOf(podOf({ volumes: [{ name: "v", emptyDir: {} }] })),
    expected: { path: "spec.template.spec.volumes", value: [{ name: "v", emptyDir: {} }] },
  },
  {
    ...{
      title: "a probe handler after another client set another handler",
      kind: "Deployment",
      before: deploymentOf(),
    },
    others: container({ livenessProbe: { httpGet: { port: 80 } } }),
    after: deploymentOf(podOf({}, { livenessProbe: { exec: { command: ["true"] } } })),
    expected: { path: `${CONTAINER}.livenessProbe.httpGet`, value: undefined },
  },
  {
    ...{ title: "a union member of a custom resource after another client set the other member", kind: "Choice" },
    ...{ before: { spec: { a: "ours" } }, others: { spec: { a: null, b: "theirs" } }, after: { spec: { a: "ours" } } },
    expected: { path: "spec", value: { a: "ours" } },
  },
  ...(["apply", "put"] as const).flatMap((way): Transition[] => [
    {
      ...{ title: "a Pod without hostNetwork", kind: "Deployment", way },
      before: deploymentOf(podOf({ hostNetwork: true })),
      after: deploymentOf(),
      expected: { path: "spec.template.spec.hostNetwork", value: undefined },
    },
    {
      ...{ title: "a Pod without serviceAccountName", kind: "Deployment", way },
      before: deploymentOf(podOf({ serviceAccountName: "powerful" })),
      after: deploymentOf(),
      expected: { path: "spec.template.spec.serviceAccountName", value: undefined },
    },
    {
      ...{ title: "a container without privileged", kind: "Deployment", way },
      before: deploymentOf(podOf({}, { securityContext: { privileged: true } })),
      after: deploymentOf(),
      expected: { path: `${CONTAINER}.securityContext.privileged`, value: undefined },
    },
    {
      ...{ title: "replicas released to an autoscaler", kind: "Deployment", way },
      ...{ before: deploymentOf(podOf(), { replicas: 3 }), after: deploymentOf() },
      // The version of the operator that hands them over states them no more.
      optionsAfter: { released: ["spec.replicas"] },
      expected: { path: "spec.replicas", value: 3 },
    },
  ]),
];

/** A part of an object of which at most one form may be there, and the object with a form of it, or with none. */
interface Union {
  readonly kind: keyof typeof KINDS;
  readonly forms: readonly Json[];
  readonly objectOf: (form: Json | undefined) => Json;
  readonly expectedOf: (form: Json | undefined) => Transition["expected"];
  /** How another client sets a form; absent if it would not exclude the others. */
  readonly patchOf?: (form: Json) => Json;
  /** Whether no form is a state, too. */
  readonly isOptional?: true;
}

const whole = (path: string) => (value: unknown) => ({ path, value });
const volumeOf = (source: Json) => ({ name: "v", ...source });
const envOf = (form: Json) => ({ name: "X", ...form });
const rolling = { type: "RollingUpdate", rollingUpdate: { maxSurge: 2, maxUnavailable: 0 } };
const partitioned = { type: "RollingUpdate", rollingUpdate: { partition: 1 } };
const flagOf = (path: string, objectOf: Union["objectOf"], value: unknown = true): Union => ({
  ...{ kind: "Deployment", forms: [{ value }], isOptional: true, objectOf },
  expectedOf: (form) => ({ path, value: form?.["value"] }),
});

const UNIONS: readonly Union[] = [
  {
    ...{ kind: "Deployment", forms: [{ type: "Recreate" }, rolling], expectedOf: whole("spec.strategy") },
    objectOf: (strategy) => deploymentOf(podOf(), strategy === undefined ? {} : { strategy }),
    // A merge patch keeps members that it does not name.
    patchOf: (strategy) => ({ spec: { strategy: { rollingUpdate: null, ...strategy } } }),
  },
  {
    ...{ kind: "StatefulSet", forms: [{ type: "OnDelete" }, partitioned] },
    expectedOf: (form) => ({ path: "spec.updateStrategy.type", value: form?.["type"] }),
    objectOf: (updateStrategy) => setOf(updateStrategy === undefined ? {} : { updateStrategy }),
    patchOf: (updateStrategy) => ({ spec: { updateStrategy: { rollingUpdate: null, ...updateStrategy } } }),
  },
  {
    kind: "Deployment",
    forms: [
      { value: "ours" },
      { valueFrom: fieldRef },
      { valueFrom: { secretKeyRef: { name: "s", key: "k" } } },
      { valueFrom: { configMapKeyRef: { name: "c", key: "k" } } },
    ],
    isOptional: true,
    expectedOf: (form) => ({ path: `${CONTAINER}.env`, value: form && [envOf(form)] }),
    objectOf: (form) => deploymentOf(podOf({}, form && { env: [envOf(form)] })),
    patchOf: (form) => container({ env: [envOf(form)] }),
  },
  {
    kind: "Deployment",
    forms: [
      { emptyDir: {} },
      { configMap: { name: "c", defaultMode: 420 } },
      { secret: { secretName: "s", defaultMode: 420 } },
      { persistentVolumeClaim: { claimName: "p" } },
    ],
    isOptional: true,
    expectedOf: (form) => ({ path: "spec.template.spec.volumes", value: form && [volumeOf(form)] }),
    objectOf: (form) => deploymentOf(podOf(form && { volumes: [volumeOf(form)] })),
    patchOf: (form) => ({ spec: { template: { spec: { volumes: [volumeOf(form)] } } } }),
  },
  {
    kind: "Deployment",
    forms: [{ exec: { command: ["true"] } }, { tcpSocket: { port: 80 } }, { grpc: { port: 80, service: "" } }],
    isOptional: true,
    expectedOf: (form) => {
      const [handler] = Object.keys(form ?? {});
      const path = `${CONTAINER}.livenessProbe${handler === undefined ? "" : `.${handler}`}`;
      return { path, value: form?.[handler ?? ""] };
    },
    objectOf: (livenessProbe) => deploymentOf(podOf({}, livenessProbe && { livenessProbe })),
    patchOf: (livenessProbe) => container({ livenessProbe }),
  },
  {
    ...{ kind: "Choice", forms: [{ a: "ours" }, { b: "ours" }], expectedOf: whole("spec") },
    objectOf: (spec) => ({ spec }),
    patchOf: (spec) => ({ spec: { a: null, b: null, ...spec } }),
  },
  flagOf("spec.template.spec.hostNetwork", (form) => deploymentOf(podOf(form && { hostNetwork: true }))),
  flagOf(`${CONTAINER}.securityContext.privileged`, (form) =>
    deploymentOf(podOf({}, form && { securityContext: { privileged: true } })),
  ),
  flagOf(
    "spec.template.spec.serviceAccountName",
    (form) => deploymentOf(podOf(form && { serviceAccountName: "powerful" })),
    "powerful",
  ),
];

const cases = fc.constantFrom(...UNIONS).chain(({ kind, forms, objectOf, expectedOf, patchOf, isOptional }) => {
  const form = fc.constantFrom(...forms);
  const state = isOptional === true ? fc.option(form, { nil: undefined }) : form;
  return (
    fc
      .record({
        ...{ before: state, after: state, way: fc.constantFrom("apply" as const, "put" as const) },
        others: patchOf === undefined ? fc.constant(undefined) : fc.option(form, { nil: undefined }),
      })
      // What another client set stays where nothing is stated in its place.
      .filter(({ after, others }) => after !== undefined || others === undefined)
      .map(({ before, after, others, way }): Transition => ({
        ...{
          title: "a form",
          kind,
          before: objectOf(before),
          after: objectOf(after),
          expected: expectedOf(after),
          way,
        },
        ...(others === undefined ? {} : { others: patchOf!(others) }),
      }))
  );
});

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
    const one = await found();
    const last = scene.events.at(-1);
    if (!isDeepStrictEqual(one, expected.value)) return [`${expected.path} is ${JSON.stringify(one)}`];
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
  title: "union switch",
  open: scenesOf(),
  scenarios: TRANSITIONS.map((transition, index): Scenario<Transition> => ({
    seed: index + 1,
    title: `to ${transition.title} succeeds (${transition.way ?? "apply"})`,
    case: transition,
  })),
  play,
  explored: {
    title: "to any form succeeds for random previous forms and writes of other clients",
    cases: isBroken("transitions") ? undefined : cases,
  },
});
