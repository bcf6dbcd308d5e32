import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { ExtraRuleSpec, NamespacesSpec } from "../../../input/workflow-spec.js";
import {
  ruleOfController,
  subjectOf,
  type ResolvedController,
  type ResolvedDependent,
  type ResolvedEventSource,
} from "../../build/resolved-project.js";
import { constantValueOf } from "../../expression/constant-value.js";

/** What a right in all namespaces, or on objects without one, means for the whole cluster. */
interface Power {
  readonly group: string;
  /** Plurals, or parts of kinds. */
  readonly resources: readonly string[];
  /** The verbs that give it. */
  readonly verbs: readonly string[];
  /** What whoever steals the token of the operator can do. */
  readonly threat: string;
}

const READ = ["get", "list", "watch"];
const WRITE = ["create", "update", "patch"];

// Workloads are left out: nearly every operator creates Pods, and what these may do is up to the admission of Pods.
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
    threat: "run commands in every Pod of the cluster by way of the kubelets",
  },
  {
    ...{ group: "", resources: ["serviceaccounts/token"], verbs: ["create"] },
    threat: "act as every ServiceAccount of the cluster",
  },
];

// These verbs lift what RBAC otherwise prevents, also in one namespace.
const POWERFUL_VERBS: { readonly [verb: string]: string } = {
  escalate: "give itself every right",
  bind: "bind any role to anyone",
  impersonate: "act as any user",
};

/** A dependent or an event source that needs a power. */
interface Need {
  readonly threat: string;
  readonly plural: string;
  readonly member: ResolvedDependent | ResolvedEventSource;
  /** The way from the member to what needs it. */
  readonly path: readonly string[];
  readonly label: string;
  readonly advice: string;
}

/** Warns of rights that mean the whole cluster, in what the graph needs and in what `rbac.extra` states. */
export const checkPowerfulRight = ruleOfController((controller) => {
  const needs = [
    ...controller.dependents.flatMap((each) => needsOfDependent(each, controller)),
    ...controller.eventSources.flatMap((each) => needsOfSource(each, controller)),
  ];
  // One right of the operator is one warning, however many need it, and is accepted once.
  const byKind = new Map<string, Need[]>();
  for (const need of needs) byKind.set(need.plural, [...(byKind.get(need.plural) ?? []), need]);
  return [
    ...[...byKind.values()].map((all) => warningAbout(all, controller)),
    ...controller.spec.extraRules.flatMap((rule, index) => checkExtra(rule, index, controller)),
  ];
});

function accepts({ member: { spec } }: Need): boolean {
  return spec.accept?.some(({ rule }) => rule === "powerful-right") === true;
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
      advice: "set controller.namespaces, or keep the ids in ConfigMaps",
    }));
  // A shared event source is reported itself, and another cluster has rights of its own.
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
      ? `let the installation create the ${resource.kind} instead`
      : "set controller.namespaces, or the namespace of the dependent";
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
  const what = verb === undefined ? "holds in the whole cluster" : `has the verb ${quote(verb)}`;
  const path = ["spec", "rbac", "extra", index];
  return [
    warningOf(`rule ${index + 1} of rbac.extra ${what}`, threat, {
      about: extraSubjectOf(controller.spec.name, index),
      ...controller.spec.document.valueAt(path),
      advice: "set its resourceNames or namespaces",
    }),
  ];
}

/** Returns what a warning about a rule of `rbac.extra` states, so that the rule can accept it. */
export function extraSubjectOf(controller: string, index: number): string {
  return `${controller}/rbac.extra.${index}`;
}

function holdsEverywhere(namespaces: NamespacesSpec | undefined): boolean {
  return namespaces === undefined || namespaces === "all";
}

/** Returns what these rights give, in the order of the table; the first one if a right is for everything. */
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
    ...{ severity: "warning", rule: "powerful-right" },
    message: `${what}: with a stolen token of the operator, an attacker can ${threat}`,
    ...place,
    hint: `${advice}, or accept the warning and give a reason`,
  };
}
