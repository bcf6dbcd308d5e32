import { parseAllDocuments } from "yaml";
import { emitDeploy } from "#generator/output/deploy/emit-deploy.js";
import type { ResourceModel } from "#generator/model/project-model.js";
import { dependentOf, externalOf } from "../../../../support/runtime/dependent-models.js";
import { thingOf } from "../../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../../support/suite.js";

function kindOf(kind: string): ResourceModel {
  const plural = `${kind.toLowerCase()}s`;
  const crd = { kind: "CustomResourceDefinition", metadata: { name: `${plural}.example.com` } };
  return { ...thingOf({ type: "object" }, { crd }), kind, plural, group: "example.com" };
}

suite("the manifests that the graph decides", (test) => {
  test("bring the CRDs of primaries and of kept state, and leave those of dependents to their operators", () => {
    const [shop, certificate, lease] = [kindOf("Shop"), kindOf("Certificate"), kindOf("Lease")];
    const database = externalOf("database", { kind: "inbound" });
    const state = { kind: "resource", resource: lease, path: ["spec", "id"] } as const;
    const dependents = [
      dependentOf("certificate", certificate),
      { ...database, external: { ...database.external, state } },
    ];
    const nothing = { eventSources: [], filters: {}, settings: {} };
    const controller = { name: "shop", primary: shop, dependents, ...nothing, specFile: "workflow.yaml" };
    const files = emitDeploy({ packageName: "operator", resources: [], controllers: [controller] });
    const crds = ["crds/leases.example.com.yaml", "crds/shops.example.com.yaml"];
    const folder = "deploy/generated/";
    assert.equal(
      files
        .map(({ path }) => path)
        .filter((path) => path.includes("/crds/"))
        .sort(),
      crds.map((path) => folder + path),
    );
    const [kustomization] = parseAllDocuments(
      files.find(({ path }) => path === `${folder}kustomization.yaml`)?.content ?? "",
    );
    assert.equal((kustomization?.toJS() as { resources: string[] }).resources, [...crds, "rbac.yaml"]);
  });
});
