import { servedTypesOf } from "#apiserver/builtin/served-type.js";
import { builtinTypes } from "#apiserver/strategies/table.js";
import { compareVersions } from "#apiserver/builtin/versions.js";
import { assert, suite } from "../../../support/suite.js";

const types = builtinTypes();

suite("strategy of a built-in type", (test) => {
  // The sets below were probed type by type on a 1.36.3 server.
  test("increments the generation of the same kinds, for the same changes, as a kube-apiserver", () => {
    const raising = types.filter(({ strategy }) => strategy.generation !== "never");
    const special = raising.filter(({ strategy }) => strategy.generation !== "spec");
    assert.equal(
      new Set(raising.filter((type) => !special.includes(type)).map(nameOf)),
      new Set([
        "cronjobs.batch",
        "customresourcedefinitions.apiextensions.k8s.io",
        "daemonsets.apps",
        "deviceclasses.resource.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "ingressclasses.networking.k8s.io",
        "ingresses.networking.k8s.io",
        "jobs.batch",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
        "pods",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "replicasets.apps",
        "replicationcontrollers",
        "resourceslices.resource.k8s.io",
        "statefulsets.apps",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
      ]),
    );
    assert.equal(Object.fromEntries(special.map((type) => [nameOf(type), type.strategy.generation])), {
      "csidrivers.storage.k8s.io": "spec-from-zero",
      "deployments.apps": "spec-and-annotations",
      "endpointslices.discovery.k8s.io": "outside-metadata-and-labels",
      "mutatingwebhookconfigurations.admissionregistration.k8s.io": "outside-metadata-as-given",
      "networkpolicies.networking.k8s.io": "spec-as-given",
      podtemplates: "outside-metadata",
      "priorityclasses.scheduling.k8s.io": "first",
      "validatingwebhookconfigurations.admissionregistration.k8s.io": "outside-metadata-as-given",
    });
  });

  test("allows create on update for the same kinds as a kube-apiserver", () => {
    assert.equal(namesWhere("createsOnUpdate"), [
      "clusterrolebindings.rbac.authorization.k8s.io",
      "clusterroles.rbac.authorization.k8s.io",
      "endpoints",
      "events",
      "events.events.k8s.io",
      "leases.coordination.k8s.io",
      "limitranges",
      "rolebindings.rbac.authorization.k8s.io",
      "roles.rbac.authorization.k8s.io",
      "runtimeclasses.node.k8s.io",
      "services",
    ]);
  });

  test("returns the deleted object for the same kinds as a kube-apiserver", () => {
    assert.equal(namesWhere("returnsDeletedObject"), [
      "csidrivers.storage.k8s.io",
      "csinodes.storage.k8s.io",
      "deviceclasses.resource.k8s.io",
      "namespaces",
      "persistentvolumeclaims",
      "persistentvolumes",
      "pods",
      "podtemplates",
      "resourceclaims.resource.k8s.io",
      "resourceclaimtemplates.resource.k8s.io",
      "resourcequotas",
      "resourceslices.resource.k8s.io",
      "serviceaccounts",
      "services",
      "storageclasses.storage.k8s.io",
      "volumeattachments.storage.k8s.io",
      "volumeattributesclasses.storage.k8s.io",
    ]);
  });

  test("has a schema for every built-in type", () => {
    assert.equal(types.filter(({ schemaName }) => schemaName === undefined).map(nameOf), []);
  });

  test("sorts versions by Kubernetes version priority", () => {
    const want = ["v10", "v2", "v1", "v3beta1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo"];
    assert.equal([...want].reverse().sort(compareVersions), want);
  });

  test("serves only the served versions of a CustomResourceDefinition", () => {
    const versions = [
      { name: "v1alpha1", served: false },
      { name: "v1", served: true, storage: true, subresources: { status: {} } },
      { name: "v2", served: true },
    ];
    const names = { kind: "Widget", plural: "widgets" };
    const [v2, v1, ...rest] = servedTypesOf({ spec: { group: "example.com", scope: "Cluster", names, versions } });
    assert.equal(rest, []);
    assert.equal([v2?.version, v2?.custom?.storage, v2?.strategy.resetOnMain], ["v2", false, []]);
    assert.equal([v1?.version, v1?.custom?.storage, v1?.strategy.resetOnMain], ["v1", true, [".status"]]);
    assert.equal([v1?.namespaced, v1?.listKind, v1?.singular], [false, "WidgetList", "widget"]);
  });
});

function namesWhere(property: "createsOnUpdate" | "returnsDeletedObject"): string[] {
  return types
    .filter(({ strategy }) => strategy[property])
    .map(nameOf)
    .sort();
}

function nameOf({ plural, group }: { plural: string; group: string }): string {
  return group === "" ? plural : `${plural}.${group}`;
}
