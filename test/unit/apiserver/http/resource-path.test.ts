import { parseResourcePath } from "#apiserver/http/request-info.js";
import { assert, suite } from "../../../support/suite.js";

const cases: [path: string, want: object | undefined][] = [
  ["/api/v1/pods", { group: "", version: "v1", plural: "pods" }],
  ["/api/v1/namespaces/a/pods/b", { group: "", version: "v1", namespace: "a", plural: "pods", name: "b" }],
  ["/api/v1/namespaces", { group: "", version: "v1", plural: "namespaces" }],
  ["/api/v1/namespaces/a", { group: "", version: "v1", plural: "namespaces", name: "a" }],
  ["/api/v1/namespaces/a/status", { group: "", version: "v1", plural: "namespaces", name: "a", subresource: "status" }],
  [
    "/api/v1/namespaces/a/finalize",
    { group: "", version: "v1", plural: "namespaces", name: "a", subresource: "finalize" },
  ],
  ["/api/v1/nodes/n/proxy/a/b", { group: "", version: "v1", plural: "nodes", name: "n", subresource: "proxy" }],
  [
    "/apis/apps/v1/namespaces/a/deployments/b/x/y",
    { group: "apps", version: "v1", namespace: "a", plural: "deployments", name: "b", subresource: "x/y" },
  ],
  [
    "/apis/apps/v1/namespaces/a/deployments/b/scale",
    { group: "apps", version: "v1", namespace: "a", plural: "deployments", name: "b", subresource: "scale" },
  ],
  [
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
    { group: "rbac.authorization.k8s.io", version: "v1", plural: "clusterroles", name: "system:node" },
  ],
  ["/api", undefined],
  ["/apis/apps/v1", undefined],
  ["/api/v1/", undefined],
  ["/healthz", undefined],
];

suite("parseResourcePath", (test) => {
  for (const [path, want] of cases) {
    test(`${want === undefined ? "ignores" : "parses"} ${path}`, () => {
      assert.equal(parseResourcePath(path), want === undefined ? undefined : { ...want, isWatchPath: false });
    });
  }

  test("removes the deprecated watch prefix", () => {
    const want = { group: "", version: "v1", namespace: "a", plural: "pods", isWatchPath: true };
    assert.equal(parseResourcePath("/api/v1/watch/namespaces/a/pods"), want);
  });
});
