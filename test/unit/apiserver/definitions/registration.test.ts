// CustomResourceDefinitions as kube-apiserver 1.36 answered them.
import { readFileSync } from "node:fs";
import { acceptNames, establish } from "#apiserver/bootstrap/custom-resource-definitions.js";
import { completeStatus, crdWarnings, defaultCrd, validateCrd } from "#apiserver/registry/definition-rules.js";
import { clone, objectAt, type JsonObject } from "#apiserver/json.js";
import { fieldErrorPath } from "#apiserver/errors/field-error.js";
import { assert, suite } from "../../../support/suite.js";

interface Recorded {
  name: string;
  crd: JsonObject;
  causes: string[];
  status?: JsonObject;
}

const file = new URL("../../../../../fixtures/custom-resources/registration.jsonl", import.meta.url);
const recorded = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Recorded);

/** What is stored of a definition that is created. */
function complete(crd: JsonObject): JsonObject {
  defaultCrd(crd);
  completeStatus(crd, { isStatusWrite: false });
  return crd;
}

suite("CustomResourceDefinition registration, recorded from kube-apiserver", (test) => {
  for (const { name, crd, causes, status } of recorded) {
    test(name, () => {
      const completed = complete(crd);
      const errors = validateCrd(completed).map((e) => `${e.reason}|${fieldErrorPath(e)}|${e.message}`);
      assert.equal(errors, causes);
      if (status !== undefined) assert.equal(completed["status"], status);
    });
  }
});

function crdOf(kind: string, names: JsonObject = {}): JsonObject {
  const plural = `${kind.toLowerCase()}s`;
  return complete({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.example.com` },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { plural, kind, ...names },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
    },
  });
}

function established(crd: JsonObject): JsonObject {
  const named = { ...crd, status: { ...objectAt(crd, "status"), ...acceptNames(crd, []) } };
  return { ...named, status: { ...named.status, conditions: establish(named) } };
}

suite("CustomResourceDefinition names and conditions", (test) => {
  const conditionsOf = (crd: JsonObject, others: JsonObject[]): unknown[] =>
    acceptNames(crd, others, "2024-01-01T00:00:00Z").conditions.map(({ type, status, reason, message }) =>
      [type, status, reason, message].join(" "),
    );

  test("accepts free names before the CRD is established", () => {
    const { acceptedNames } = acceptNames(crdOf("Web"), []);
    assert.equal(acceptedNames, { plural: "webs", kind: "Web", singular: "web", listKind: "WebList" });
    assert.equal(conditionsOf(crdOf("Web"), []), [
      "NamesAccepted True NoConflicts no conflicts found",
      "Established False Installing the initial names have been accepted",
    ]);
    assert.equal(established(crdOf("Web"))["status"], {
      ...objectAt(established(crdOf("Web")), "status"),
      storedVersions: ["v1"],
    });
  });

  test("reports a taken kind as the last conflict found, the list kind", () => {
    const other = established(crdOf("Web"));
    const crd = crdOf("Page", { kind: "Web", listKind: "WebList" });
    assert.equal(conditionsOf(crd, [other]), [
      'NamesAccepted False ListKindConflict "WebList" is already in use',
      "Established False NotAccepted not all names are accepted",
    ]);
    assert.is(acceptNames(crd, [other]).acceptedNames["kind"], "");
  });

  test("accepts the same names in another group", () => {
    const other = established(crdOf("Web"));
    const elsewhere = clone(other);
    (elsewhere["metadata"] as JsonObject)["name"] = "webs.example.org";
    (elsewhere["spec"] as JsonObject)["group"] = "example.org";
    assert.is(conditionsOf(elsewhere, [other])[0], "NamesAccepted True NoConflicts no conflicts found");
  });

  test("reports whether a CRD of a protected group is approved", () => {
    const crd = clone(crdOf("Web"));
    (crd["spec"] as JsonObject)["group"] = "web.k8s.io";
    (crd["metadata"] as JsonObject)["annotations"] = { "api-approved.kubernetes.io": "unapproved, testing" };
    assert.is(
      conditionsOf(crd, [])[0],
      'KubernetesAPIApprovalPolicyConformant False UnapprovedAnnotation not approved: "unapproved, testing"',
    );
  });

  test("warns about unrecognized string formats", () => {
    const schema = {
      type: "object",
      properties: { a: { type: "string", format: "odd" }, b: { type: "string", format: "date-time" } },
    };
    const versions = [{ name: "v1", schema: { openAPIV3Schema: schema } }];
    assert.equal(crdWarnings({ spec: { versions } }), ['unrecognized format "odd"']);
  });

  test("keeps the scope of an established CRD immutable", () => {
    const old = established(crdOf("Web"));
    const changed = clone(old);
    Object.assign(changed["spec"] as JsonObject, { scope: "Cluster" });
    assert.equal(validateCrd(changed, old), [
      { reason: "FieldValueInvalid", field: "spec.scope", message: 'Invalid value: "Cluster": field is immutable' },
    ]);
  });
});
