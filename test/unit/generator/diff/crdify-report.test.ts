import { crdifyReportOf } from "#generator/diff/crdify-report.js";
import { crdWith, diffOf } from "../../../support/crds/crd-changes.js";
import { assert, suite } from "../../../support/suite.js";

const schema = (fields: object, required: string[] = []) => ({
  type: "object",
  properties: { spec: { type: "object", properties: fields, ...(required.length > 0 ? { required } : {}) } },
});

/** The checks that find something, by property. */
function checksOf(before: object, after: object): object {
  const report = crdifyReportOf(diffOf(before, after))["gadgets.example.com"] ?? {};
  const [version] = report.sameVersionValidation ?? [];
  const names = (results: readonly { name: string; errors?: readonly string[] }[] = []) =>
    results.map(({ name, errors }) => `${errors === undefined ? "warning" : "error"} ${name}`);
  return {
    ...(report.crdValidation === undefined ? {} : { crd: names(report.crdValidation) }),
    ...Object.fromEntries(
      (version?.propertyComparisons ?? []).map(({ property, comparisonResults }) => [
        property,
        names(comparisonResults),
      ]),
    ),
  };
}

suite("diff --format crdify", (test) => {
  test("uses the check names and property paths of crdify", () => {
    const before = {
      size: { type: "integer", minimum: 1 },
      mode: { type: "string", enum: ["A"] },
      gone: { type: "string" },
      names: { type: "array", items: { type: "string" } },
      labels: { type: "object", additionalProperties: { type: "string" } },
      text: { type: "string", default: "a", pattern: "^a" },
    };
    const after = {
      size: { type: "integer", minimum: 10 },
      mode: { type: "string", enum: ["A", "B"] },
      names: { type: "array", items: { type: "string", maxLength: 3 } },
      labels: { type: "object", additionalProperties: { type: "integer" } },
      text: { type: "string", default: "b", pattern: "^b", nullable: true },
      rule: { type: "string", maxLength: 3, "x-kubernetes-validations": [{ rule: "self != 'a'" }] },
    };
    assert.equal(checksOf(crdWith(schema(before)), crdWith(schema(after, ["mode"]))), {
      "^.spec.size": ["error minimum"],
      "^.spec": ["error required"],
      "^.spec.mode": ["warning enum"],
      "^.spec.gone": ["error existingFieldRemoval"],
      "^.spec.names.items": ["error maxLength"],
      "^.spec.labels.additionalProperties": ["error type"],
      "^.spec.text": ["error default", "error pattern", "error nullable"],
      "^.spec.rule": ["warning unhandled"],
    });
  });

  test("reports changes outside of the schemas as checks of the CRD", () => {
    const scale = { scale: { specReplicasPath: ".spec.a", statusReplicasPath: ".status.a" } };
    const before = crdWith(schema({}), { subresources: scale });
    const after = crdWith(schema({})) as { spec: { scope: string } };
    after.spec.scope = "Cluster";
    const report = crdifyReportOf(diffOf(before, after));
    assert.equal(Object.keys(report), ["gadgets.example.com"]);
    assert.equal(checksOf(before, after), { crd: ["error scope", "error unhandled"] });
    assert.match(JSON.stringify(report), "v1: subresources.scale: is no longer a subresource");
  });

  test("reports a removed stored version, and nothing for equal CRDs", () => {
    const before = crdWith(schema({}));
    const after = crdWith(schema({}), { name: "v2" });
    assert.equal(checksOf(before, after), { crd: ["error storedVersionRemoval", "warning unhandled"] });
    assert.equal(crdifyReportOf(diffOf(before, before)), {});
  });
});
