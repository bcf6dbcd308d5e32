import { parseAllDocuments } from "yaml";
import { emitDeploy } from "#generator/emit/deploy/emit-deploy.js";
import type { DependentModel, ResourceModel } from "#generator/model/project-model.js";
import { dependentOf, externalOf } from "../../../../support/runtime/dependent-models.js";
import { thingOf } from "../../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../../support/suite.js";

/** What is looked at of the objects of the policy. */
interface Manifest {
  readonly rules?: readonly { readonly resourceNames?: readonly string[] }[];
  readonly subjects?: readonly { readonly name: string }[];
  readonly spec?: {
    readonly variables: readonly { readonly expression: string }[];
    readonly matchConstraints: {
      readonly resourceRules: readonly {
        readonly apiGroups: readonly string[];
        readonly resources: readonly string[];
      }[];
    };
  };
}

function kindOf(kind: string): ResourceModel {
  const plural = `${kind.toLowerCase()}s`;
  const crd = { kind: "CustomResourceDefinition", metadata: { name: `${plural}.example.com` } };
  return { ...thingOf({ type: "object" }, { crd }), kind, plural, group: "example.com" };
}

suite("emitDeploy", (test) => {
  test("emits the CRDs of primaries and of kinds that store state, but not of other dependents", () => {
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
        .filter((path) => path.includes("/crds/") && !path.endsWith("kustomization.yaml"))
        .sort(),
      crds.map((path) => folder + path),
    );
    const [kustomization] = parseAllDocuments(
      files.find(({ path }) => path === `${folder}kustomization.yaml`)?.content ?? "",
    );
    assert.equal((kustomization?.toJS() as { resources: string[] }).resources, [
      ...crds,
      "rbac.yaml",
      "admission.yaml",
    ]);
  });

  test("lists the CRDs as resources unless the project has a kustomization for them", () => {
    const nothing = { eventSources: [], filters: {}, settings: {} };
    const controller = { name: "shop", primary: kindOf("Shop"), dependents: [], ...nothing, specFile: "workflow.yaml" };
    const model = { packageName: "operator", resources: [], controllers: [controller] };
    const resourcesIn = (folder: string, hasCrdsFolder: boolean) => {
      const files = emitDeploy(model, { hasCrdsFolder });
      const text = files.find(({ path }) => path === `${folder}kustomization.yaml`)?.content ?? "";
      return (parseAllDocuments(text)[0]?.toJS() as { resources: string[] }).resources;
    };
    const others = ["rbac.yaml", "admission.yaml"];
    assert.equal(resourcesIn("deploy/generated/", false), ["crds/shops.example.com.yaml", ...others]);
    assert.equal(resourcesIn("deploy/generated/", true), others);
    for (const hasCrdsFolder of [false, true])
      assert.equal(resourcesIn("deploy/generated/crds/", hasCrdsFolder), ["shops.example.com.yaml"]);
  });

  test("annotates CRDs against pruning by Argo CD and Flux, and keeps annotations of the user", () => {
    const annotationsOf = (annotations?: object) => {
      const crd = { kind: "CustomResourceDefinition", metadata: { name: "shops.example.com", annotations } };
      const primary = { ...kindOf("Shop"), crd };
      const nothing = { eventSources: [], filters: {}, settings: {} };
      const controller = { name: "shop", primary, dependents: [], ...nothing, specFile: "workflow.yaml" };
      const files = emitDeploy({ packageName: "operator", resources: [], controllers: [controller] });
      const text = files.find(({ path }) => path.endsWith("/shops.example.com.yaml"))?.content ?? "";
      return (parseAllDocuments(text)[0]?.toJS() as { metadata: { annotations: object } }).metadata.annotations;
    };
    const [argo, flux] = ["argocd.argoproj.io/sync-options", "kustomize.toolkit.fluxcd.io/prune"];
    assert.equal(annotationsOf(), { [argo]: "Prune=false,Delete=false", [flux]: "disabled" });
    assert.equal(annotationsOf({ [argo]: "ServerSideApply=true, Prune=true", a: "b" }), {
      ...{ [argo]: "ServerSideApply=true, Prune=true,Delete=false", [flux]: "disabled", a: "b" },
    });
    assert.equal(annotationsOf({ [flux]: "enabled" }), { [argo]: "Prune=false,Delete=false", [flux]: "enabled" });
  });

  test("protects the kinds with labels and annotations of the runtime by an admission policy", () => {
    const nothing = { eventSources: [], filters: {} };
    const settings = { formerNames: ["store"] };
    const kindAt = (group: string, kind: string) => ({ ...kindOf(kind), group });
    const controllerOf = (dependents: readonly DependentModel[]) => ({
      ...{ name: "shop", primary: kindOf("Shop"), dependents, settings, ...nothing, specFile: "workflow.yaml" },
      removed: [{ name: "old", resource: kindAt("batch", "Job"), deletion: "ordered" as const }],
    });
    const policyOf = (dependents: readonly DependentModel[]) => {
      const files = emitDeploy({ packageName: "operator", resources: [], controllers: [controllerOf(dependents)] });
      const text = files.find(({ path }) => path === "deploy/generated/admission.yaml")?.content ?? "";
      const [role, binding, policy] = parseAllDocuments(text).map((each) => each.toJS() as Manifest);
      return {
        right: role?.rules?.[0]?.resourceNames,
        names: policy?.spec?.variables[0]?.expression,
        accounts: binding?.subjects?.map(({ name }) => name),
        kinds: policy?.spec?.matchConstraints.resourceRules.flatMap(({ apiGroups, resources }) =>
          resources.filter((each) => !each.endsWith("/*")).map((each) => [...apiGroups, each].join("/")),
        ),
      };
    };
    const account = externalOf("account", { kind: "inbound" });
    const kept = { ...account, external: { ...account.external, state: { kind: "secret" } as const } };
    const constant = { kind: "constant", text: "a" } as const;
    const named = { ...dependentOf("named", kindAt("", "Node")), ref: { name: constant } };
    const dependents = [dependentOf("certificate", kindOf("Certificate")), kept, named];
    assert.equal(policyOf(dependents), {
      right: ["operator"],
      names: "['shop', 'store']",
      accounts: ["operator"],
      kinds: ["/secrets", "batch/jobs", "example.com/certificates", "example.com/shops"],
    });
    // What has run once is recorded in a ConfigMap beside the primary, also if it runs in another cluster.
    const job = { ...dependentOf("run", kindAt("batch", "CronJob")), mode: "once" as const };
    assert.equal(policyOf([job]).kinds, ["/configmaps", "batch/cronjobs", "batch/jobs", "example.com/shops"]);
    assert.equal(policyOf([{ ...job, bulk: {} }]).kinds, policyOf([job]).kinds);
    assert.equal(policyOf([{ ...job, cluster: "edge" }]).kinds, ["/configmaps", "batch/jobs", "example.com/shops"]);
    const slices = policyOf([dependentOf("slice", kindAt("discovery.k8s.io", "EndpointSlice"))]);
    assert.equal(slices.kinds, [
      ...["/endpoints", "/services", "batch/jobs", "discovery.k8s.io/endpointslices", "example.com/shops"],
    ]);
    assert.equal(slices.accounts, [
      ...["operator", "endpoint-controller", "endpointslice-controller", "endpointslicemirroring-controller"],
    ]);
  });
});
