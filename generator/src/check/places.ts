import { type Diagnostic, formatPosition, quote } from "../diagnostic.js";
import { constantValueOf } from "../model/expression.js";
import {
  type ResolvedController,
  type ResolvedDependent,
  type ResolvedEventSource,
  checkOfController,
  formatKind,
  isCollected,
  subjectOf,
} from "../model/resolved-project.js";
import type { ExtraRuleSpec, NamespacesSpec } from "../read/workflow-spec.js";
import {
  DEPENDENT_NAMESPACE,
  FOREIGN_NAMESPACE,
  OWNER_CLUSTER,
  OWNER_NAMESPACE,
  POWERFUL_RIGHT,
  REFERENCE,
  SAME_OBJECT,
} from "./rules.js";

/**
 * Reports owner references across namespaces. The garbage collector treats such an owner as absent and deletes the dependent.
 * https://kubernetes.io/docs/concepts/architecture/garbage-collection/#owners-dependents
 */
export const checkOwnerNamespace = checkOfController((controller) => {
  const { spec, primary, dependents } = controller;
  if (primary?.scope !== "Namespaced") return [];
  return dependents.flatMap((dependent): Diagnostic[] => {
    if (!isCollected(dependent.spec)) return [];
    const problem = problemOf(dependent, controller);
    if (problem === undefined) return [];
    return [
      {
        ...OWNER_NAMESPACE.violation,
        message: `dependent ${quote(dependent.name)} ${problem}`,
        ...spec.document.valueAt([
          ...dependent.path,
          dependent.spec.namespace === undefined ? "resource" : "namespace",
        ]),
        hint: "set deletion: ordered to have the operator delete it, or deletion: orphan to keep it",
      },
    ];
  });
});

function problemOf(
  { resource, spec }: ResolvedDependent,
  { spec: { controller }, primary }: ResolvedController,
): string | undefined {
  const cannot = `cannot be owned by a ${primary?.kind ?? "primary"}`;
  if (resource?.scope === "Cluster")
    return `${cannot}: ${resource.kind} is cluster-scoped, and its owners must be cluster-scoped too`;
  const { namespace } = spec;
  const { namespaces = [] } = controller;
  const isOnlyOne = Array.isArray(namespaces) && namespaces.length === 1 && namespaces[0] === namespace;
  if (namespace === undefined || isOnlyOne) return undefined;
  return `in namespace ${quote(namespace)} ${cannot}: owner references cannot cross namespaces`;
}

/** Reports owner references to a primary in another cluster. The garbage collector there treats the owner as absent and deletes the dependent. */
export const checkOwnerCluster = checkOfController(({ spec: { document }, primary, dependents }) =>
  dependents.flatMap(({ name, spec: { cluster, deletion }, path }): Diagnostic[] => {
    if (cluster === undefined || deletion !== "garbageCollected") return [];
    return [
      {
        ...OWNER_CLUSTER.violation,
        message: `dependent ${quote(name)} in cluster ${quote(cluster)} cannot be owned by a ${primary?.kind ?? "primary"}: owner references cannot cross clusters`,
        ...document.valueAt([...path, "deletion"]),
        hint: "remove deletion to have the operator delete it, or set deletion: orphan to keep it",
      },
    ];
  }),
);

/** Reports namespaced dependents of cluster-scoped primaries without a namespace, and cluster-scoped dependents with one. */
export const checkDependentNamespace = checkOfController(({ spec: { document }, primary, dependents }) =>
  dependents.flatMap(({ name, spec, path, resource }): Diagnostic[] => {
    const fail = (field: string, message: string, hint: string): Diagnostic[] => [
      { ...DEPENDENT_NAMESPACE.violation, message, ...document.valueAt([...path, field]), hint },
    ];
    // `ref` sets the namespace.
    if (spec.ref !== undefined) return [];
    if (resource?.scope === "Cluster" && spec.namespace !== undefined)
      return fail(
        "namespace",
        `dependent ${quote(name)} has a namespace, but ${resource.kind} is cluster-scoped`,
        "remove namespace",
      );
    if (resource?.scope !== "Namespaced" || primary?.scope !== "Cluster" || spec.namespace !== undefined) return [];
    return fail(
      "resource",
      `namespace is required for dependent ${quote(name)}: ${resource.kind} is namespaced, but the primary ${primary.kind} is cluster-scoped`,
      "set namespace to the name of a namespace",
    );
  }),
);

/** Characters of object names. Some kinds, such as those of RBAC, allow more than DNS names. */
const REFERENCE_NAME = /^[-A-Za-z0-9._:]+$/;

/** Reports constant names and namespaces in `ref` that no object can have, and namespaces that are missing or not applicable. */
export const checkReference = checkOfController((controller) =>
  controller.dependents.flatMap((dependent) => {
    if (dependent.spec.ref === undefined) return [];
    return [...checkNamespace(dependent, controller), ...checkConstants(dependent, controller)];
  }),
);

function checkNamespace(
  { name, spec: { ref }, path, resource }: ResolvedDependent,
  { spec: { document }, primary }: ResolvedController,
): Diagnostic[] {
  if (resource?.scope === "Cluster" && ref?.namespace !== undefined)
    return [
      {
        ...REFERENCE.violation,
        message: `ref of dependent ${quote(name)} has a namespace, but ${formatKind(resource)} is cluster-scoped`,
        ...document.keyAt([...path, "ref", "namespace"]),
        hint: "remove namespace",
      },
    ];
  if (resource?.scope !== "Namespaced" || primary?.scope !== "Cluster" || ref?.namespace !== undefined) return [];
  return [
    {
      ...REFERENCE.violation,
      message: `ref.namespace is required for dependent ${quote(name)}: ${formatKind(resource)} is namespaced, but the primary ${primary.kind} is cluster-scoped`,
      ...document.keyAt([...path, "ref"]),
      hint: "add namespace, for example ref: { name: …, namespace: primary.spec.namespace }",
    },
  ];
}

function checkConstants(
  { spec: { ref = { name: "" } }, path }: ResolvedDependent,
  { spec: { document } }: ResolvedController,
): Diagnostic[] {
  return (["name", "namespace"] as const).flatMap((part): Diagnostic[] => {
    const constant = constantValueOf(ref[part] ?? "primary");
    if (constant === undefined || (typeof constant.value === "string" && REFERENCE_NAME.test(constant.value)))
      return [];
    const found = typeof constant.value === "string" ? quote(constant.value) : String(constant.value);
    const place = document.valueAt([...path, "ref", part]);
    const hint = "use an expression over primary, such as primary.spec.settings, or a string in quotes: \"'settings'\"";
    return [
      { ...REFERENCE.violation, message: `invalid value ${found}: no object can have this ${part}`, ...place, hint },
    ];
  });
}

/**
 * Reports dependents whose field selectors select the same object by name.
 *
 * The names that `desired` returns are only known at run time, where the operator refuses to write the object of another dependent.
 */
export const checkSameObject = checkOfController(({ spec: { document }, dependents }) => {
  const known = new Map<string, ResolvedDependent[]>();
  return dependents.flatMap((dependent): Diagnostic[] => {
    const { name, spec, path, resource } = dependent;
    const objectName = selectedName(spec.fieldSelector);
    if (resource === undefined || objectName === undefined || spec.mode === "readOnly") return [];
    const { group, kind } = resource;
    const key = JSON.stringify([group, kind, spec.namespace ?? "", spec.cluster ?? "", objectName]);
    const others = known.get(key) ?? [];
    known.set(key, [...others, dependent]);
    // The conditions of two conditional dependents may exclude each other.
    const other = others.find((each) => !isConditional(each) || !isConditional(dependent));
    if (other === undefined) return [];
    const place = formatPosition(document.valueAt([...other.path, "fieldSelector"]).position);
    return [
      {
        ...SAME_OBJECT.violation,
        message: `dependents ${quote(name)} and ${quote(other.name)} (${place}) would write the same object: ${kind} ${quote(objectName)}`,
        ...document.valueAt([...path, "fieldSelector"]),
        hint: "select another name, or merge the two dependents",
      },
    ];
  });
});

function isConditional({ spec }: ResolvedDependent): boolean {
  return spec.activationCondition !== undefined || spec.reconcilePrecondition !== undefined;
}

function selectedName(selector = ""): string | undefined {
  return /(?:^|,)metadata\.name==?([^,=!]+)(?:,|$)/.exec(selector)?.[1];
}

const OWN_NAMESPACE = /^\s*primary\s*\.\s*metadata\s*\.\s*namespace\s*$/;

/** Warns about references into a namespace that the primary chooses: anyone who can create a primary uses the operator's read access there. */
export const checkForeignNamespace = checkOfController((controller) =>
  controller.dependents.flatMap((dependent): Diagnostic[] => {
    const { namespace } = dependent.spec.ref ?? {};
    // Users who can create cluster-scoped primaries are not limited to a namespace.
    if (namespace === undefined || controller.primary?.scope !== "Namespaced") return [];
    if (constantValueOf(namespace) !== undefined || OWN_NAMESPACE.test(namespace)) return [];
    return [
      {
        ...foreignNamespace(dependent.name, controller.primary.kind, "reads"),
        about: subjectOf(controller, dependent),
        ...controller.spec.document.valueAt([...dependent.path, "ref", "namespace"]),
      },
    ];
  }),
);

/** Returns the warning about a dependent whose namespace the primary chooses. `does` is the operator's access to it. */
export function foreignNamespace(
  dependent: string,
  primary: string,
  does: "reads" | "writes",
): Pick<Diagnostic, "severity" | "rule" | "message" | "hint"> {
  return {
    ...FOREIGN_NAMESPACE.violation,
    message: `the ${primary} chooses the namespace in which the operator ${does} dependent ${quote(dependent)}: anyone who can create a ${primary} in one namespace reaches into others`,
    hint: "check in a condition that the other namespace permits it, or accept the warning and give a reason",
  };
}

/** A right that amounts to control over the cluster if granted in all namespaces, or on cluster-scoped objects. */
interface Power {
  readonly group: string;
  /** Plurals of resources, or subresources. */
  readonly resources: readonly string[];
  /** Verbs that grant the power. */
  readonly verbs: readonly string[];
  /** What an attacker with the operator's token can do; completes "an attacker can". */
  readonly threat: string;
}

const READ = ["get", "list", "watch"];
const WRITE = ["create", "update", "patch"];

// Workloads are omitted: nearly every operator creates Pods, and Pod admission limits what these may do.
const POWERS: readonly Power[] = [
  {
    ...{ group: "", resources: ["secrets"], verbs: READ },
    threat: "read all Secrets of the cluster, with the credentials of every tenant",
  },
  {
    ...{ group: "rbac.authorization.k8s.io", verbs: WRITE },
    resources: ["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
    threat: "give every right of the operator to anyone",
  },
  {
    ...{ group: "admissionregistration.k8s.io", verbs: WRITE },
    resources: [
      "mutatingwebhookconfigurations",
      "validatingwebhookconfigurations",
      "mutatingadmissionpolicies",
      "mutatingadmissionpolicybindings",
    ],
    threat: "read or change every request to the API server",
  },
  {
    ...{ group: "certificates.k8s.io", verbs: WRITE },
    resources: ["certificatesigningrequests", "certificatesigningrequests/approval"],
    threat: "obtain client certificates of other users",
  },
  {
    ...{ group: "certificates.k8s.io", resources: ["signers"], verbs: ["approve", "sign"] },
    threat: "issue client certificates of other users",
  },
  {
    ...{ group: "apiextensions.k8s.io", resources: ["customresourcedefinitions"], verbs: [...WRITE, "delete"] },
    threat: "delete all custom resources, or read them through a conversion webhook",
  },
  {
    ...{ group: "apiregistration.k8s.io", resources: ["apiservices"], verbs: WRITE },
    threat: "answer requests of all clients in place of the API server",
  },
  {
    ...{ group: "", resources: ["pods/exec", "pods/attach", "pods/ephemeralcontainers"], verbs: ["get", ...WRITE] },
    threat: "run commands in every Pod of the cluster",
  },
  {
    ...{ group: "", resources: ["nodes/proxy"], verbs: ["get", ...WRITE] },
    threat: "run commands in every Pod of the cluster through the kubelets",
  },
  {
    ...{ group: "", resources: ["serviceaccounts/token"], verbs: ["create"] },
    threat: "act as every ServiceAccount of the cluster",
  },
];

// These verbs bypass the escalation checks of RBAC, even within one namespace.
const POWERFUL_VERBS: { readonly [verb: string]: string } = {
  escalate: "give itself every right",
  bind: "bind any role to anyone",
  impersonate: "act as any user",
};

/** A dependent or an event source that requires a powerful right. */
interface Need {
  readonly threat: string;
  readonly plural: string;
  readonly member: ResolvedDependent | ResolvedEventSource;
  /** Path from the member to the field that requires the right. */
  readonly path: readonly string[];
  readonly label: string;
  readonly advice: string;
}

/** Warns about rights that amount to control over the cluster, required by the graph or listed in `rbac.extra`. */
export const checkPowerfulRight = checkOfController((controller) => {
  const needs = [
    ...controller.dependents.flatMap((each) => needsOfDependent(each, controller)),
    ...controller.eventSources.flatMap((each) => needsOfSource(each, controller)),
  ];
  // One warning per resource, regardless of how many members need it, so that a single acceptance suffices.
  const byKind = new Map<string, Need[]>();
  for (const need of needs) byKind.set(need.plural, [...(byKind.get(need.plural) ?? []), need]);
  return [
    ...[...byKind.values()].map((all) => warningAbout(all, controller)),
    ...controller.spec.extraRules.flatMap((rule, index) => checkExtra(rule, index, controller)),
  ];
});

function accepts({ member: { spec } }: Need): boolean {
  return spec.accept?.some(({ rule }) => rule === POWERFUL_RIGHT.id) === true;
}

function warningAbout(needs: readonly Need[], controller: ResolvedController): Diagnostic {
  const { threat, plural, path, member, label, advice } = needs.find(accepts) ?? needs[0]!;
  const more = needs.length === 1 ? "" : ` (and ${needs.length - 1} more)`;
  return warningOf(`${label}${more} needs ${plural} in the whole cluster`, threat, {
    about: subjectOf(controller, member),
    ...controller.spec.document.valueAt([...member.path, ...path]),
    advice,
  });
}

function needsOfDependent(dependent: ResolvedDependent, controller: ResolvedController): Need[] {
  const { name, spec, resource } = dependent;
  const label = `dependent ${quote(name)}`;
  if (spec.external?.state?.in === "secret" && holdsEverywhere(controller.spec.controller.namespaces))
    return threatsOf([""], ["secrets"], READ).map((threat) => ({
      ...{ threat, plural: "secrets", path: ["external", "state"], member: dependent, label },
      advice: "set controller.namespaces, or store the ids in ConfigMaps",
    }));
  // A shared event source is reported itself. Rights in another cluster are granted there.
  if (resource === undefined || spec.cluster !== undefined) return [];
  const { namespace, ref, mode, eventSource } = spec;
  const isNamed = ref !== undefined && constantValueOf(ref.name) !== undefined;
  const isElsewhere = ref?.namespace !== undefined && constantValueOf(ref.namespace) === undefined;
  const isStated = namespace !== undefined || (ref?.namespace !== undefined && !isElsewhere);
  const isEverywhere = isElsewhere || (!isStated && holdsEverywhere(controller.spec.controller.namespaces));
  if (isNamed || (resource.scope === "Namespaced" && !isEverywhere)) return [];
  const verbs = [
    ...(eventSource === undefined ? READ : []),
    ...(mode === "readOnly" || ref !== undefined ? [] : ["get", ...WRITE, "delete"]),
  ];
  const advice =
    resource.scope === "Cluster"
      ? `create the ${resource.kind} during installation instead`
      : "set controller.namespaces, or namespace of the dependent";
  return threatsOf([resource.group], [resource.plural], verbs).map((threat) => ({
    ...{ threat, plural: resource.plural, path: ["resource"], member: dependent, label, advice },
  }));
}

function needsOfSource(source: ResolvedEventSource, controller: ResolvedController): Need[] {
  const { name, spec, resource } = source;
  const { namespaces = "sameAsController", fieldSelector = "" } = spec;
  const own = namespaces === "sameAsController" ? controller.spec.controller.namespaces : namespaces;
  const isLimited = /(?:^|,)metadata\.name==?[^,]/.test(fieldSelector);
  if (resource?.scope !== "Namespaced" || isLimited || !holdsEverywhere(own)) return [];
  return threatsOf([resource.group], [resource.plural], READ).map((threat) => ({
    ...{ threat, plural: resource.plural, path: ["resource"], member: source, label: `event source ${quote(name)}` },
    advice: "set its namespaces, or a fieldSelector with metadata.name",
  }));
}

function checkExtra(rule: ExtraRuleSpec, index: number, controller: ResolvedController): Diagnostic[] {
  const { apiGroups = [], resources = [], resourceNames, verbs, namespaces = "sameAsController" } = rule;
  if (resourceNames !== undefined) return [];
  const own = namespaces === "sameAsController" ? controller.spec.controller.namespaces : namespaces;
  const verb = resources.length === 0 ? undefined : verbs.find((each) => Object.hasOwn(POWERFUL_VERBS, each));
  const isAll = [apiGroups, resources, verbs].every((each) => each.includes("*"));
  const [found] = holdsEverywhere(own) ? threatsOf(apiGroups, resources, verbs) : [];
  const threat = verb === undefined ? (found && isAll ? "do anything in the cluster" : found) : POWERFUL_VERBS[verb];
  if (threat === undefined) return [];
  const what = verb === undefined ? "applies to the whole cluster" : `has the verb ${quote(verb)}`;
  const path = ["spec", "rbac", "extra", index];
  return [
    warningOf(`rule ${index + 1} of rbac.extra ${what}`, threat, {
      about: extraSubjectOf(controller.spec.name, index),
      ...controller.spec.document.valueAt(path),
      advice: "set its resourceNames or namespaces",
    }),
  ];
}

/** Returns the `about` value of warnings about a rule of `rbac.extra`, with which the rule can accept them. */
export function extraSubjectOf(controller: string, index: number): string {
  return `${controller}/rbac.extra.${index}`;
}

function holdsEverywhere(namespaces: NamespacesSpec | undefined): boolean {
  return namespaces === undefined || namespaces === "all";
}

/** Returns the threat of the first matching power in the order of the table; empty if none matches. `*` matches everything. */
function threatsOf(groups: readonly string[], resources: readonly string[], verbs: readonly string[]): string[] {
  const covers = (stated: readonly string[], needed: readonly string[]) =>
    stated.includes("*") || needed.some((each) => stated.includes(each));
  const found = POWERS.filter(
    (power) => covers(groups, [power.group]) && coversAny(resources, power.resources) && covers(verbs, power.verbs),
  );
  return found.slice(0, 1).map(({ threat }) => threat);
}

function coversAny(stated: readonly string[], needed: readonly string[]): boolean {
  return needed.some((each) =>
    stated.some((one) => one === "*" || one === each || one === each.replace(/^.*\//, "*/")),
  );
}

interface WarningPlace extends Pick<Diagnostic, "about" | "path" | "position"> {
  readonly advice: string;
}

function warningOf(what: string, threat: string, { advice, ...place }: WarningPlace): Diagnostic {
  return {
    ...POWERFUL_RIGHT.violation,
    message: `${what}: with a stolen token of the operator, an attacker can ${threat}`,
    ...place,
    hint: `${advice}, or accept the warning and give a reason`,
  };
}
