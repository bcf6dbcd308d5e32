import { locateChange } from "#generator/diff/change.js";
import { readCrds } from "#generator/read/crd/read-crds.js";
import { assert, suite } from "../../../support/suite.js";

const text = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: pages.example.com }
spec:
  group: example.com
  names: { kind: Page, plural: pages, singular: page }
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                ports:
                  type: array
                  items:
                    type: object
                    properties:
                      name: { type: string }
                labels:
                  type: object
                  additionalProperties:
                    type: object
                    properties:
                      value: { type: string }
                a:
                  type: object
                  properties:
                    b: { type: string }
                a.b: { type: string }
`;
const { crds } = readCrds({ file: "page.yaml", text });

/** Returns the line at which a change is placed. */
function lineOf(subject: string, path?: string): string {
  const change = { effect: "breaking" as const, subject, message: "", ...(path === undefined ? {} : { path }) };
  const { position } = locateChange(change, { input: { crds, workflows: [] }, before: [] });
  return position === undefined ? "none" : (text.split("\n")[position.line - 1] ?? "").trim();
}

suite("position of a CRD change", (test) => {
  test("is the line of the changed field", () => {
    assert.is(lineOf("pages.example.com v1", "spec.ports"), "ports:");
    assert.is(lineOf("pages.example.com v1", "spec.ports[].name"), "name: { type: string }");
    assert.is(lineOf("pages.example.com v1", "spec.labels.*.value"), "value: { type: string }");
    assert.is(lineOf("pages.example.com v1", "spec.a.b"), "a.b: { type: string }");
    assert.is(lineOf("pages.example.com v1", "spec.a"), "a:");
  });

  test("is the closest parent of a removed field", () => {
    assert.is(lineOf("pages.example.com v1", "spec.gone.too"), "spec:");
    assert.is(lineOf("pages.example.com v1", "spec.ports[].gone"), "items:");
    assert.is(lineOf("pages.example.com v2"), "metadata: { name: pages.example.com }");
  });

  test("is the version or the field outside of the versions", () => {
    assert.is(lineOf("pages.example.com v1"), "- name: v1");
    assert.is(lineOf("pages.example.com", "spec.scope"), "scope: Namespaced");
    assert.is(lineOf("pages.example.com"), "metadata: { name: pages.example.com }");
    assert.is(lineOf("other.example.com v1", "spec"), "none");
  });
});
