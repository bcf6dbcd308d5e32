// Claims whose StorageClass binds them when the first Pod uses them.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { bound, ready } from "#runtime/workflow/conditions.js";
import { waitFor } from "#apiserver/wait-for.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { configOf, dependentController, outcomeOf } from "./sample-dependents.js";
import { Sample } from "../sample-kind.js";
import { spacesOf, type Space } from "../space.js";

const PersistentVolumeClaim = classOf<KubernetesObject>(builtinDefinition("v1", "PersistentVolumeClaim"));
const Pod = classOf<KubernetesObject>(builtinDefinition("v1", "Pod"));
const StorageClass = classOf<KubernetesObject>(builtinDefinition("storage.k8s.io/v1", "StorageClass"));
const openSpace = spacesOf();

/** Starts an operator whose Pod depends on a claim of a class that waits for its first consumer. */
async function begin(space: Space, condition: typeof ready) {
  const storageClassName = `late-${space.namespace}`;
  await space.create(StorageClass, {
    metadata: { name: storageClassName },
    provisioner: "disks.example.com",
    volumeBindingMode: "WaitForFirstConsumer",
  } as never);
  const requests = { storage: "1Gi" };
  const claim = configOf("claim", {
    resource: PersistentVolumeClaim.definition,
    readyPostcondition: condition as never,
    desired: () => ({
      metadata: { name: "data" },
      spec: { accessModes: ["ReadWriteOnce"], storageClassName, resources: { requests } },
    }),
  });
  const pod = configOf("pod", {
    ...{ resource: Pod.definition, dependsOn: ["claim"] },
    desired: () => ({
      metadata: { name: "pod" },
      spec: {
        containers: [{ name: "main", image: "main", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
        volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
      },
    }),
  });
  const running = await space.start([dependentController([claim, pod])]);
  await space.create(Sample, { metadata: { name: "one" }, spec: {} });
  return running;
}

suite("PersistentVolumeClaim with WaitForFirstConsumer", (test) => {
  test("meets the condition ready, so that the dependent Pod is created", async () => {
    await using space = await openSpace();
    await using running = await begin(space, ready);
    await space.until(Pod, "pod", () => true);
    assert.match(String(outcomeOf(running, "claim")?.conditions?.readyPostcondition?.detail), "WaitForFirstConsumer");
    await running.quiet();
  });

  test("does not meet the condition bound until its phase is Bound, and names the missing Pod", async () => {
    await using space = await openSpace();
    await using running = await begin(space, bound);
    const detailOf = () => outcomeOf(running, "claim")?.conditions?.readyPostcondition?.detail;
    const detail = await waitFor("the claim is looked at", () => detailOf()?.toString());
    assert.match(detail, /is not bound: its phase is Pending: .*first Pod that uses it/);
    assert.is(await space.get(Pod, "pod"), undefined);
    await space.client.mergePatch(
      PersistentVolumeClaim,
      { name: "data", namespace: space.namespace, subresource: "status" },
      { status: { phase: "Bound" } } as never,
    );
    await space.until(Pod, "pod", () => true);
    await running.quiet();
  });
});
