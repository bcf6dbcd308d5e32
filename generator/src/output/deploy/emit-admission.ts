// Who may link objects to primaries. The runtime finds its objects by labels and annotations of gen-operator.dev/, which anyone could set
// who may write the objects. The policy asks the authorizer, not for the name of a user: so kustomize and Helm move it with its
// bindings, and cluster-admin needs no exemption. The role stands beside the others, so that a rollback of rbac.yaml leaves it.
import { Document } from "yaml";
import { isKubernetes } from "../../model/dependent-model.js";
import type { ControllerModel, DependentModel, ProjectModel } from "../../model/project-model.js";
import { operatorNameOf } from "../naming.js";
import type { OutputFile } from "../files/output-file.js";
import { STATES } from "./grants.js";
import { fileOf, labelsOf, namespaceOf, withInlineLists } from "./manifests.js";

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
  "Only the operator may add, change or remove labels and annotations of gen-operator.dev/ on the kinds that it reads and writes, but for the",
  "annotation gen-operator.dev/paused, which is yours. Without this policy, whoever may write such an object could pass it off as one that",
  "the operator made for somebody else's resource. Whoever has all rights (cluster-admin, system:masters) is exempt. To exempt somebody else,",
  "such as a backup tool that restores objects with their labels, bind it to the ClusterRole below by a ClusterRoleBinding.",
];

/** Emits the policy for the operator's own cluster. */
export function emitAdmission({ packageName, controllers }: ProjectModel): OutputFile {
  const name = operatorNameOf(packageName);
  const documents = [...admissionObjects({ name, controllers }), ...installObjects(name)];
  return fileOf("deploy/generated/admission.yaml", { intro: INTRO.join("\n"), documents });
}

/** What the policy of an operator is made of. */
export interface AdmissionOptions {
  /** The name of the operator. */
  readonly name: string;
  readonly controllers: readonly ControllerModel[];
  /** Another cluster than the operator's own. */
  readonly cluster?: string | undefined;
}

/** Returns the policy that lets only the operator set labels and annotations of gen-operator.dev/, with its binding and its right. */
export function admissionObjects({ name: operator, controllers, cluster }: AdmissionOptions): Document[] {
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
  const own = dependents.flatMap((dependent) => kindsOf(dependent, cluster));
  const old = removed.filter((each) => each.cluster === cluster).map(({ resource }) => resource);
  return [...(cluster === undefined ? [primary] : []), ...own, ...old].map(({ group, plural }) => `${group}/${plural}`);
}

function kindsOf(dependent: DependentModel, cluster: string | undefined) {
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
