// Kinds of which the API server keeps something else than what was sent, after JOSDK's integration tests: each is written once.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#runtime/base/wait-for.js";
import { untypedResource } from "#runtime/codegen/define-resource.js";
import { builtinDefinition, classOf } from "../../support/kind-definitions.js";
import { assert, suite } from "../../support/suite.js";
import { configOf, dependentController, outcomeOf, writesOf, type SampleArguments } from "./sample-dependents.js";
import { Sample } from "./sample-kind.js";
import { spacesOf, type Space } from "./space.js";

const openSpace = spacesOf();
const labels = { app: "web" };

interface Kind {
  readonly title: string;
  readonly resource: ReturnType<typeof builtinDefinition>;
  desired(args: SampleArguments): object;
}

const podsOf = (cpu: string) => ({
  metadata: { labels },
  spec: { containers: [{ name: "web", image: "nginx", resources: { limits: { cpu } } }] },
});

const KINDS: readonly Kind[] = [
  {
    title: "a Deployment whose quantities can be written shorter",
    resource: builtinDefinition("apps/v1", "Deployment"),
    desired: ({ primary }) => ({
      metadata: { name: "web", labels: { value: primary.spec.value } },
      spec: { selector: { matchLabels: labels }, template: podsOf("2000m") },
    }),
  },
  {
    title: "a StatefulSet with claims for volumes",
    resource: builtinDefinition("apps/v1", "StatefulSet"),
    desired: ({ primary }) => ({
      metadata: { name: "web", labels: { value: primary.spec.value } },
      spec: {
        serviceName: "web",
        selector: { matchLabels: labels },
        template: podsOf("1"),
        volumeClaimTemplates: [
          {
            metadata: { name: "data" },
            spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1024Mi" } } },
          },
        ],
      },
    }),
  },
  {
    title: "a Service that gets its addresses from the server",
    resource: builtinDefinition("v1", "Service"),
    desired: ({ primary }) => ({
      metadata: { name: "web", labels: { value: primary.spec.value } },
      spec: { selector: labels, ports: [{ port: 80 }] },
    }),
  },
  {
    title: "a ServiceAccount, which has no spec",
    resource: builtinDefinition("v1", "ServiceAccount"),
    desired: ({ primary }) => ({
      metadata: { name: "web", labels: { value: primary.spec.value } },
      automountServiceAccountToken: primary.spec.value === "second",
    }),
  },
  {
    title: "a ConfigMap of which only the names of the kind are known",
    resource: untypedResource({ apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" })
      .definition,
    desired: ({ primary }) => ({
      metadata: { name: "web", labels: { value: primary.spec.value } },
      data: { value: primary.spec.value },
    }),
  },
];

/** Lets a change happen that does not concern the dependent, and tells what was written for it. */
async function writesAfter(space: Space, running: Awaited<ReturnType<Space["start"]>>, other: string) {
  await running.quiet();
  const before = writesOf(running).length;
  await space.patch(Sample, "one", { spec: { other } });
  await waitFor("it is as desired", () => outcomeOf(running, "web")?.kind === "unchanged");
  await running.quiet();
  return writesOf(running).slice(before);
}

suite("written once when it is created, once when it is changed, and deleted", (test) => {
  for (const { title, resource, desired } of KINDS)
    for (const usesServerSideApply of [true, false])
      test(`${title}, ${usesServerSideApply ? "by apply" : "by POST and PUT"}`, async () => {
        await using space = await openSpace();
        const type = classOf<KubernetesObject>(resource);
        const dependent = configOf("web", { resource, desired, usesServerSideApply, isGarbageCollected: false });
        await using running = await space.start([dependentController([dependent])]);
        await space.create(Sample, { metadata: { name: "one" }, spec: { value: "first" } });
        await space.until(type, "web", ({ metadata }) => metadata.labels?.["value"] === "first");
        assert.equal(await writesAfter(space, running, "x"), []);
        await space.patch(Sample, "one", { spec: { value: "second" } });
        await space.until(type, "web", ({ metadata }) => metadata.labels?.["value"] === "second");
        assert.equal(await writesAfter(space, running, "y"), []);
        const plural = resource.plural;
        const writes = writesOf(running).filter((write) => write.includes(plural));
        assert.equal(
          writes,
          usesServerSideApply
            ? [`PATCH ${plural}/web 201`, `PATCH ${plural}/web 200`]
            : [`POST ${space.namespace}/${plural} 201`, `PUT ${plural}/web 200`],
        );
        assert.is(running.events.length, 4, "own writes are no events");
        await space.delete(Sample, "one");
        await space.untilGone(Sample, "one");
        assert.is(await space.get(type, "web"), undefined);
      });
});
