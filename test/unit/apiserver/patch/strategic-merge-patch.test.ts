import type { JsonObject, JsonValue } from "#apiserver/json.js";
import { applyStrategicMergePatch } from "#apiserver/patch/strategic-merge-patch.js";
import { statusOf } from "../../../support/api/status-message.js";
import { assert, suite } from "../../../support/suite.js";

const POD = "io.k8s.api.core.v1.Pod";
const web = {
  name: "web",
  image: "a",
  env: [
    { name: "X", value: "1" },
    { name: "Y", value: "2" },
  ],
};
const proxy = { name: "proxy", image: "b" };
const pod: JsonObject = {
  metadata: { labels: { l: "1" }, finalizers: ["x.io/b"] },
  spec: { containers: [web, proxy], volumes: [{ name: "v", emptyDir: {} }] },
};

suite("strategic merge patch", (test) => {
  test("merges lists by key, with new items before live ones", () => {
    const table: [spec: JsonObject, want: JsonObject][] = [
      [{ containers: [{ name: "web", image: "new" }] }, { containers: [{ ...web, image: "new" }, proxy] }],
      [{ containers: [{ name: "n", image: "n" }] }, { containers: [{ name: "n", image: "n" }, web, proxy] }],
      [{ containers: [{ name: "proxy", $patch: "delete" }] }, { containers: [web] }],
      [{ containers: [{ name: "n" }, { $patch: "replace" }] }, { containers: [{ name: "n" }] }],
      [{ containers: [{ name: "web", image: null }] }, { containers: [{ name: "web", env: web.env }, proxy] }],
      [
        {
          containers: [
            {
              name: "web",
              env: [
                { name: "Y", value: "3" },
                { name: "Z", value: "4" },
              ],
            },
          ],
        },
        {
          containers: [
            {
              ...web,
              env: [
                { name: "X", value: "1" },
                { name: "Y", value: "3" },
                { name: "Z", value: "4" },
              ],
            },
            proxy,
          ],
        },
      ],
      [{ "$setElementOrder/containers": [{ name: "proxy" }, { name: "web" }] }, { containers: [proxy, web] }],
      [
        { "$setElementOrder/containers": [{ name: "n" }, { name: "web" }], containers: [{ name: "n", image: "q" }] },
        { containers: [{ name: "n", image: "q" }, web, proxy] },
      ],
      [{ containers: null }, {}],
      [{ tolerations: [{ key: "a", value: null }] }, { containers: [web, proxy], tolerations: [{ key: "a" }] }],
      [{ nodeSelector: { a: null, b: "1" } }, { containers: [web, proxy], nodeSelector: { b: "1" } }],
      [{ nodeSelector: { $patch: "replace", x: "y" } }, { containers: [web, proxy] }],
      [{ initContainers: [{ name: "i", $patch: "delete" }] }, { containers: [web, proxy], initContainers: [] }],
      [{ $patch: "replace", containers: [] }, { containers: [] }],
      [{ $patch: "delete" }, {}],
    ];
    for (const [spec, want] of table) {
      const { volumes: _, ...patched } = applyStrategicMergePatch(POD, pod, { spec })["spec"] as JsonObject;
      assert.equal(patched, want, JSON.stringify(spec));
    }
  });

  test("drops the union members that $retainKeys does not list", () => {
    const volume = { name: "v", $retainKeys: ["name", "hostPath"], hostPath: { path: "/x" } };
    const patched = applyStrategicMergePatch(POD, pod, { spec: { volumes: [volume] } });
    assert.equal((patched["spec"] as JsonObject)["volumes"], [{ name: "v", hostPath: { path: "/x" } }]);
  });

  test("merges lists of scalars as sets", () => {
    const table: [metadata: JsonObject, want: JsonValue][] = [
      [{ finalizers: ["x.io/c"] }, ["x.io/c", "x.io/b"]],
      [{ finalizers: ["x.io/b"] }, ["x.io/b"]],
      [{ "$deleteFromPrimitiveList/finalizers": ["x.io/b"] }, []],
      [{ "$deleteFromPrimitiveList/finalizers": "x.io/b" }, ["x.io/b"]],
      [{ "$setElementOrder/finalizers": ["x.io/a", "x.io/b"], finalizers: ["x.io/a"] }, ["x.io/a", "x.io/b"]],
    ];
    for (const [metadata, want] of table) {
      const patched = applyStrategicMergePatch(POD, pod, { metadata })["metadata"] as JsonObject;
      assert.equal(patched["finalizers"], want, JSON.stringify(metadata));
    }
  });

  test("keeps live-only items ahead of the patched items that they preceded", () => {
    const env = (...names: string[]) => names.map((name) => ({ name }));
    const table: [live: string[], patch: string[], want: string[]][] = [
      [
        ["X", "Y"],
        ["Y", "Z"],
        ["X", "Y", "Z"],
      ],
      [["A"], ["B", "A"], ["B", "A"]],
      [
        ["A", "B", "C"],
        ["C", "A"],
        ["B", "C", "A"],
      ],
      [
        ["A", "B"],
        ["N", "B"],
        ["N", "A", "B"],
      ],
      [["A"], ["N", "M"], ["N", "M", "A"]],
    ];
    for (const [live, patch, want] of table) {
      const object = { spec: { containers: [{ name: "c", env: env(...live) }] } };
      const patched = applyStrategicMergePatch(POD, object, {
        spec: { containers: [{ name: "c", env: env(...patch) }] },
      });
      assert.equal(patched, { spec: { containers: [{ name: "c", env: env(...want) }] } }, JSON.stringify(patch));
    }
  });

  test("rejects a patch that cannot be applied with the message of Kubernetes", () => {
    const table: [patch: JsonValue, code: number, want: string][] = [
      [[], 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"],
      [{ spec: { containers: [{ image: "x" }] } }, 500, "map: map[image:x] does not contain declared merge key: name"],
      [
        { spec: { containers: [{ $patch: "delete" }] } },
        500,
        "map: map[$patch:delete] does not contain declared merge key: name",
      ],
      [{ spec: { $patch: "explode" } }, 500, "unknown patch type: explode in map: map[$patch:explode]"],
      [
        { spec: { containers: [{ name: "web", $patch: "merge" }] } },
        500,
        "merging lists cannot yet be specified in the patch",
      ],
      [{ spec: { "$setElementOrder/containers": "x" } }, 500, "expected a []interface {}, but received a string"],
      [
        { spec: { "$setElementOrder/containers": [{ name: "c" }], containers: [{ name: "n", image: "q" }] } },
        500,
        "The order in patch list:\n[map[image:q name:n]]\n doesn't match $setElementOrder list:\n[map[name:c]]\n",
      ],
      [
        { spec: { volumes: [{ name: "v", $retainKeys: ["name"], hostPath: {} }] } },
        400,
        "invalid patch format of retainKeys",
      ],
      [{ metadata: { finalizers: [1] } }, 500, "list element types are not identical: [[x.io/b] [1]]"],
      [{ metadata: { $deleteFromPrimitiveList: ["x"] } }, 400, "invalid patch format of primitive list"],
    ];
    for (const [patch, code, want] of table) {
      const status = statusOf(() => applyStrategicMergePatch(POD, pod, patch));
      assert.equal([status.code, status.message], [code, want]);
    }
  });

  test("rejects a result of a wrong type with 422", () => {
    const table: [patch: JsonObject, want: string][] = [
      [{ spec: { containers: "x" } }, 'map[spec:map[containers:x]]": cannot restore slice from string'],
      [{ metadata: { labels: "x" } }, 'map[metadata:map[labels:x]]": cannot restore map from string'],
      [{ metadata: { labels: { a: 1 } } }, 'map[metadata:map[labels:map[a:1]]]": cannot convert int64 to string'],
      [{ metadata: { labels: { a: true } } }, 'map[metadata:map[labels:map[a:true]]]": unrecognized type: string'],
      [{ metadata: 1 }, 'map[metadata:1]": cannot restore struct from: int64'],
      [{ spec: { priority: "x" } }, 'map[spec:map[priority:x]]": unrecognized type: int32'],
      [{ spec: { priority: 1.5 } }, 'map[spec:map[priority:1.5]]": cannot convert float64 to int32'],
      [{ spec: { hostNetwork: 1 } }, 'map[spec:map[hostNetwork:1]]": unrecognized type: bool'],
    ];
    for (const [patch, want] of table) {
      const status = statusOf(() => applyStrategicMergePatch(POD, pod, patch));
      assert.equal([status.code, status.message], [422, ` "" is invalid: patch: Invalid value: "${want}`]);
    }
  });

  test("changes nothing if it is empty or null", () => {
    assert.equal(applyStrategicMergePatch(POD, pod, {}), pod);
    assert.equal(applyStrategicMergePatch(POD, pod, null), pod);
  });
});
