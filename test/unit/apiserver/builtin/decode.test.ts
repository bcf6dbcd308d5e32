import { decodeBuiltin } from "#apiserver/builtin/decode.js";
import type { ServedType } from "#apiserver/builtin/served-type.js";
import { builtinTypes } from "#apiserver/strategies/table.js";
import type { JsonObject } from "#apiserver/json.js";
import { assert, suite } from "../../../support/suite.js";

const QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

suite("decodeBuiltin", (test) => {
  test("lists unknown fields in document order", () => {
    const deployment = {
      metadata: { name: "z", x: 1, ownerReferences: [{ q: 1 }], creationTimestamp: null },
      odd: 1,
      spec: {
        odd: 2,
        template: { spec: { containers: [{ name: "a", im: 1 }, { y: { z: 1 } }], nodeSelector: { any: "x" } } },
        selector: { matchlabels: {} },
      },
      status: { w: 1 },
    };
    assert.equal(decodeBuiltin(typeOf("deployments"), deployment), {
      unknownFields: [
        "metadata.x",
        "metadata.ownerReferences[0].q",
        "odd",
        "spec.odd",
        "spec.template.spec.containers[0].im",
        "spec.template.spec.containers[1].y",
        "spec.selector.matchlabels",
        "status.w",
      ],
    });
  });

  test("reports the first value of a wrong type with the message of Go's decoder", () => {
    const cannot = (given: string, field: string, type: string) =>
      `json: cannot unmarshal ${given} into Go struct field ${field} of type ${type}`;
    const pod = (container: JsonObject) => ({ spec: { template: { spec: { containers: [container] } } } });
    const table: [plural: string, object: JsonObject, want: string | undefined][] = [
      ["deployments", { spec: { replicas: "x" } }, cannot("string", "DeploymentSpec.spec.replicas", "int32")],
      ["deployments", { spec: { replicas: 1.5 } }, cannot("number 1.5", "DeploymentSpec.spec.replicas", "int32")],
      [
        "deployments",
        { spec: { replicas: 99999999999 } },
        cannot("number 99999999999", "DeploymentSpec.spec.replicas", "int32"),
      ],
      ["deployments", pod({ name: 1 }), cannot("number", "Container.spec.template.spec.containers.name", "string")],
      [
        "deployments",
        { spec: { template: { spec: { containers: {} } } } },
        cannot("object", "PodSpec.spec.template.spec.containers", "[]v1.Container"),
      ],
      ["deployments", { spec: [] }, cannot("array", "Deployment.spec", "v1.DeploymentSpec")],
      ["deployments", { metadata: { labels: { a: 1 } } }, cannot("number", "ObjectMeta.metadata.labels", "string")],
      ["deployments", { metadata: { labels: [] } }, cannot("array", "ObjectMeta.metadata.labels", "map[string]string")],
      [
        "deployments",
        { spec: { strategy: { rollingUpdate: { maxSurge: true } } } },
        cannot("bool", "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge", "int32"),
      ],
      ["deployments", pod({ resources: { limits: { cpu: "x" } } }), QUANTITY],
      ["deployments", pod({ resources: { limits: { cpu: 0.5 } } }), undefined],
      [
        "deployments",
        pod({ resources: { limits: 1 } }),
        cannot("number", "ResourceRequirements.spec.template.spec.containers.resources.limits", "v1.ResourceList"),
      ],
      [
        "deployments",
        { metadata: { creationTimestamp: "x" } },
        'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
      ],
      ["configmaps", { data: { a: 1 } }, cannot("number", "ConfigMap.data", "string")],
      ["secrets", { data: { a: 1 } }, cannot("number", "Secret.data", "[]uint8")],
      ["secrets", { data: { a: "$$" } }, "illegal base64 data at input byte 0"],
      ["secrets", { data: [] }, cannot("array", "Secret.data", "map[string][]uint8")],
      [
        "leases",
        { spec: { renewTime: "2024-01-01T00:00:00.1Z" } },
        'parsing time "2024-01-01T00:00:00.1Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse ".1Z" as ".000000"',
      ],
      ["leases", { spec: { renewTime: "2024-01-01T00:00:00.000000Z" } }, undefined],
      ["services", { metadata: "z" }, cannot("string", "Service.metadata", "v1.ObjectMeta")],
    ];
    for (const [plural, object, want] of table) {
      assert.is(decodeBuiltin(typeOf(plural), object).error, want, JSON.stringify(object));
    }
  });
});

function typeOf(plural: string): ServedType {
  return builtinTypes().find((type) => type.plural === plural) as ServedType;
}
