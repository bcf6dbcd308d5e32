import { servedTypesOf, type ServedType } from "#apiserver/builtin/served-type.js";
import { builtinTypes } from "#apiserver/strategies/table.js";
import type { JsonObject } from "#apiserver/json.js";
import { parseFieldSelector } from "#apiserver/read/selectors.js";
import { messageOf } from "../../../support/api/status-message.js";
import { assert, suite } from "../../../support/suite.js";

suite("field selector", (test) => {
  test("matches objects by the selectable fields of their kind", () => {
    const pod = { metadata: { name: "p", namespace: "n" }, spec: { nodeName: "a,b=c\\" }, status: {} };
    const event = { metadata: { name: "e" }, source: { component: "kubelet" }, involvedObject: { kind: "Pod" } };
    const table: [plural: string, selector: string, object: JsonObject, want: boolean][] = [
      ["pods", "", pod, true],
      ["pods", ",", pod, true],
      ["pods", "metadata.name=p", pod, true],
      ["pods", "metadata.name==p,metadata.namespace=n", pod, true],
      ["pods", "metadata.name!=p", pod, false],
      ["pods", "metadata.name=p,metadata.name=q", pod, false],
      ["pods", "spec.nodeName=a\\,b\\=c\\\\", pod, true],
      ["pods", "status.podIP=", pod, true],
      ["pods", "spec.hostNetwork=false", pod, true],
      ["pods", "spec.hostNetwork=", pod, false],
      ["jobs", "status.successful=0", {}, true],
      ["jobs", "status.successful=2", { status: { succeeded: 2, successful: 2 } }, true],
      ["nodes", "spec.unschedulable=true", { spec: { unschedulable: true } }, true],
      ["nodes", "spec.unschedulable=false", { spec: {} }, true],
      ["events", "source=kubelet,involvedObject.kind=Pod,type=", event, true],
      ["events", "source=scheduler", { reportingComponent: "scheduler" }, true],
    ];
    for (const [plural, selector, object, want] of table) {
      assert.is(parseFieldSelector(selector, typeOf(plural)).matches(object), want, `${plural} ${selector}`);
    }
  });

  test("returns the name if it selects one object by metadata.name", () => {
    assert.is(parseFieldSelector("metadata.name=x", typeOf("configmaps")).name, "x");
    assert.is(parseFieldSelector("metadata.name!=x", typeOf("configmaps")).name, undefined);
    assert.is(parseFieldSelector("", typeOf("configmaps")).name, undefined);
  });

  test("rejects syntax errors and unsupported fields with the message of Kubernetes", () => {
    const only = 'is not a known field selector: only "metadata.name", "metadata.namespace"';
    const table: [plural: string, selector: string, want: string][] = [
      ["configmaps", "x", "invalid selector: 'x'; can't understand 'x'"],
      ["configmaps", "a,b", "invalid selector: 'a,b'; can't understand 'a'"],
      ["configmaps", "metadata.name=a=b", "invalid field selector: unescaped character in value: 61"],
      ["configmaps", "metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b"],
      ["configmaps", "metadata.name=a\\", "invalid field selector: invalid escape sequence: \\"],
      ["configmaps", "spec.foo=1", `"spec.foo" ${only}`],
      ["configmaps", "=a", `"" ${only}`],
      ["pods", "spec.foo=1", "field label not supported: spec.foo"],
      ["namespaces", "metadata.namespace=a", "field label not supported: metadata.namespace"],
      ["jobs", "spec.foo=1", 'field label "spec.foo" not supported for Job'],
    ];
    for (const [plural, selector, want] of table) {
      assert.is(
        messageOf(() => parseFieldSelector(selector, typeOf(plural))),
        want,
        selector,
      );
    }
  });

  test("matches custom resources by the selectableFields of their version", () => {
    const [widget] = servedTypesOf({
      spec: {
        group: "example.com",
        scope: "Namespaced",
        names: { kind: "Widget", plural: "widgets" },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            selectableFields: [{ jsonPath: ".spec.color" }, { jsonPath: ".spec.on" }],
          },
        ],
      },
    });
    const type = widget as ServedType;
    assert.is(parseFieldSelector("spec.color=red", type).matches({ spec: { color: "red" } }), true);
    assert.is(parseFieldSelector("spec.on=true", type).matches({ spec: { on: true } }), true);
    assert.is(parseFieldSelector("spec.on=", type).matches({ spec: {} }), true);
    assert.is(
      messageOf(() => parseFieldSelector("spec.size=1", type)),
      "field label not supported: spec.size",
    );
  });
});

function typeOf(plural: string): ServedType {
  return builtinTypes().find((type) => type.plural === plural) as ServedType;
}
