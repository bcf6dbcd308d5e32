// What runs an operator in a cluster, as far as the graph decides it; the rest is the user's.
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

/** What is known of a project besides its model. */
interface DeployOptions {
  /**
   * Whether the project installs its CRDs by a kustomization of their own. Default: false, as in projects of earlier versions. Their
   * kustomization keeps the CRDs, as whatever prunes would delete them with all custom resources.
   */
  readonly hasCrdsFolder?: boolean;
  /** Emits the CRD of a kind. Default: emitCrd */
  readonly crdOf?: typeof emitCrd;
  /** Emits what installs the operator. Default: emitInstallation */
  readonly installationOf?: typeof emitInstallation;
}

/** The files that kustomizations list, below their folder. */
interface Installation {
  readonly definitions: readonly string[];
  /** What the kustomization of the operator has. */
  readonly resources: readonly string[];
}

/** Emits the CRDs that the operator brings, what it may do, what nobody else may, and the kustomization that has all of it. */
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

/** Emits the rights of the operator, and the kustomizations. */
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

// The kinds of dependents come with the operators that act on them, whose versions of the CRDs must not be overwritten.
function broughtKinds({ primary, dependents }: ControllerModel): ResourceModel[] {
  return [primary, ...dependents.filter((each) => !isKubernetes(each)).flatMap(kindsOf)];
}

function crdFileOf({ plural, group }: ResourceModel): string {
  return `${FOLDER}crds/${plural}.${group}.yaml`;
}

/** Emits the CRD of a kind, if it is known. */
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

/** Emits what the operator may do, in its own cluster and in each of the others where its dependents live, with the reason of every rule. */
function emitRbac({ packageName, controllers }: ProjectModel): OutputFile[] {
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

// Who may link objects to primaries. The runtime finds its objects by labels and annotations of gen-operator.dev/, which anyone could set
// who may write the objects. The policy asks the authorizer, not for the name of a user: so kustomize and Helm move it with its
// bindings, and cluster-admin needs no exemption. The role stands beside the others, so that a rollback of rbac.yaml leaves it.

const ADMISSION = "admissionregistration.k8s.io/v1";
const RBAC = { apiVersion: "rbac.authorization.k8s.io/v1", apiGroup: "rbac.authorization.k8s.io" } as const;
const PREFIX = "gen-operator.dev/";
/** The labels that name a controller; earlier versions had the first as an annotation. */
const CONTROLLER_KEYS = [`${PREFIX}controller`, `${PREFIX}external-state`];
/** The annotation that is the user's. */
const PAUSED = `${PREFIX}paused`;

/** Controllers of Kubernetes that copy labels or annotations of one kind to objects of another. */
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
  "annotation gen-operator.dev/paused. Without this policy, any client that may write such an object could pass it off as one that the operator",
  "created for another primary. Clients with all permissions (cluster-admin, system:masters) are exempt. To exempt another client, such as a",
  "backup tool that restores objects with their labels, bind it to the ClusterRole below by a ClusterRoleBinding.",
];

/** Emits the policy for the operator's own cluster. */
function emitAdmission({ packageName, controllers }: ProjectModel): OutputFile {
  const name = operatorNameOf(packageName);
  const documents = [...admissionObjects({ name, controllers }), ...installObjects(name)];
  return fileOf("deploy/generated/admission.yaml", { intro: INTRO.join("\n"), documents });
}

/** What the policy of an operator is made of. */
interface AdmissionOptions {
  /** The name of the operator. */
  readonly name: string;
  readonly controllers: readonly ControllerModel[];
  /** Another cluster than the operator's own. */
  readonly cluster?: string | undefined;
}

/** Returns the policy that lets only the operator set labels and annotations of gen-operator.dev/, with its binding and its right. */
function admissionObjects({ name: operator, controllers, cluster }: AdmissionOptions): Document[] {
  const name = `${operator}-links`;
  const metadata = { name, labels: labelsOf(operator) };
  const written = new Set(controllers.flatMap((controller) => kindsWrittenBy(controller, cluster)));
  const copies = COPIES.filter(({ to }) => written.has(to));
  // What is copied must not be free to set either.
  const kinds = new Set([...written, ...copies.flatMap(({ from }) => from)]);
  const names = controllers.flatMap((each) => [each.name, ...(each.settings.formerNames ?? [])]);
  const accounts = [...new Set(copies.flatMap((each) => each.accounts))].sort();
  const role = { apiGroup: RBAC.apiGroup, kind: "ClusterRole", name };
  const documents = [
    new Document({
      ...{ apiVersion: RBAC.apiVersion, kind: "ClusterRole", metadata },
      rules: [
        { apiGroups: ["gen-operator.dev"], resources: ["links"], resourceNames: [operator], verbs: ["set"] },
        // On objects that name no controller, such as primaries, which several operators may have in common.
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

// A second install whose objects outside its namespace have the names of the first one's would take the rights of the first one away.
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
    // An object that is read by its name carries nothing of the runtime.
    const own = dependent.cluster === cluster && dependent.ref === undefined ? [dependent.resource] : [];
    // What has run once is recorded beside the primary, wherever the object is.
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
    // A write of a subresource, such as pods/status, can change annotations, too.
    groups.set(group, [...(groups.get(group) ?? []), plural, `${plural}/*`]);
  }
  return [...groups].map(([group, resources]) => ({
    ...{ apiGroups: [group], apiVersions: ["*"], operations: ["CREATE", "UPDATE"], resources },
  }));
}

const mapAt = (object: string, field: string) => `has(${object}.metadata.${field}) ? ${object}.metadata.${field} : {}`;

/** Returns the keys that a write adds, changes or removes. */
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

// Objects that name another controller are left to the policy of its operator, which may be of a version without one.
const expressionFor = (operator: string) =>
  `size(variables.changed) == 0
|| (size(variables.controllers) > 0 && !variables.controllers.exists(c, c in variables.own))
|| (size(variables.controllers) == 0 && ${checkOf("resource('marks')")})
|| ${checkOf(`resource('links').name('${operator}')`)}`;

const messageFor = (role: string) =>
  `'only the operator may set ' + variables.changed[0] + ': the object would be taken for one of its own. ' +\n` +
  `'To let ' + request.userInfo.username + ' set it, bind it to ClusterRole ${role}'`;

/** One thing that an operator has to be allowed: a verb on a resource, or on a path of the API server. */
export interface RequiredRight {
  readonly verb: string;
  /** Absent for a path. */
  readonly group?: string;
  /** The plural of a kind, or a part of it: `webpages/status`. */
  readonly resource?: string;
  /** The only object that it is about. */
  readonly name?: string;
  /** Default: all namespaces. */
  readonly namespace?: string;
  readonly path?: string;
  readonly because: string;
}

/** Returns what the rules of `deploy/generated/rbac.yaml` allow in the operator's own cluster, one verb at a time. */
export function requiredRights({ packageName, controllers }: ProjectModel): RequiredRight[] {
  const name = operatorNameOf(packageName);
  const grants = [...leaderGrants(`${name}-leader`), ...controllers.flatMap(controllerGrants)];
  const roles = rolesOf(
    grants.filter(({ cluster }) => cluster === undefined),
    controllers,
  );
  return roles.flatMap((role) => role.rules.flatMap((rule) => rightsOf(rule, placeOf(role, name))));
}

/** Returns the user that an operator is in its cluster. */
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

// What all generated manifests have in common.

/** Returns the namespace of an operator. */
function namespaceOf(name: string): string {
  return `${name}-system`;
}

/** Returns the labels that all objects of an operator have. */
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

/** Prints lists of words in one line each. */
function withInlineLists(document: Document): Document {
  visit(document, {
    Seq: (_key, list) => {
      if (list.items.every(isScalar)) list.flow = true;
    },
  });
  return document;
}
