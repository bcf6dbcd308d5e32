import { Document, isMap, type YAMLMap } from "yaml";
import type { ControllerModel, ProjectModel } from "../../model/project-model.js";
import { operatorNameOf } from "../naming.js";
import type { OutputFile } from "../files/output-file.js";
import { admissionObjects } from "./emit-admission.js";
import { controllerGrants, EVERYWHERE, leaderGrants, OWN_NAMESPACE, type Grant } from "./grants.js";
import { fileOf, labelsOf, namespaceOf } from "./manifests.js";
import { rolesOf, type Role } from "./roles.js";

const API_VERSION = "rbac.authorization.k8s.io/v1";

/** Emits what the operator may do, in its own cluster and in each of the others where its dependents live, with the reason of every rule. */
export function emitRbac({ packageName, controllers }: ProjectModel): OutputFile[] {
  const name = operatorNameOf(packageName);
  const grants = [...leaderGrants(`${name}-leader`), ...controllers.flatMap(controllerGrants)];
  const clusters = [...new Set(grants.flatMap(({ cluster }) => cluster ?? []))].sort();
  return [
    fileOf("deploy/generated/rbac.yaml", {
      intro: "What the operator may do: what its graph needs, and spec.rbac.extra. Each rule says who needs it.",
      documents: [serviceAccount(name), ...objectsOf(name, inCluster(grants, undefined), controllers)],
    }),
    ...clusters.map((cluster) =>
      fileOf(`deploy/generated/clusters/${cluster}.yaml`, {
        intro:
          `What the operator may do in cluster "${cluster}". Apply it there, and let the identity be a subject that the operator's ` +
          "kubeconfig names.",
        documents: [
          ...objectsOf(name, inCluster(grants, cluster), []),
          ...admissionObjects({ name, controllers, cluster }),
        ],
      }),
    ),
  ];
}

function inCluster(grants: readonly Grant[], wanted: string | undefined): Grant[] {
  return grants.filter(({ cluster }) => cluster === wanted);
}

function objectsOf(name: string, grants: readonly Grant[], controllers: readonly ControllerModel[]): Document[] {
  return rolesOf(grants, controllers).flatMap((role) => [roleOf(name, role), bindingOf(name, role)]);
}

// No pod gets its token unasked.
function serviceAccount(name: string): Document {
  return new Document({
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: metadataOf(name, OWN_NAMESPACE),
    automountServiceAccountToken: false,
  });
}

function metadataOf(name: string, place: string): object {
  const namespace = place === OWN_NAMESPACE ? namespaceOf(name) : place;
  return { name, ...(place === EVERYWHERE ? {} : { namespace }), labels: labelsOf(name) };
}

function roleOf(name: string, { place, rules }: Role): Document {
  const document = new Document({
    apiVersion: API_VERSION,
    kind: place === EVERYWHERE ? "ClusterRole" : "Role",
    metadata: metadataOf(name, place),
    rules: rules.map(({ because: _, ...rule }) => rule),
  });
  for (const [index, { because }] of rules.entries()) {
    const node = document.getIn(["rules", index], true);
    if (isMap(node)) annotate(node, because);
  }
  return document;
}

// Lists of words stand in one line.
function annotate(rule: YAMLMap, because: readonly string[]): void {
  rule.commentBefore = because.map((each) => ` ${each}`).join("\n");
  for (const { value } of rule.items) if (value !== null) (value as { flow?: boolean }).flow = true;
}

function bindingOf(name: string, { place }: Role): Document {
  const kind = place === EVERYWHERE ? "ClusterRole" : "Role";
  return new Document({
    apiVersion: API_VERSION,
    kind: `${kind}Binding`,
    metadata: metadataOf(name, place),
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name },
    subjects: [{ kind: "ServiceAccount", name, namespace: namespaceOf(name) }],
  });
}
