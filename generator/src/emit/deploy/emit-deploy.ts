// Manifests that install the operator in a cluster, as far as the graph determines them. The others are written once by init and belong to the user.
import { Document, type YAMLMap, isMap, isScalar, visit } from "yaml";
import {
  type ControllerModel,
  type DependentModel,
  type ProjectModel,
  type ResourceModel,
  isKubernetes,
  kindsOf,
} from "../../model/project-model.js";
import { isRecord } from "../../model/schema.js";
import { operatorNameOf } from "../names.js";
import { GENERATED_HEADER, type OutputFile } from "../output-file.js";
import {
  EVERYWHERE,
  type Grant,
  OWN_NAMESPACE,
  type Role,
  type Rule,
  STATES,
  controllerGrants,
  leaderGrants,
  rolesOf,
} from "./rights.js";

/** Options of {@link emitDeploy}. */
interface DeployOptions {
  /**
   * True if the project installs its CRDs with a separate kustomization. Default: false, as in projects of earlier versions
   *
   * The main kustomization of such a project must keep the CRDs: a tool that prunes would delete them, and with them all custom resources.
   */
  readonly hasCrdsFolder?: boolean;
  /** Emits the CRD of a kind. Default: emitCrd */
  readonly crdOf?: typeof emitCrd;
  /** Emits the other manifests of the installation. Default: emitInstallation */
  readonly installationOf?: typeof emitInstallation;
}

/** Paths that the kustomizations list, relative to the folder of generated manifests. */
interface Installation {
  readonly definitions: readonly string[];
  /** Resources of the operator's kustomization. */
  readonly resources: readonly string[];
}

/** Emits the CRDs that the operator installs, its RBAC manifests and admission policies, and the kustomizations. */
export function emitDeploy(
  model: ProjectModel,
  { hasCrdsFolder = false, crdOf = emitCrd, installationOf = emitInstallation }: DeployOptions = {},
): OutputFile[] {
  const kinds = new Map(model.controllers.flatMap(broughtKinds).map((kind) => [crdFileOf(kind), kind]));
  const crds = [...kinds.values()].flatMap(crdOf);
  const definitions = crds.map(({ path }) => path.slice(FOLDER.length)).sort();
  const resources = [...(hasCrdsFolder ? [] : definitions), "rbac.yaml", "admission.yaml"];
  return [...crds, ...installationOf(model, { definitions, resources })];
}

/** Emits the RBAC manifests and admission policies of the operator, and the kustomizations. */
export function emitInstallation(model: ProjectModel, { definitions, resources }: Installation): OutputFile[] {
  return [
    ...emitRbac(model),
    emitAdmission(model),
    emitKustomization(FOLDER, resources),
    emitKustomization(
      `${FOLDER}crds/`,
      definitions.map((path) => path.slice("crds/".length)),
    ),
  ];
}

function emitKustomization(folder: string, resources: readonly string[]): OutputFile {
  const document = new Document({
    apiVersion: "kustomize.config.k8s.io/v1beta1",
    kind: "Kustomization",
    resources,
  });
  return fileOf(`${folder}kustomization.yaml`, { documents: [document] });
}

const FOLDER = "deploy/generated/";

// The CRDs of dependents are installed by the operators of these kinds, and must not be overwritten with another version.
function broughtKinds({ primary, dependents }: ControllerModel): ResourceModel[] {
  return [primary, ...dependents.filter((each) => !isKubernetes(each)).flatMap(kindsOf)];
}

function crdFileOf({ plural, group }: ResourceModel): string {
  return `${FOLDER}crds/${plural}.${group}.yaml`;
}

/** Emits the CRD of a kind; empty if the kind has none. */
export function emitCrd(kind: ResourceModel): OutputFile[] {
  const { crd } = kind;
  if (crd === undefined) return [];
  const document = new Document(withoutPruning(crd), { aliasDuplicateObjects: false });
  return [fileOf(crdFileOf(kind), { documents: [document] })];
}

type Json = { readonly [field: string]: unknown };

const ARGO_CD = "argocd.argoproj.io/sync-options";
const FLUX = "kustomize.toolkit.fluxcd.io/prune";

// Deleting a CRD deletes all custom resources of its kind. Annotations that the user sets take precedence.
function withoutPruning(crd: object): object {
  const metadata = recordIn({ ...crd }, "metadata");
  const annotations = recordIn(metadata, "annotations");
  const stated = typeof annotations[ARGO_CD] === "string" ? annotations[ARGO_CD].split(",") : [];
  const added = ["Prune=false", "Delete=false"].filter(
    (option) => !stated.some((each) => each.trim().startsWith(option.slice(0, option.indexOf("=") + 1))),
  );
  const kept = { [FLUX]: "disabled", ...annotations, [ARGO_CD]: [...stated, ...added].join(",") };
  return { ...crd, metadata: { ...metadata, annotations: kept } };
}

function recordIn(object: Json, field: string): Json {
  const value = object[field];
  return isRecord(value) ? value : {};
}

const API_VERSION = "rbac.authorization.k8s.io/v1";

/** Emits the roles of the operator in its own cluster, and in each other cluster of its dependents, with the reasons for each rule. */
function emitRbac({ packageName, controllers }: ProjectModel): OutputFile[] {
  const name = operatorNameOf(packageName);
  const grants = [...leaderGrants(`${name}-leader`), ...controllers.flatMap(controllerGrants)];
  const clusters = [...new Set(grants.flatMap(({ cluster }) => cluster ?? []))].sort();
  return [
    fileOf("deploy/generated/rbac.yaml", {
      intro:
        "Permissions of the operator: those that its graph needs, and spec.rbac.extra. The comment of each rule lists what needs it.",
      documents: [serviceAccount(name), ...objectsOf(name, inCluster(grants, undefined), controllers)],
    }),
    ...clusters.map((cluster) =>
      fileOf(`deploy/generated/clusters/${cluster}.yaml`, {
        intro:
          `Permissions of the operator in cluster "${cluster}". Apply them there, and bind them to the user of the ` +
          "kubeconfig of the operator.",
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

// Pods only get the token if they request it.
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

// Prints lists of strings on one line.
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

// The admission policies that protect links.
//
// The runtime finds its objects by labels and annotations with the prefix gen-operator.dev/, which anyone who can write the objects could forge. The
// policy queries the authorizer instead of comparing user names, so that kustomize and Helm can rename it together with its bindings, and
// cluster-admin needs no exemption. The role is in a separate file, so that a rollback of rbac.yaml does not remove it.

const ADMISSION = "admissionregistration.k8s.io/v1";
const RBAC = { apiVersion: "rbac.authorization.k8s.io/v1", apiGroup: "rbac.authorization.k8s.io" } as const;
const PREFIX = "gen-operator.dev/";
/** Labels that name a controller. Earlier versions used an annotation for the first one. */
const CONTROLLER_KEYS = [`${PREFIX}controller`, `${PREFIX}external-state`];
/** The annotation that users may set. */
const PAUSED = `${PREFIX}paused`;

/** Kubernetes controllers that copy labels or annotations from objects of one kind to another. */
const COPIES: readonly {
  readonly to: string;
  readonly from: readonly string[];
  readonly accounts: readonly string[];
}[] = [
  { to: "apps/replicasets", from: ["apps/deployments"], accounts: ["deployment-controller"] },
  {
    to: "apps/controllerrevisions",
    from: ["apps/daemonsets", "apps/statefulsets"],
    accounts: ["daemon-set-controller", "statefulset-controller"],
  },
  { to: "/endpoints", from: ["/services"], accounts: ["endpoint-controller"] },
  {
    to: "discovery.k8s.io/endpointslices",
    from: ["/services", "/endpoints"],
    accounts: ["endpointslice-controller", "endpointslicemirroring-controller", "endpoint-controller"],
  },
];

const INTRO = [
  "Only the operator may add, change or remove labels and annotations of gen-operator.dev/ on the kinds that it reads and writes, except for the",
  "annotation gen-operator.dev/paused. Without this policy, any client that can write such an object could pass it off as one that the operator",
  "created for another primary. Clients with all permissions (cluster-admin, system:masters) are exempt. To exempt another client, such as a",
  "backup tool that restores objects with their labels, bind it to the ClusterRole below by a ClusterRoleBinding.",
];

/** Emits the policies for the operator's own cluster. */
function emitAdmission({ packageName, controllers }: ProjectModel): OutputFile {
  const name = operatorNameOf(packageName);
  const documents = [...admissionObjects({ name, controllers }), ...installObjects(name)];
  return fileOf("deploy/generated/admission.yaml", { intro: INTRO.join("\n"), documents });
}

/** Input of {@link admissionObjects}. */
interface AdmissionOptions {
  /** Name of the operator. */
  readonly name: string;
  readonly controllers: readonly ControllerModel[];
  /** Name of another cluster. Default: the cluster of the operator */
  readonly cluster?: string | undefined;
}

/** Returns the policy that reserves labels and annotations of gen-operator.dev/ for the operator, with its binding and its role. */
function admissionObjects({ name: operator, controllers, cluster }: AdmissionOptions): Document[] {
  const name = `${operator}-links`;
  const metadata = { name, labels: labelsOf(operator) };
  const written = new Set(controllers.flatMap((controller) => kindsWrittenBy(controller, cluster)));
  const copies = COPIES.filter(({ to }) => written.has(to));
  // Also protect the kinds from which Kubernetes copies labels or annotations.
  const kinds = new Set([...written, ...copies.flatMap(({ from }) => from)]);
  const names = controllers.flatMap((each) => [each.name, ...(each.settings.formerNames ?? [])]);
  const accounts = [...new Set(copies.flatMap((each) => each.accounts))].sort();
  const role = { apiGroup: RBAC.apiGroup, kind: "ClusterRole", name };
  const documents = [
    new Document({
      ...{ apiVersion: RBAC.apiVersion, kind: "ClusterRole", metadata },
      rules: [
        { apiGroups: ["gen-operator.dev"], resources: ["links"], resourceNames: [operator], verbs: ["set"] },
        // For objects that do not name a controller, such as primaries, which several operators may share.
        { apiGroups: ["gen-operator.dev"], resources: ["marks"], verbs: ["set"] },
      ],
    }),
    new Document({
      ...{ apiVersion: RBAC.apiVersion, kind: "ClusterRoleBinding", metadata },
      roleRef: role,
      subjects: [
        { kind: "ServiceAccount", name: operator, namespace: namespaceOf(operator) },
        ...accounts.map((account) => ({ kind: "ServiceAccount", name: account, namespace: "kube-system" })),
      ],
    }),
    new Document({
      ...{ apiVersion: ADMISSION, kind: "ValidatingAdmissionPolicy", metadata },
      spec: {
        failurePolicy: "Fail",
        matchConstraints: { resourceRules: rulesOf(kinds) },
        variables: [{ name: "own", expression: `['${names.join("', '")}']` }, ...VARIABLES],
        validations: [
          { expression: expressionFor(operator), reason: "Forbidden", messageExpression: messageFor(name) },
        ],
      },
    }),
    new Document({
      ...{ apiVersion: ADMISSION, kind: "ValidatingAdmissionPolicyBinding", metadata },
      spec: { policyName: name, validationActions: ["Deny"] },
    }),
  ];
  return documents.map(withInlineLists);
}

// Prevents a second installation with the same names from taking over the role bindings of the first one.
function installObjects(operator: string): Document[] {
  const name = `${operator}-install`;
  const metadata = { name, labels: labelsOf(operator) };
  const bindings = {
    ...{ apiGroups: [RBAC.apiGroup], apiVersions: ["*"], operations: ["UPDATE"] },
    ...{ resources: ["clusterrolebindings", "rolebindings"], resourceNames: [operator, `${operator}-links`] },
  };
  const accountsOf = (object: string) =>
    `has(${object}.subjects) ? ${object}.subjects.filter(s, s.kind == 'ServiceAccount' && s.name == '${operator}').map(s, s.namespace) : []`;
  const messageExpression =
    `request.name + ' belongs to the operator in namespace ' + variables.before[0] + '. Delete that install first, or give the second one ` +
    `names of its own: nameSuffix in a kustomization'`;
  const documents = [
    new Document({
      ...{ apiVersion: ADMISSION, kind: "ValidatingAdmissionPolicy", metadata },
      spec: {
        failurePolicy: "Fail",
        matchConstraints: { resourceRules: [bindings] },
        variables: [
          { name: "before", expression: accountsOf("oldObject") },
          { name: "after", expression: accountsOf("object") },
        ],
        validations: [
          {
            expression: "variables.before.all(n, n in variables.after)",
            reason: "Forbidden",
            messageExpression,
          },
        ],
      },
    }),
    new Document({
      ...{ apiVersion: ADMISSION, kind: "ValidatingAdmissionPolicyBinding", metadata },
      spec: { policyName: name, validationActions: ["Deny"] },
    }),
  ];
  return documents.map(withInlineLists);
}

/** Returns the kinds whose objects carry labels or annotations of the runtime, as `group/plural`. */
function kindsWrittenBy({ primary, dependents, removed = [] }: ControllerModel, cluster: string | undefined): string[] {
  const own = dependents.flatMap((dependent) => writtenKindsOf(dependent, cluster));
  const old = removed.filter((each) => each.cluster === cluster).map(({ resource }) => resource);
  return [...(cluster === undefined ? [primary] : []), ...own, ...old].map(({ group, plural }) => `${group}/${plural}`);
}

function writtenKindsOf(dependent: DependentModel, cluster: string | undefined) {
  if (isKubernetes(dependent)) {
    // The runtime sets no labels or annotations on an object that is referenced by name.
    const own = dependent.cluster === cluster && dependent.ref === undefined ? [dependent.resource] : [];
    // `mode: once` is recorded in a ConfigMap next to the primary, wherever the object is.
    return dependent.mode === "once" && cluster === undefined ? [...own, STATES.configMap] : own;
  }
  const { state } = dependent.external;
  if (cluster !== undefined || state === undefined || state.kind === "status") return [];
  return [state.kind === "resource" ? state.resource : STATES[state.kind]];
}

function rulesOf(kinds: ReadonlySet<string>): object[] {
  const groups = new Map<string, string[]>();
  for (const kind of [...kinds].sort()) {
    const [group = "", plural = ""] = kind.split("/");
    // A write of a subresource, such as pods/status, can also change annotations.
    groups.set(group, [...(groups.get(group) ?? []), plural, `${plural}/*`]);
  }
  return [...groups].map(([group, resources]) => ({
    ...{ apiGroups: [group], apiVersions: ["*"], operations: ["CREATE", "UPDATE"], resources },
  }));
}

const mapAt = (object: string, field: string) => `has(${object}.metadata.${field}) ? ${object}.metadata.${field} : {}`;

/** Returns the CEL expression for the keys that a write adds, changes, or removes. */
function changedIn(now: string, before: string): string {
  const own = "k.startsWith(variables.prefix) && k != variables.paused";
  return (
    `variables.${now}.filter(k, ${own} && !(k in variables.${before} && variables.${before}[k] == variables.${now}[k]))\n` +
    `+ variables.${before}.filter(k, ${own} && !(k in variables.${now}))`
  );
}

const checkOf = (resource: string) => `authorizer.group('gen-operator.dev').${resource}.check('set').allowed()`;

const namedIn = (map: string) => `variables.keys.filter(k, k in variables.${map}).map(k, variables.${map}[k])`;

const VARIABLES = [
  { name: "prefix", expression: `'${PREFIX}'` },
  { name: "paused", expression: `'${PAUSED}'` },
  { name: "keys", expression: `['${CONTROLLER_KEYS.join("', '")}']` },
  { name: "labels", expression: mapAt("object", "labels") },
  { name: "annotations", expression: mapAt("object", "annotations") },
  { name: "oldLabels", expression: `oldObject != null && ${mapAt("oldObject", "labels")}` },
  { name: "oldAnnotations", expression: `oldObject != null && ${mapAt("oldObject", "annotations")}` },
  {
    name: "changed",
    expression: `${changedIn("labels", "oldLabels")}\n+ ${changedIn("annotations", "oldAnnotations")}`,
  },
  {
    name: "controllers",
    expression: ["labels", "oldLabels", "annotations", "oldAnnotations"].map(namedIn).join("\n+ "),
  },
];

// Objects that name another controller are left to the policy of its operator, whose version may have none.
const expressionFor = (operator: string) =>
  `size(variables.changed) == 0
|| (size(variables.controllers) > 0 && !variables.controllers.exists(c, c in variables.own))
|| (size(variables.controllers) == 0 && ${checkOf("resource('marks')")})
|| ${checkOf(`resource('links').name('${operator}')`)}`;

const messageFor = (role: string) =>
  `'only the operator may set ' + variables.changed[0] + ': the object would be taken for one of its own. ' +\n` +
  `'To let ' + request.userInfo.username + ' set it, bind it to ClusterRole ${role}'`;

/** A permission that an operator requires: a verb on a resource, or on a non-resource path. */
export interface RequiredRight {
  readonly verb: string;
  /** Absent for a path. */
  readonly group?: string;
  /** Plural of a kind, or a subresource such as `webpages/status`. */
  readonly resource?: string;
  /** Name of the only object to which the permission applies. Default: all */
  readonly name?: string;
  /** Default: all namespaces */
  readonly namespace?: string;
  readonly path?: string;
  readonly because: string;
}

/** Returns the permissions of `deploy/generated/rbac.yaml` in the operator's own cluster, one verb at a time. */
export function requiredRights({ packageName, controllers }: ProjectModel): RequiredRight[] {
  const name = operatorNameOf(packageName);
  const grants = [...leaderGrants(`${name}-leader`), ...controllers.flatMap(controllerGrants)];
  const roles = rolesOf(
    grants.filter(({ cluster }) => cluster === undefined),
    controllers,
  );
  return roles.flatMap((role) => role.rules.flatMap((rule) => rightsOf(rule, placeOf(role, name))));
}

/** Returns the user name of the operator's service account. */
export function operatorUserOf({ packageName }: ProjectModel): string {
  const name = operatorNameOf(packageName);
  return `system:serviceaccount:${namespaceOf(name)}:${name}`;
}

function placeOf({ place }: Role, name: string): Pick<RequiredRight, "namespace"> {
  if (place === EVERYWHERE) return {};
  return { namespace: place === OWN_NAMESPACE ? namespaceOf(name) : place };
}

function rightsOf(rule: Rule, place: Pick<RequiredRight, "namespace">): RequiredRight[] {
  const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [], verbs } = rule;
  const because = rule.because.join(", ");
  const names = resourceNames.length === 0 ? [{}] : resourceNames.map((name) => ({ name }));
  return verbs.flatMap((verb) => [
    ...nonResourceURLs.map((path) => ({ verb, path, because })),
    ...apiGroups.flatMap((group) =>
      resources.flatMap((resource) => names.map((name) => ({ verb, group, resource, ...name, ...place, because }))),
    ),
  ]);
}

// Common parts of all generated manifests.

/** Returns the namespace of an operator. */
function namespaceOf(name: string): string {
  return `${name}-system`;
}

/** Returns the labels of all objects of an installation. */
function labelsOf(name: string): { readonly [label: string]: string } {
  return { "app.kubernetes.io/name": name };
}

/** Returns a generated file of YAML documents. */
function fileOf(
  path: string,
  { intro, documents }: { readonly intro?: string; readonly documents: readonly Document[] },
): OutputFile {
  const header = [GENERATED_HEADER.slice("// ".length), ...(intro === undefined ? [] : ["", ...intro.split("\n")])];
  const comment = header.map((line) => `#${line === "" ? "" : ` ${line}`}\n`).join("");
  const texts = documents.map((document) => document.toString({ lineWidth: 0, flowCollectionPadding: false }));
  return { path, owner: "generator", content: `${comment}\n${texts.join("---\n")}` };
}

/** Prints lists of scalars on one line. */
function withInlineLists(document: Document): Document {
  visit(document, {
    Seq: (_key, list) => {
      if (list.items.every(isScalar)) list.flow = true;
    },
  });
  return document;
}
