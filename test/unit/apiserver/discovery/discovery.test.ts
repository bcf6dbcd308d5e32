import { servedTypesOf } from "#apiserver/builtin/served-type.js";
import { builtinTypes } from "#apiserver/strategies/table.js";
import { swaggerProtobuf } from "#apiserver/discovery/swagger.js";
import { discoveryAnswer } from "#apiserver/discovery/discovery.js";
import { isObject, objectAt, type JsonObject, type JsonValue } from "#apiserver/json.js";
import { statusOf } from "../../../support/api/status-message.js";
import { assert, suite } from "../../../support/suite.js";

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const KUBECTL = `${AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json`;
const VERBS = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

const version = (name: string) => ({
  name,
  served: true,
  storage: name === "v1",
  subresources: { status: {}, scale: {} },
  schema: { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", description: "wanted" } } } },
});
const widgets: JsonObject = {
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { kind: "Widget", listKind: "WidgetList", plural: "widgets", singular: "widget", shortNames: ["w"] },
    versions: ["v1beta1", "v1", "v2alpha1", "v10"].map(version),
  },
};
const types = [...builtinTypes(), ...servedTypesOf(widgets)];

suite("discovery", (test) => {
  test("lists groups with their versions and preferred version", () => {
    assert.equal(bodyOf("/api")["versions"], ["v1"]);
    const group = (bodyOf("/apis")["groups"] as JsonObject[]).find(({ name }) => name === "example.com");
    const names = ["v10", "v1", "v1beta1", "v2alpha1"];
    const versions = names.map((name) => ({ groupVersion: `example.com/${name}`, version: name }));
    assert.equal(group, { name: "example.com", versions, preferredVersion: versions[0] as JsonObject });
    assert.equal(bodyOf("/apis/example.com"), {
      kind: "APIGroup",
      apiVersion: "v1",
      name: "example.com",
      versions,
      preferredVersion: versions[0] as JsonObject,
    });
  });

  test("lists the resources of a group version with their subresources", () => {
    const apps = bodyOf("/apis/apps/v1");
    assert.equal(apps["groupVersion"], "apps/v1");
    assert.equal(resourceOf(apps, "deployments"), {
      name: "deployments",
      singularName: "deployment",
      namespaced: true,
      kind: "Deployment",
      verbs: ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
      shortNames: ["deploy"],
      categories: ["all"],
      storageVersionHash: "8aSe+NMegvE=",
    });
    assert.equal(resourceOf(apps, "deployments/scale"), {
      name: "deployments/scale",
      singularName: "",
      namespaced: true,
      group: "autoscaling",
      version: "v1",
      kind: "Scale",
      verbs: ["get", "patch", "update"],
    });
    assert.is("apiVersion" in bodyOf("/api/v1"), false);
    const { storageVersionHash: _, ...widget } = resourceOf(bodyOf("/apis/example.com/v1"), "widgets") as JsonObject;
    assert.equal(widget, {
      name: "widgets",
      singularName: "widget",
      namespaced: true,
      kind: "Widget",
      verbs: VERBS,
      shortNames: ["w"],
    });
  });

  test("returns aggregated discovery if Accept prefers v2, and 406 for v2beta1", () => {
    const answer = discoveryAnswer({ path: "/apis", accept: KUBECTL }, types);
    assert.is(answer?.contentType, AGGREGATED);
    assert.is(answer?.headers?.["Vary"], "Accept");
    const items = (JSON.parse(String(answer?.body)) as { items: JsonObject[] }).items;
    const group = items.find((item) => objectAt(item, "metadata")?.["name"] === "example.com") as JsonObject;
    const [first] = group["versions"] as { version: string; resources: JsonObject[] }[];
    assert.is(first?.version, "v10");
    const kind = { group: "example.com", version: "v10", kind: "Widget" };
    assert.equal(first?.resources, [
      {
        resource: "widgets",
        responseKind: kind,
        scope: "Namespaced",
        singularResource: "widget",
        verbs: VERBS,
        shortNames: ["w"],
        subresources: [
          { subresource: "status", responseKind: kind, verbs: ["get", "patch", "update"] },
          {
            subresource: "scale",
            responseKind: { group: "autoscaling", version: "v1", kind: "Scale" },
            verbs: ["get", "patch", "update"],
          },
        ],
      },
    ]);
    const beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    assert.is(statusOf(() => discoveryAnswer({ path: "/api", accept: beta }, types)).code, 406);
  });

  test("ignores object paths, health paths, and versions that are not served", () => {
    for (const path of ["/api/v2", "/apis/none", "/apis/apps/v2", "/apis/apps/v1/deployments", "/healthz"]) {
      assert.is(discoveryAnswer({ path, accept: "" }, types), undefined, path);
    }
  });

  test("serves OpenAPI v3 documents by hash and redirects stale hashes with 301", () => {
    const paths = bodyOf("/openapi/v3")["paths"] as Record<string, { serverRelativeURL: string }>;
    const url = paths["apis/example.com/v1"]?.serverRelativeURL ?? "";
    assert.match(url, /^\/openapi\/v3\/apis\/example\.com\/v1\?hash=[0-9A-F]{128}$/);
    const found = discoveryAnswer({ path: url, accept: "" }, types);
    assert.equal([found?.status, found?.headers?.["Cache-Control"]], [200, "public, immutable"]);
    const stale = discoveryAnswer({ path: "/openapi/v3/apis/example.com/v1?hash=OLD", accept: "" }, types);
    assert.equal([stale?.status, stale?.headers?.["Location"]], [301, url]);
  });

  test("serves OpenAPI v3 documents that contain every referenced schema and the fieldValidation parameter", () => {
    for (const path of ["api/v1", "apis/apps/v1", "apis/example.com/v1", "apis/apiextensions.k8s.io/v1"]) {
      const document = bodyOf(`/openapi/v3/${path}`);
      const schemas = objectAt(objectAt(document, "components"), "schemas") ?? {};
      const missing = referencesIn(document).filter((name) => !(name in schemas));
      assert.equal(missing, [], path);
    }
    const widgetPaths = objectAt(bodyOf("/openapi/v3/apis/example.com/v1"), "paths") ?? {};
    const patch = objectAt(
      objectAt(widgetPaths, "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"),
      "patch",
    );
    assert.equal(patch?.["x-kubernetes-group-version-kind"], { group: "example.com", version: "v1", kind: "Widget" });
    const parameters = (patch?.["parameters"] as JsonObject[]).map(({ name }) => name);
    assert.ok(parameters.includes("fieldValidation"));
  });

  test("describes the fields of built-in kinds and of metadata in OpenAPI v3", () => {
    const described = (path: string, name: string, field: string) => {
      const schemas = objectAt(objectAt(bodyOf(`/openapi/v3/${path}`), "components"), "schemas");
      return String(objectAt(objectAt(objectAt(schemas, name), "properties"), field)?.["description"]);
    };
    assert.match(described("api/v1", "io.k8s.api.core.v1.Container", "image"), /^Container image name\./);
    assert.match(described("apis/example.com/v1", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "uid"), /^UID is/);
  });

  test("keeps OpenAPI v2 properties that are named like keywords, and drops unknown keywords", () => {
    const definitions = objectAt(bodyOf("/openapi/v2"), "definitions");
    const propertiesOf = (name: string) => objectAt(objectAt(definitions, name), "properties");
    assert.ok(objectAt(propertiesOf("io.k8s.api.core.v1.LimitRangeItem"), "default")?.["additionalProperties"]);
    assert.is(objectAt(propertiesOf("io.k8s.api.core.v1.ContainerPort"), "protocol")?.["default"], undefined);
    const strategy = objectAt(propertiesOf("io.k8s.api.apps.v1.DeploymentSpec"), "strategy");
    assert.equal(
      [strategy?.["$ref"], strategy?.["x-kubernetes-patch-strategy"]],
      ["#/definitions/io.k8s.api.apps.v1.DeploymentStrategy", "retainKeys"],
    );
  });

  test("serves OpenAPI v2 as protobuf if Accept prefers it", () => {
    const answered = (accept: string) => discoveryAnswer({ path: "/openapi/v2", accept }, types);
    const answer = answered("application/com.github.proto-openapi.spec.v2@v1.0+protobuf, application/json");
    assert.is(answer?.contentType, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    assert.ok(Buffer.from(answer?.body ?? "").includes("io.k8s.api.apps.v1.Deployment"));
    assert.is(answered("application/json;q=1, */*")?.contentType, "application/json");
    assert.throws(() => answered("text/plain"), "only the following media types are accepted");
  });

  test("encodes OpenAPI v2 with the field numbers of gnostic", () => {
    const schema = { type: "object", required: ["a"], maximum: 1.5, "x-a": [{ b: "" }] };
    const bytes = swaggerProtobuf({ swagger: "2.0", definitions: { A: { ...schema, items: { $ref: "#/B" } } } });
    const pieces = [
      ...["0a03322e30", "4a3d0a3b", "0a0141", "1236"],
      ...["39000000000000f83f", "9a010161", "b201080a066f626a656374", "ba01070a050a03232f42"],
      ...["fa01110a03782d61", "120a12082d20623a2022220a"],
    ];
    assert.is(bytes.toString("hex"), pieces.join(""));
  });
});

function bodyOf(path: string): JsonObject {
  return JSON.parse(String(discoveryAnswer({ path, accept: "" }, types)?.body ?? "{}")) as JsonObject;
}

function resourceOf(list: JsonObject, name: string): JsonObject | undefined {
  return (list["resources"] as JsonObject[]).find((resource) => resource["name"] === name);
}

function referencesIn(node: JsonValue): string[] {
  if (Array.isArray(node)) return node.flatMap(referencesIn);
  if (!isObject(node)) return [];
  const own = typeof node["$ref"] === "string" ? [node["$ref"].slice("#/components/schemas/".length)] : [];
  return [...own, ...Object.values(node).flatMap(referencesIn)];
}
