// Values that the API server stores in another spelling, or chooses itself.
import type { ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { startWriting } from "./one-object.js";

const server = shared(() => startTestApiServer());
const start = async (definition: ResourceDefinition) => startWriting(await server(), definition);

const labels = { app: "x" };
const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "image" }] } };
const port = { name: "http", port: 80, protocol: "TCP", targetPort: 80 };

const cases: readonly { readonly title: string; readonly kind: [string, string]; readonly desired: object }[] = [
  {
    title: "base64 with line breaks",
    kind: ["v1", "Secret"],
    desired: { data: { a: "aGVsbG8gd29ybGQsIGhl\nbGxvIHdvcmxk\n" } },
  },
  {
    title: "base64 in binaryData with line breaks",
    kind: ["v1", "ConfigMap"],
    desired: { binaryData: { a: "aGVs\r\nbG8=" } },
  },
  {
    title: "Service fields that the API server assigns",
    kind: ["v1", "Service"],
    desired: {
      spec: {
        type: "NodePort",
        clusterIP: "",
        externalName: "",
        healthCheckNodePort: 0,
        ports: [{ ...port, nodePort: 0 }],
      },
    },
  },
  {
    title: "a status",
    kind: ["apps/v1", "Deployment"],
    desired: { spec: { selector: { matchLabels: labels }, template }, status: { replicas: 3, availableReplicas: 3 } },
  },
  {
    title: "a quantity and an empty serviceAccountName",
    kind: ["apps/v1", "Deployment"],
    desired: {
      spec: {
        selector: { matchLabels: labels },
        template: {
          ...template,
          spec: {
            serviceAccountName: "",
            containers: [{ name: "main", image: "image", resources: { limits: { memory: "1024Mi", cpu: 0.5 } } }],
          },
        },
      },
    },
  },
  {
    title: "int64 values that JavaScript rounds",
    kind: ["apps/v1", "Deployment"],
    desired: {
      spec: {
        selector: { matchLabels: labels },
        template: {
          ...template,
          spec: {
            ...template.spec,
            terminationGracePeriodSeconds: 2 ** 60,
            tolerations: [{ key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 2 ** 63 }],
          },
        },
      },
    },
  },
  {
    title: "a time in another zone",
    kind: ["coordination.k8s.io/v1", "Lease"],
    desired: { spec: { renewTime: "2026-01-01T02:00:00.000000+02:00" } },
  },
];

suite("server-side normalization", (test) => {
  for (const { title, kind, desired } of cases)
    for (const way of ["apply", "put"] as const)
      test(`causes no second write and no warning, also after a restart: ${title}, ${way}`, async () => {
        await using writing = await start(builtinDefinition(...kind));
        assert.is((await writing[way](desired)).kind, "created");
        const warnings = [...writing.logs];
        for (let round = 0; round < 2; round++) {
          assert.is((await writing[way](desired)).kind, "unchanged");
          assert.is(writing.requests.filter((each) => !each.startsWith("GET")).length, 0, writing.requests.join());
          warnings.push(...writing.logs);
          writing.restart();
        }
        assert.equal(
          warnings.filter((line) => line.startsWith("warn")),
          [],
        );
      });

  test("does not hide a default that another manager changed", async () => {
    await using writing = await start(builtinDefinition("apps/v1", "Deployment"));
    const desired = { spec: { selector: { matchLabels: labels }, template, minReadySeconds: 0 } };
    for (const way of ["apply", "put"] as const) {
      await writing[way](desired);
      await writing.others({ mergePatch: { spec: { minReadySeconds: 30 } } });
      assert.is((await writing[way](desired)).kind, "updated");
      assert.is(((await writing.specOf()) as { minReadySeconds?: number }).minReadySeconds ?? 0, 0);
    }
  });
});
